"""The section of one comparison of runs, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.verify.arms import ArmResult
from cgmigrate.verify.compare import SETTINGS_ONLY
from cgmigrate.verify.page.answer import Judged
from cgmigrate.verify.page.arm_views import arms_of, is_training
from cgmigrate.verify.page.arms import ArmTable, arm_table
from cgmigrate.verify.page.badges import Badge, badges_of
from cgmigrate.verify.page.census import CensusSection, census
from cgmigrate.verify.page.diff import diff_lines
from cgmigrate.verify.page.losses import Losses, losses_of
from cgmigrate.verify.page.matrix import workload_name
from cgmigrate.verify.page.outputs import Sameness, Tokens, sameness, tokens_of
from cgmigrate.verify.page.run import Environment, environment
from cgmigrate.verify.page.times import TimeView, times_of
from cgmigrate.verify.release_changes import changes_of_runs

if TYPE_CHECKING:
    from cgmigrate.verify.compare import ArmComparison


@dataclass(frozen=True, slots=True)
class RunSection:
    """One comparison. ``arms`` is None where none was planned, what follows it where none ran to its end.

    ``is_training`` says that losses, not tokens, are to be expected.
    """

    anchor: str
    name: str
    workload: str
    badges: tuple[Badge, ...]
    reason: str
    notes: tuple[str, ...]
    releases: str
    diff: tuple[tuple[str, str], ...]
    is_training: bool
    arms: ArmTable | None
    environment: Environment | None
    census: CensusSection | None = None
    losses: Losses | None = None
    tokens: Tokens | None = None
    times: TimeView | None = None
    sameness: Sameness | None = None


def judged_run(comparison: ArmComparison, results: Mapping[str, ArmResult], anchor: str) -> Judged:
    """The comparison as the top of the page shows it."""
    roles = {role: results[key] for role, key in comparison.roles.items() if key in results}
    # A green badge would hide that no run shows what is captured; the reason says what the release changed.
    changes = () if comparison.reason.startswith(SETTINGS_ONLY) else changes_of_runs(roles)
    return Judged(comparison.name, comparison.workload, comparison.verdict, comparison.reason, changes, anchor)


def run_section(comparison: ArmComparison, results: Mapping[str, ArmResult], judged: Judged) -> RunSection:
    """Everything that is known of the comparison."""
    arms = arms_of(comparison, results)
    done = [arm for arm in arms if arm.is_done]
    training = is_training(arms)
    ident = judged.anchor
    return RunSection(
        anchor=ident,
        name=comparison.name,
        workload=workload_name(comparison.workload),
        badges=badges_of(judged.verdict, judged.changes),
        reason=comparison.reason,
        notes=tuple(comparison.notes),
        releases=releases_of(comparison.source, comparison.target),
        diff=diff_lines(comparison.diff),
        is_training=training,
        arms=arm_table(arms, comparison.name) if arms else None,
        environment=environment(arms) if arms else None,
        census=census(done),
        losses=losses_of(done, ident) if training else None,
        tokens=None if training else tokens_of(done),
        times=times_of(done) if done else None,
        sameness=sameness(done),
    )


def releases_of(source: str, target: str) -> str:
    """The releases of a comparison in words."""
    return f"megatron-core {target}" if source == target else f"megatron-core {source} → {target}"

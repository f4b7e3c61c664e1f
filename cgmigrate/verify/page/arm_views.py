"""An arm in its role, as the parts of the page share it, and how arms are named and put together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from cgmigrate.verify import metrics
from cgmigrate.verify.arms import (
    DONE,
    EAGER,
    EAGER_AGAIN,
    EAGER_SOURCE,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    ROLES,
    TRAINING,
    ArmResult,
    Rank,
)

if TYPE_CHECKING:
    from cgmigrate.verify.compare import ArmComparison

Content = TypeVar("Content", bound=Hashable)

NOTHING = "–"
"""Shown where there is no metric."""


@dataclass(frozen=True, slots=True)
class ArmView:
    """An arm in its role; ``result`` is None where the results do not hold it, ``same_as`` names the arm it repeats."""

    role: str
    release: str
    result: ArmResult | None
    same_as: str = ""

    @property
    def name(self) -> str:
        """The arm in words: ``legacy on 0.17.1``."""
        return metrics.label(self.role, self.release)

    @property
    def is_eager(self) -> bool:
        """Whether the arm captures nothing by its role."""
        return self.role in (EAGER, EAGER_AGAIN, EAGER_SOURCE)

    @property
    def is_done(self) -> bool:
        """Whether the arm ran to its end and reported what it measured; all other arms have no metrics."""
        return self.result is not None and self.result.outcome == DONE and bool(self.result.ranks)

    @property
    def run(self) -> ArmResult:
        """The result of an arm that is known to have one."""
        assert self.result is not None
        return self.result

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """What each process of an arm that is done measured."""
        return self.run.ranks


def arms_of(comparison: ArmComparison, results: Mapping[str, ArmResult]) -> list[ArmView]:
    """The arms of a comparison, in the order of the roles."""
    views: list[ArmView] = []
    first: dict[str, str] = {}
    for role in [role for role in ROLES if role in comparison.roles]:
        key = comparison.roles[role]
        result = results.get(key)
        planned = comparison.source if role in (EAGER_SOURCE, LEGACY_SOURCE) else comparison.target
        arm = ArmView(role, result.arm.release if result else planned, result, first.get(key, ""))
        first.setdefault(key, arm.name)
        views.append(arm)
    return views


def is_training(arms: Iterable[ArmView]) -> bool:
    """Whether the arms train; else they generate."""
    return all(arm.result.arm.workload == TRAINING for arm in arms if arm.result)


def written(value: Any) -> str:
    """A setting's value as people write it: ``attn,mlp``."""
    return ",".join(map(str, value)) or "[]" if isinstance(value, (list, tuple)) else str(value)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def names_of(arms: Iterable[ArmView]) -> str:
    """The arms' names in a sentence."""
    return listed([arm.name for arm in arms])


def alike(arms: Iterable[ArmView], value: Callable[[ArmView], Hashable]) -> dict[Hashable, list[ArmView]]:
    """The arms by their value, in order of appearance; without the arms whose value is None."""
    groups: dict[Hashable, list[ArmView]] = {}
    for arm in arms:
        if (key := value(arm)) is not None:
            groups.setdefault(key, []).append(arm)
    return groups


def by_process(arm: ArmView, content: Callable[[Rank], Content]) -> tuple[tuple[str, Content], ...]:
    """The content of each process, with the processes' names; processes with equal content share it.

    Where all have the same content, it needs no name.
    """
    said: dict[Content, list[int]] = {}
    for rank in arm.ranks:
        said.setdefault(content(rank), []).append(rank.rank)
    if len(said) == 1:
        return (("", next(iter(said))),)
    return tuple((_processes(ranks), shown) for shown, ranks in said.items())


def _processes(ranks: Sequence[int]) -> str:
    return f"{'process' if len(ranks) == 1 else 'processes'} {metrics.spans(ranks)}"


def same_as_legacy(arm: ArmView, arms: Sequence[ArmView], value: Callable[[ArmView], Hashable]) -> str:
    """Which legacy arm has the same value, in words: the reader need not compare two equal columns.

    Empty where none has. The old text on the target is compared with the old text on its own release.
    """
    before = {MIGRATED: (LEGACY_SOURCE, LEGACY_TARGET), LEGACY_TARGET: (LEGACY_SOURCE,)}.get(arm.role, ())
    legacies = [other for other in arms if other.role in before]
    same = [other for other in legacies if value(other) == value(arm)]
    if not same:
        return ""
    # "legacy" alone is enough where there is no other legacy arm that it could mean.
    return f"same as {same[-1].name}" if arm.role == LEGACY_TARGET or len(same) < len(legacies) else "same as legacy"

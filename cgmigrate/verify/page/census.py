"""The census side by side: what each arm captured, with the lines marked that only legacy or only migrated has."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from cgmigrate.verify import metrics
from cgmigrate.verify.arms import LEGACY_SOURCE, LEGACY_TARGET, MIGRATED, Rank
from cgmigrate.verify.metrics import Group
from cgmigrate.verify.page.components import (
    NOTHING,
    ArmView,
    alike,
    by_process,
    is_training,
    items,
    listed,
    setting,
    table,
)
from cgmigrate.verify.page.markup import Markup, element, together


def census(arms: Sequence[ArmView]) -> Markup:
    """Words and a table; ``arms`` are those that are done."""
    if not arms:
        return element("p", "No arm ended well, so nothing was counted.")
    unit = "step" if is_training(arms) else "round"
    columns = list(alike(arms, _column).values())
    facts: dict[str, Callable[[ArmView], Markup]] = {
        "effective settings": _effective,
        "graphs": lambda arm: _graphs(arm, _counterpart(arm, arms), unit),
        f"captured at {unit}": lambda arm: by_process(
            arm, lambda rank: together(metrics.capture_steps(rank) or NOTHING)
        ),
        f"calls outside graphs in the last {unit}": lambda arm: by_process(arm, _calls),
    }
    rows = [
        element("tr", element("th", fact, scope="row"), *(element("td", cell(group[0])) for group in columns))
        for fact, cell in facts.items()
    ]
    heads = ("", *(listed(group) for group in columns))
    return together(items(_in_words(arms), "findings"), table("Census, side by side", heads, rows, "census"))


def _column(arm: ArmView) -> Hashable:
    """Eager arms that show the same share a column."""
    if not arm.is_eager:
        return arm.role
    return tuple((rank.rank, rank.graphs, _calls(rank)) for rank in arm.ranks), _effective(arm)


def _effective(arm: ArmView) -> Markup:
    values = [setting(name, value) for name, value in arm.run.effective.items()]
    return items(values, "plain") or together(NOTHING)


def _calls(rank: Rank) -> Markup:
    return items((f"{count} × {name}" for name, count in metrics.eager_calls(rank).items()), "plain") or together(
        NOTHING
    )


def _graphs(arm: ArmView, expected: Callable[[Rank, Group], bool], unit: str) -> Markup:
    def block(rank: Rank) -> Markup:
        lines = [_line(group, expected(rank, group), unit) for group in metrics.census_groups(rank)]
        return items(lines, "plain") or element("p", "none")

    return by_process(arm, block)


def _line(group: Group, expected: bool, unit: str) -> Markup:
    line = element("span" if expected else "mark", group.line(unit), title=", ".join(group.modules) or None)
    layers = f"{'layer' if len(group.layers) == 1 else 'layers'} {metrics.spans(group.layers)}" if group.layers else ""
    only = "" if expected else element("small", "only in this arm", class_="only")
    return together(line, element("small", layers) if layers else "", only)


# --- legacy against migrated ---------------------------------------------------------------------------------


def _counterpart(arm: ArmView, arms: Sequence[ArmView]) -> Callable[[Rank, Group], bool]:
    """Whether a group of ``arm`` is found on the other side: legacy's in migrated, migrated's in legacy."""
    other = _other_side(arm, arms)
    if other is None:
        return lambda *_: True
    same = _judge(arm, other)
    there = {(rank.rank, same(group)) for rank in other.ranks for group in metrics.census_groups(rank)}
    return lambda rank, group: (rank.rank, same(group)) in there


def _other_side(arm: ArmView, arms: Sequence[ArmView]) -> ArmView | None:
    by_role = {arm.role: arm for arm in arms}
    if arm.role == MIGRATED:
        return by_role.get(LEGACY_TARGET) or by_role.get(LEGACY_SOURCE)
    return by_role.get(MIGRATED) if arm.role in (LEGACY_SOURCE, LEGACY_TARGET) else None


def _judge(one: ArmView, other: ArmView) -> Callable[[Group], Hashable]:
    """What of two groups must be equal: all on one release, not the kernels between releases."""
    return (lambda group: group) if one.release == other.release else (lambda group: group.shape)


def _in_words(arms: Sequence[ArmView]) -> list[str]:
    by_role = {arm.role: arm for arm in arms}
    if (migrated := by_role.get(MIGRATED)) is None:
        return ["The migrated configuration has no census to compare with."]
    legacies = [by_role[role] for role in (LEGACY_TARGET, LEGACY_SOURCE) if role in by_role]
    return [_pair_in_words(legacy, migrated) for legacy in legacies] or ["No legacy arm has a census to compare with."]


def _pair_in_words(legacy: ArmView, migrated: ArmView) -> str:
    judge = _judge(legacy, migrated)
    ours, theirs = ({rank.rank: _judged(rank, judge) for rank in arm.ranks} for arm in (legacy, migrated))
    aside = "" if legacy.release == migrated.release else " (kernels aside)"
    what = f"the same graphs{aside}." if ours == theirs else "different graphs; the marked lines are on one side only."
    return f"{legacy.name} and {migrated.name} capture {what}"


def _judged(rank: Rank, judge: Callable[[Group], Hashable]) -> frozenset[Hashable]:
    return frozenset(map(judge, metrics.census_groups(rank)))

"""The census side by side: what each arm captured, with the lines marked that only legacy or only migrated has.

A cell that holds what a legacy arm's cell holds says so instead of repeating it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from cgmigrate.verify import metrics
from cgmigrate.verify.arms import LEGACY_SOURCE, LEGACY_TARGET, MIGRATED, Rank
from cgmigrate.verify.metrics import GraphGroup
from cgmigrate.verify.page.arm_views import (
    NOTHING,
    ArmView,
    alike,
    by_process,
    is_training,
    names_of,
    same_as_legacy,
    written,
)


@dataclass(frozen=True, slots=True)
class CellLine:
    """A line of a cell; ``setting`` is the name whose value ``text`` is, ``is_marked`` says that only this arm has it.

    ``detail`` is added in small letters, ``title`` is shown where the mouse rests.
    """

    text: str
    setting: str = ""
    detail: str = ""
    title: str = ""
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What each group of processes has, by its name; ``same_as`` says which arm has the same and replaces it."""

    parts: tuple[tuple[str, tuple[CellLine, ...]], ...]
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A row: its name and a cell for each column."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class CensusSection:
    """Sentences, and a table with a column for each group of ``heads``."""

    findings: tuple[str, ...]
    heads: tuple[str, ...]
    facts: tuple[Fact, ...]


def census(arms: Sequence[ArmView]) -> CensusSection | None:
    """The census of arms that are done; None without any."""
    if not arms:
        return None
    unit = "step" if is_training(arms) else "round"
    columns = list(alike(arms, _column).values())
    contents: dict[str, Callable[[ArmView], Cell]] = {
        "effective settings": lambda arm: Cell((("", _effective(arm)),)),
        "graphs": lambda arm: _graphs(arm, _counterpart(arm, arms), unit),
        f"captured at {unit}": lambda arm: Cell(by_process(arm, _captured_at)),
        f"calls outside graphs in the last {unit}": lambda arm: Cell(by_process(arm, _calls)),
    }
    facts = (
        Fact(name, tuple(_once(group[0], arms, content) for group in columns)) for name, content in contents.items()
    )
    return CensusSection(tuple(_in_words(arms)), tuple(map(names_of, columns)), tuple(facts))


def _column(arm: ArmView) -> Hashable:
    """Eager arms that show the same share a column."""
    if not arm.is_eager:
        return arm.role
    return tuple((rank.rank, rank.graphs, _calls(rank)) for rank in arm.ranks), _effective(arm)


def _once(arm: ArmView, arms: Sequence[ArmView], content: Callable[[ArmView], Cell]) -> Cell:
    cell = content(arm)
    return replace(cell, same_as=same_as_legacy(arm, arms, content))


def _effective(arm: ArmView) -> tuple[CellLine, ...]:
    return tuple(CellLine(written(value), setting=name) for name, value in arm.run.effective.items())


def _captured_at(rank: Rank) -> tuple[CellLine, ...]:
    return (CellLine(metrics.capture_steps(rank) or NOTHING),)


def _calls(rank: Rank) -> tuple[CellLine, ...]:
    return tuple(CellLine(f"{count} × {name}") for name, count in metrics.eager_calls(rank).items())


def _graphs(arm: ArmView, expected: Callable[[Rank, GraphGroup], bool], unit: str) -> Cell:
    def lines(rank: Rank) -> tuple[CellLine, ...]:
        shown = tuple(_line(group, expected(rank, group), unit) for group in metrics.census_groups(rank))
        return shown or (CellLine("none"),)

    return Cell(by_process(arm, lines))


def _line(group: GraphGroup, expected: bool, unit: str) -> CellLine:
    layers = f"{'layer' if len(group.layers) == 1 else 'layers'} {metrics.spans(group.layers)}" if group.layers else ""
    return CellLine(group.line(unit), detail=layers, title=", ".join(group.modules), is_marked=not expected)


# --- legacy against migrated ---------------------------------------------------------------------------------


def _counterpart(arm: ArmView, arms: Sequence[ArmView]) -> Callable[[Rank, GraphGroup], bool]:
    """Whether a group of ``arm`` is found on the other side: legacy's in migrated, migrated's in legacy."""
    other = _other_side(arm, arms)
    if other is None:
        return lambda *_: True
    same = _judge(arm, other)
    there = {(rank.rank, same(group)) for rank in other.ranks for group in metrics.census_groups(rank)}
    return lambda rank, group: (rank.rank, same(group)) in there


def _other_side(arm: ArmView, arms: Iterable[ArmView]) -> ArmView | None:
    by_role = {arm.role: arm for arm in arms}
    if arm.role == MIGRATED:
        return by_role.get(LEGACY_TARGET) or by_role.get(LEGACY_SOURCE)
    return by_role.get(MIGRATED) if arm.role in (LEGACY_SOURCE, LEGACY_TARGET) else None


def _judge(one: ArmView, other: ArmView) -> Callable[[GraphGroup], Hashable]:
    """What of two groups must be equal: all on one release, not the kernels between releases."""
    return (lambda group: group) if one.release == other.release else (lambda group: group.shape)


def _in_words(arms: Iterable[ArmView]) -> list[str]:
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


def _judged(rank: Rank, judge: Callable[[GraphGroup], Hashable]) -> frozenset[Hashable]:
    return frozenset(map(judge, metrics.census_groups(rank)))

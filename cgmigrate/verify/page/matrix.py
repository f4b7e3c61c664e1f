"""The matrix: a row a configuration, a column a workload, badges in the cells; and each reason once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cgmigrate.verify.arms import DYNAMIC, STATIC, TRAINING
from cgmigrate.verify.page.answer import Judged
from cgmigrate.verify.page.badges import Badge, badges_of, verdict_order

CONFIGURATION, NO_RUN = "configuration", "none"
"""Columns beside the workloads: what the level ``config`` compares, and what could not be run at all."""

_COLUMNS = {
    TRAINING: "training",
    STATIC: "generation, static batching",
    DYNAMIC: "generation, dynamic batching",
    CONFIGURATION: "as the releases read it",
    NO_RUN: "not run",
}


@dataclass(frozen=True, slots=True)
class ComparisonBadges:
    """The badges of one comparison; ``anchor`` is the id of its section, ``about`` says for whom it is."""

    badges: tuple[Badge, ...]
    anchor: str
    about: str


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration: ``cells`` has a cell a column, each with the entries of that workload (mostly one, or none)."""

    name: str
    cells: tuple[tuple[ComparisonBadges, ...], ...]


@dataclass(frozen=True, slots=True)
class SharedReason:
    """A reason with the comparisons that share it."""

    badges: tuple[Badge, ...]
    text: str
    entries: tuple[ComparisonBadges, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """``columns`` are the heads of the cells."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    reasons: tuple[SharedReason, ...]


def matrix(judged: Sequence[Judged]) -> Matrix:
    """All comparisons by configuration and workload, and their reasons."""
    known = list(_COLUMNS)
    workloads = sorted(
        dict.fromkeys(item.workload for item in judged),
        key=lambda workload: known.index(workload) if workload in known else len(known),
    )
    rows = [
        Row(name, tuple(_entries(judged, name, workload) for workload in workloads))
        for name in dict.fromkeys(item.name for item in judged)
    ]
    return Matrix(tuple(map(workload_name, workloads)), tuple(rows), _reasons(judged))


def workload_name(workload: str) -> str:
    """A workload in words."""
    return _COLUMNS.get(workload, workload)


def _entries(judged: Sequence[Judged], name: str, workload: str) -> tuple[ComparisonBadges, ...]:
    return tuple(_entry(item) for item in judged if (item.name, item.workload) == (name, workload))


def _entry(item: Judged) -> ComparisonBadges:
    about = item.name if item.workload in (CONFIGURATION, NO_RUN) else f"{item.name}, {workload_name(item.workload)}"
    return ComparisonBadges(badges_of(item.verdict, item.changes), item.anchor, about)


def _reasons(judged: Sequence[Judged]) -> tuple[SharedReason, ...]:
    groups: dict[tuple[str, tuple[str, ...], str], list[Judged]] = {}
    for item in judged:
        groups.setdefault((item.verdict, item.changes, item.reason), []).append(item)
    # What needs a person's eye is read first.
    ordered = sorted(groups.items(), key=lambda group: -verdict_order(group[0][0]))
    return tuple(
        SharedReason(badges_of(verdict, changes), reason, tuple(map(_entry, items)))
        for (verdict, changes, reason), items in ordered
    )

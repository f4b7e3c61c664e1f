"""The section of one verdict of the level ``config``: what each release reads, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgmigrate.megatron.releases import SCOPE_LIST_SINCE, SPLIT_IN
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, INFERENCE, MODULES, SCOPE
from cgmigrate.megatron.types import Capture
from cgmigrate.verify.arms import LEGACY_SOURCE, LEGACY_TARGET, MIGRATED
from cgmigrate.verify.config_level import ConfigVerdict, RequestOutcome
from cgmigrate.verify.metrics import label
from cgmigrate.verify.page.answer import Judged
from cgmigrate.verify.page.arm_views import NOTHING, listed, written
from cgmigrate.verify.page.badges import Badge, badges_of
from cgmigrate.verify.page.diff import diff_lines
from cgmigrate.verify.page.matrix import CONFIGURATION
from cgmigrate.verify.page.runs import releases_of
from cgmigrate.verify.release_changes import changes_of_readings


@dataclass(frozen=True, slots=True)
class ReadingCell:
    """What a release says: ``text``, or settings as names and values. ``same_as`` names a cell with the same."""

    text: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class ReadingSection:
    """One verdict: ``heads`` are the readings, ``rows`` have a name and a cell for each of them."""

    anchor: str
    name: str
    badges: tuple[Badge, ...]
    reason: str
    notes: tuple[str, ...]
    releases: str
    diff: tuple[tuple[str, str], ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ReadingCell, ...]], ...]


def judged_reading(verdict: ConfigVerdict, anchor: str) -> Judged:
    """The verdict as the top of the page shows it."""
    changes = changes_of_readings(verdict)
    return Judged(verdict.name, CONFIGURATION, verdict.verdict, verdict.reason, changes, anchor)


def reading_section(verdict: ConfigVerdict, judged: Judged) -> ReadingSection:
    """Everything that is known of the verdict."""
    readings = dict(zip((LEGACY_SOURCE, LEGACY_TARGET, MIGRATED), verdict.readings, strict=False))
    contents: dict[str, Callable[[RequestOutcome], ReadingCell]] = {
        "settings": lambda reading: _settings(reading.request.settings),
        "captures": _captures,
        "effective": _effective,
        "warnings": lambda reading: ReadingCell(" ".join(reading.warnings)),
    }
    rows = [(name, _cells(readings, content)) for name, content in contents.items()]
    versions = [reading.version for reading in verdict.readings]
    return ReadingSection(
        anchor=judged.anchor,
        name=verdict.name,
        badges=badges_of(judged.verdict, judged.changes),
        reason=verdict.reason,
        notes=verdict.notes,
        releases=releases_of(versions[0], versions[-1]) if versions else "",
        diff=diff_lines(verdict.diff),
        heads=tuple(label(role, reading.version) for role, reading in readings.items()),
        rows=tuple(row for row in rows if any(cell != ReadingCell() for cell in row[1])),
    )


def _cells(
    readings: Mapping[str, RequestOutcome], content: Callable[[RequestOutcome], ReadingCell]
) -> tuple[ReadingCell, ...]:
    """A row: a cell that repeats one of legacy's says so."""
    cells = {role: content(reading) for role, reading in readings.items()}
    return tuple(_once(role, cell, cells, readings) for role, cell in cells.items())


def _once(
    role: str, cell: ReadingCell, cells: Mapping[str, ReadingCell], readings: Mapping[str, RequestOutcome]
) -> ReadingCell:
    before: Sequence[str] = {MIGRATED: (LEGACY_SOURCE, LEGACY_TARGET), LEGACY_TARGET: (LEGACY_SOURCE,)}.get(role, ())
    same = [other for other in before if cells[other] == cell]
    if not same or cell == ReadingCell():
        return cell
    names = [label(other, readings[other].version) for other in same]
    return ReadingCell(same_as="same as legacy" if len(same) == 2 else f"same as {listed(names)}")


def _settings(settings: Mapping[str, Any]) -> ReadingCell:
    shown = tuple((name, written(value)) for name, value in settings.items())
    return ReadingCell(settings=shown) if shown else ReadingCell("none")


def _captures(reading: RequestOutcome) -> ReadingCell:
    capture = reading.capture
    if isinstance(capture, Capture):
        return ReadingCell("nothing" if capture == Capture() else str(capture))
    return ReadingCell(f"{reading.outcome}: {reading.reason}")


def _effective(reading: RequestOutcome) -> ReadingCell:
    """The settings that the release keeps, under its own names."""
    kept, release = reading.effective, reading.request.release
    if kept is None:
        return ReadingCell(NOTHING)
    before = {ENABLE: kept.enable, EXTERNAL: kept.external, SCOPE: kept.scope}
    parts = before if release < SCOPE_LIST_SINCE else {MODULES if release >= SPLIT_IN else SCOPE: kept.modules}
    settings = {IMPL: kept.impl, **parts, INFERENCE: kept.inference}
    return _settings({name: value for name, value in settings.items() if value})

"""Withheld sets as they are reported: one diagnostic for each set, with its other members as related places.

Suppressions, selections and baselines apply to the diagnostics of all members, so a member that is new in a set of
known ones is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cgmigrate.lint.diagnostics import LintDiagnostic, RelatedPlace
from cgmigrate.lint.file_result import FileResult


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A file that is planned together with those of a run and is not one of them."""

    path: str
    text: str
    diagnostics: tuple[LintDiagnostic, ...]


def one_for_each_set(files: Sequence[FileResult], others: Sequence[OtherFile] = ()) -> list[FileResult]:
    """Return files with one diagnostic for each withheld set, at its first place of the highest severity."""
    shown = [(number, one) for number, checked in enumerate(files) for one in checked.diagnostics if one.withheld_set]
    if not shown:
        return list(files)
    places: dict[str, list[RelatedPlace]] = {}
    for place in _places(files, others):
        places.setdefault(place.withheld_set, []).append(place)
    chosen: dict[str, tuple[int, LintDiagnostic]] = {}
    for number, one in sorted(shown, key=lambda item: (item[1].severity.rank, item[0], item[1].span.start)):
        chosen.setdefault(one.withheld_set, (number, one))
    return [_with_chosen(number, checked, chosen, places) for number, checked in enumerate(files)]


def _with_chosen(
    number: int,
    checked: FileResult,
    chosen: Mapping[str, tuple[int, LintDiagnostic]],
    places: Mapping[str, Sequence[RelatedPlace]],
) -> FileResult:
    """Return a file with the diagnostics that are chosen for their sets, and with those of no withheld set."""
    diagnostics = []
    for one in checked.diagnostics:
        if not one.withheld_set:
            diagnostics.append(one)
        elif chosen[one.withheld_set] == (number, one):
            diagnostics.append(replace(one, related=_related(one, checked.path, places[one.withheld_set])))
    return replace(checked, diagnostics=tuple(diagnostics))


def _related(diagnostic: LintDiagnostic, path: str, places: Sequence[RelatedPlace]) -> tuple[RelatedPlace, ...]:
    """Return the other places of the set of a diagnostic, those of its own file first."""
    own = (path, diagnostic.rule, diagnostic.span)
    others = [place for place in places if (place.path, place.rule, place.span) != own]
    return tuple(sorted(others, key=lambda place: (place.path != path, place.path, place.span.start, place.rule)))


def _places(files: Sequence[FileResult], others: Sequence[OtherFile]) -> Iterator[RelatedPlace]:
    """Yield the places of all diagnostics of withheld sets, those that are not shown included."""
    for checked in files:
        for one in (*checked.diagnostics, *checked.hidden, *checked.known):
            if one.withheld_set:
                written = None if checked.after is None else (checked.after, checked.edits)
                yield RelatedPlace(
                    one.withheld_set, checked.path, one.rule, one.message, one.span, checked.text, written
                )
    for other in others:
        for one in other.diagnostics:
            if one.withheld_set:
                yield RelatedPlace(one.withheld_set, other.path, one.rule, one.message, one.span, other.text)

"""Candidates for fixes: each edit set with its name, and the reason if it is withheld."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from cgmigrate.documents.sites import Document
from cgmigrate.lint.diagnostics import Applicability, Fix, SiteCase
from cgmigrate.lint.edit_sets import EditSet, FileGroup, Place
from cgmigrate.lint.identity import set_id
from cgmigrate.lint.site_diagnostics import SiteOutcome, SiteReport
from cgmigrate.lint.supported_releases import unread, unsupported
from cgmigrate.lint.withholding import Limits, PlaceOfFix, Withheld, withheld
from cgmigrate.text.spans import Span


@dataclass(frozen=True, slots=True)
class Candidate:
    """An edit set that would be written, the fix as reports name it, and what prevents it."""

    edit_set: EditSet
    fix: Fix
    withheld: Withheld | None = None
    write_error: str = ""
    """Why the text cannot be changed safely, empty if it can."""
    quotes: Mapping[Place, Mapping[str, str]] = field(default_factory=dict)
    """How its settings read in the edited text, by site and name."""

    @property
    def is_written(self) -> bool:
        """Whether the set can be written."""
        return self.withheld is None and not self.write_error


def candidates_of(
    group: FileGroup, sets: Sequence[EditSet], cases: Mapping[Place, SiteCase], limits: Sequence[Limits]
) -> list[Candidate]:
    """Return the edit sets of a group as candidates, with the reasons for those that the limits withhold."""
    seen: Counter[str] = Counter()
    places = [_places(file.document) for file in group.files]
    candidates = []
    for edit_set in sorted(sets, key=lambda one: _position(one, group)):
        name = _name(edit_set, group, places)
        seen[name] += 1
        paths = tuple(group.files[number].path for number in edit_set.files)
        fix = Fix(set_id(f"{name}\0{seen[name]}"), edit_set.applicability, paths, edit_set.because)
        candidate = Candidate(edit_set, fix)
        settled = [(place, limits[number]) for number, place in _settled_by(candidate, group, cases, limits)]
        is_unsafe = edit_set.applicability is not Applicability.SAFE
        withheld_by = withheld(settled, is_unsafe) or unsupported(edit_set, group, cases, limits)
        withheld_by = withheld_by or unread(edit_set, group, limits)
        candidates.append(replace(candidate, withheld=withheld_by))
    return candidates


def _position(edit_set: EditSet, group: FileGroup) -> tuple[int, int]:
    """Return the first file that a set changes, and where the first of its settings is."""
    number = edit_set.files[0] if edit_set.files else 0
    starts = [
        span.start
        for file, index in edit_set.rewrites
        if file == number
        for span in spans_of(group.files[number].document, index)
    ]
    return number, min(starts, default=0)


def spans_of(document: Document, index: int) -> list[Span]:
    """Return the spans of the settings of a site, or of a problem, by its index."""
    if index < len(document.sites):
        site = document.sites[index]
        return [written.span for written in site.written] or [site.span]
    return [problem.span for problem in document.problems if problem.index == index]


# --- names ----------------------------------------------------------------------------------------


def _name(edit_set: EditSet, group: FileGroup, places: Sequence[Mapping[int, str]]) -> str:
    """Return what names a set: its files, their places, and the texts that it changes; no line numbers.

    ``places`` are those of each file, by index.
    """
    parts = []
    for number, index in edit_set.rewrites:
        file = group.files[number]
        texts = [" ".join(file.document.text[span.start : span.end].split()) for span in spans_of(file.document, index)]
        parts.append("\0".join((_in_checkout(file.path), places[number].get(index, ""), *texts)))
    return "\0".join(sorted(parts))


def _places(document: Document) -> dict[int, str]:
    """Return where each site or problem is: what encloses it, and its number among all that this encloses.

    Sites are counted whether they are rewritten or not, so that one that is rewritten does not change the others.
    """
    paths = [(site.index, site.span.start, site.path) for site in document.sites]
    paths += [(one.index, one.span.start, ("", str(one.kind))) for one in document.problems if one.index >= len(paths)]
    seen: Counter[tuple[str, ...]] = Counter()
    result = {}
    for index, start, path in paths:
        place = (document.enclosing(start), *path)
        seen[place] += 1
        result[index] = "\0".join((*place, str(seen[place])))
    return result


def _in_checkout(path: str) -> str:
    """Return the path from the root of the checkout, so that a name is the same from every working directory."""
    real = os.path.realpath(path)
    top = _checkout_of(os.path.dirname(real))
    return os.path.relpath(real, top).replace(os.sep, "/") if top else os.path.basename(real)


@cache
def _checkout_of(folder: str) -> str | None:
    from cgmigrate.project.checkout import checkout_of

    return checkout_of(folder)


# --- limits ---------------------------------------------------------------------------------------


def _settled_by(
    candidate: Candidate, group: FileGroup, cases: Mapping[Place, SiteCase], limits: Sequence[Limits]
) -> Iterator[tuple[int, PlaceOfFix]]:
    """Yield the diagnostics that a set settles, each with the number of its file."""
    for number, index in candidate.edit_set.rewrites:
        file = group.files[number]
        if (case := cases.get((number, index))) is None:
            places = [(rule.id, problem.span, True) for problem, rule in file.problems if problem.index == index]
        else:
            outcome = SiteOutcome(candidate.fix, candidate.edit_set.rewrites[number, index])
            places = list(SiteReport.of_fix(case, file.context, outcome, limits[number].enabled).places_of_fix())
        for rule, span, is_rule_of_fix in places:
            line = file.document.text.count("\n", 0, span.start) + 1
            yield number, PlaceOfFix(rule, file.path, line, span, is_rule_of_fix)

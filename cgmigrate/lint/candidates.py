"""Candidates for fixes: each edit set with its name, and the reason if it is withheld."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import Syntax, syntax_of
from cgmigrate.lint.diagnostics import Applicability, Fix, SiteCase
from cgmigrate.lint.edit_sets import EditSet, FileGroup, Place
from cgmigrate.lint.identity import set_id
from cgmigrate.lint.site_diagnostics import SiteOutcome, SiteReport
from cgmigrate.lint.withholding import Limits, PlaceOfFix, Support, Withheld, withheld
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import all_known
from cgmigrate.megatron.types import Rejected
from cgmigrate.text.spans import Span

# --- releases that a project supports -------------------------------------------------------------


def unsupported(
    edit_set: EditSet, group: FileGroup, cases: Mapping[Place, SiteCase], limits: Sequence[Limits]
) -> Withheld | None:
    """Return why a set is withheld since an older release that its project supports does not read its settings."""
    for number in edit_set.files:
        support = limits[number].support()
        release = _first_lost(edit_set, number, group, cases, support.releases) if support else None
        if support is not None and release is not None:
            return _withheld(support, release, group.files[number].context.target)
    return None


def unread(edit_set: EditSet, group: FileGroup, limits: Sequence[Limits]) -> Withheld | None:
    """Return why a set is withheld since the pinned release of a package does not read the names that it writes.

    Where code of the project reads them, it changes with the set, and no pin decides.
    """
    if any(syntax_of(group.files[number].path) is Syntax.PYTHON for number in edit_set.files):
        return None
    for (number, index), own in edit_set.rewrites.items():
        file = group.files[number]
        site = file.document.sites[index] if index < len(file.document.sites) else None
        owner = file.owners[index].ecosystem if site is not None else None
        if site is None or owner is None or owner.unread_up_to is None or own.keys() <= site.own.keys():
            continue
        if pin := limits[number].pinned_up_to(owner.package, owner.unread_up_to):
            names = ", ".join(f"`{name}`" for name in own if name not in site.own)
            return Withheld(
                f"{owner.package} reads {names} only after its release {owner.unread_up_to}, and this project pins an "
                f"older one ({pin})",
                f"raise the pin of {owner.package} first, or keep the settings as they are",
            )
    return None


def _withheld(support: Support, release: Release, target: Release) -> Withheld:
    if support.is_installed:
        return Withheld(
            f"{support.origin} installs megatron-core {release}, which ignores or rejects the new settings",
            f"install {SPLIT_IN} or a later release there first, or give `--to {target}`",
            waits=True,
        )
    if support.is_requirement:
        return Withheld(
            f"{support.origin} admits megatron-core {release}, which ignores or rejects the new settings",
            f"to drop the releases before {SPLIT_IN}, add `--raise-pin`, which also raises the requirement",
            waits=True,
        )
    return Withheld(
        f"the project supports megatron-core {release} as well ({support.origin}), which ignores or rejects the new "
        "settings",
        f"to drop the releases before {SPLIT_IN}, run with `--from {release} --to {target}`",
        waits=True,
    )


def _first_lost(
    edit_set: EditSet, number: int, group: FileGroup, cases: Mapping[Place, SiteCase], releases: Sequence[Release]
) -> Release | None:
    """Return the newest release on which a set changes what a file does, None if there is none."""
    document = group.files[number].document
    for release in sorted(releases, reverse=True):
        for at, index in edit_set.members:
            if at != number:
                continue
            case = cases.get((at, index))
            if release < SPLIT_IN and (case is None or not _is_same_in(release, case, document)):
                return release
    return None


def _is_same_in(release: Release, case: SiteCase, document: Document) -> bool:
    """Return whether a release does the same with the settings before and after."""
    before, after = case.before, case.after
    if after is None or not all_known((before, after)):
        return False
    if any(document.catalogue[name].since > release for name in after.keys() - before.keys()):
        return False
    was = capture_of(before, release, case.reader)
    return isinstance(was, Rejected) or was == capture_of(after, release, case.reader)


# --- candidates ------------------------------------------------------------


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

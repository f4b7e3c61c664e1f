"""Validation of a plan as text: the edited texts are parsed again, and have to capture what was planned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from cgmigrate.documents.sites import CannotEditError
from cgmigrate.linking.inheritance import effective
from cgmigrate.linking.inheritance import merged as merged_settings
from cgmigrate.linking.merged_files import LinkedSites
from cgmigrate.linking.ownership import owned_sites
from cgmigrate.lint.candidates import Candidate
from cgmigrate.lint.diagnostics import FileEdits, SiteCase
from cgmigrate.lint.edit_sets import EditSet, FileGroup, Place
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.hybrid_models import SPEC_FLAG
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings, all_known
from cgmigrate.megatron.types import Capture, Reader, Rejected
from cgmigrate.text.edits import Edit, OverlapError, apply

Quotes = Mapping[Place, Mapping[str, str]]
"""How the settings of sites read after their rewrite, by name."""


PathInFile = tuple[int, tuple[str, ...]]
"""The number of a file in its group, and the path of a site."""


class UnwritableError(Exception):
    """The text cannot be changed safely; the message says why."""


@dataclass(frozen=True, slots=True)
class EditedText:
    """A file with some edit sets applied."""

    path: str
    text: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class EditedGroup:
    """The texts of a group with some edit sets applied, as they were parsed again."""

    texts: Mapping[int, EditedText]
    """By the number of the file."""
    quotes: Quotes


def validated(
    group: FileGroup, cases: Mapping[Place, SiteCase], candidates: Sequence[Candidate]
) -> tuple[list[Candidate], EditedGroup | None]:
    """Return the candidates with what prevents them from being written, and the texts with all that remain.

    All are tried at once. Only if that fails is each tried alone, and then there are no texts with all of them.
    """
    possible = [one for one in candidates if one.is_written]
    if not possible:
        return list(candidates), None
    try:
        together = edited(group, cases, [one.edit_set for one in possible])
    except UnwritableError:
        return [_tried_alone(one, group, cases) if one.is_written else one for one in candidates], None
    quotes = together.quotes
    return [replace(one, quotes=quotes) if one.is_written else one for one in candidates], together


def _tried_alone(candidate: Candidate, group: FileGroup, cases: Mapping[Place, SiteCase]) -> Candidate:
    try:
        return replace(candidate, quotes=edited(group, cases, [candidate.edit_set]).quotes)
    except UnwritableError as error:
        return replace(candidate, write_error=str(error))


def with_edits(
    candidates: Sequence[Candidate], group: FileGroup, cases: Mapping[Place, SiteCase], together: EditedGroup | None
) -> list[Candidate]:
    """Return candidates whose fixes have the edits that write each of them alone.

    Edits that are not part of the texts ``together`` (another import, say) are parsed once for all fixes that need
    them; a fix whose edits cannot be written alone has none.
    """
    written = [one for one in candidates if one.is_written]
    if together is not None and len(written) == 1:
        # Its edits are those that write all.
        texts = (together.texts[at] for at in written[0].edit_set.files)
        edits = tuple(FileEdits(text.path, text.edits) for text in texts)
        return [replace(one, fix=replace(one.fix, edits=edits)) if one.is_written else one for one in candidates]
    known = {(text.path, edit) for text in together.texts.values() for edit in text.edits} if together else set()
    tried: dict[frozenset[tuple[str, Edit]], bool] = {}
    return [
        replace(one, fix=replace(one.fix, edits=_edits_alone(one, group, cases, known, tried)))
        if one.is_written
        else one
        for one in candidates
    ]


def edited(group: FileGroup, cases: Mapping[Place, SiteCase], sets: Iterable[EditSet]) -> EditedGroup:
    """Return the texts with edit sets applied, each parsed again and evaluated. Raises UnwritableError."""
    rewrites: dict[int, dict[int, Settings]] = {}
    members: set[Place] = set()
    for one in sets:
        members.update(one.members)
        for (number, index), settings in one.rewrites.items():
            rewrites.setdefault(number, {})[index] = settings
    texts: dict[int, EditedText] = {}
    quotes: dict[Place, Mapping[str, str]] = {}
    for number, own in rewrites.items():
        file = group.files[number]
        texts[number] = EditedText(file.path, *_edited_text(file, own))
        quotes |= {(number, index): text for index, text in file.document.quotes(own).items()}
    planned = {
        place: case.after if place in members and case.after is not None else case.before
        for place, case in cases.items()
    }
    # With another program, a command line has another path.
    renamed = {number for number, own in rewrites.items() if any(SPEC_FLAG in one for one in own.values())}
    if place := _captured_otherwise(group, cases, planned, texts.keys(), renamed):
        raise UnwritableError(f"the edited text would capture something else at {place}")
    return EditedGroup(texts, quotes)


def _edits_alone(
    candidate: Candidate,
    group: FileGroup,
    cases: Mapping[Place, SiteCase],
    known: Set[tuple[str, Edit]],
    tried: dict[frozenset[tuple[str, Edit]], bool],
) -> tuple[FileEdits, ...]:
    edit_set = candidate.edit_set
    try:
        files = [
            FileEdits(group.files[at].path, _edits(group.files[at], edit_set.in_file(at))) for at in edit_set.files
        ]
        further = frozenset((file.path, edit) for file in files for edit in file.edits) - known
        if further and further not in tried:
            tried[further] = False
            edited(group, cases, [edit_set])
            tried[further] = True
    except UnwritableError:
        return ()
    return tuple(files) if tried.get(further, True) else ()


def _edits(file: ExaminedFile, own: Mapping[int, Settings]) -> tuple[Edit, ...]:
    """Return the edits of one file that write some settings, by index of the site. Raises UnwritableError."""
    try:
        return tuple(file.document.edits(own))
    except CannotEditError as error:
        raise UnwritableError(str(error)) from error


def _edited_text(file: ExaminedFile, own: Mapping[int, Settings]) -> tuple[str, tuple[Edit, ...]]:
    edits = _edits(file, own)
    try:
        text = apply(file.document.text, edits)
    except OverlapError as error:
        raise UnwritableError(f"two changes meet: {error}") from error
    if error_text := file.document.check(text, own):
        raise UnwritableError(error_text)
    return text, edits


def _captured_otherwise(
    group: FileGroup,
    cases: Mapping[Place, SiteCase],
    planned: Mapping[Place, Settings],
    changed: Collection[int],
    renamed: Set[int],
) -> str:
    """Return a place at which the edited texts capture something else than planned, empty if there is none.

    Sites are compared by their paths, since of two objects either may come first in the edited text. Those of the files
    in ``renamed`` are compared together.
    """
    actual: defaultdict[PathInFile, list[Settings]] = defaultdict(list)
    for (number, where), settings in _settings_by_path(group, changed).items():
        actual[number, () if number in renamed else where] += settings
    expected: defaultdict[PathInFile, list[Settings]] = defaultdict(list)
    readers: defaultdict[PathInFile, set[Reader]] = defaultdict(set)
    for (number, index), case in cases.items():
        path = (number, () if number in renamed else case.site.path)
        expected[path].append(planned[number, index])
        readers[path].add(case.reader)
    without_case = {
        (number, site.path)
        for number, file in enumerate(group.files)
        for site in file.document.sites
        if (number, site.index) not in cases
    }
    target = group.files[0].context.target
    for path, settings in expected.items():
        edited_settings = actual.get(path, [])
        if path in without_case or len(readers[path]) > 1 or not all_known((*settings, *edited_settings)):
            continue
        (reader,) = readers[path]
        if _captures(settings, target, reader) != _captures(edited_settings, target, reader):
            return f"{group.files[path[0]].path}: {'.'.join(path[1]) or 'the top level'}"
    return ""


def _settings_by_path(group: FileGroup, changed: Collection[int]) -> Mapping[PathInFile, list[Settings]]:
    """Return the settings in effect at each path of each file, as the texts have them after their edits."""
    sites = []
    for number, file in enumerate(group.files):
        after = file.document.edited if number in changed else file.document
        assert after is not None, "it was checked"
        sites.append(owned_sites(after.sites, after.top_level, file.context.ecosystems)[0])
    places = [(number, site.path) for number, of_file in enumerate(sites) for site in of_file]
    linked = group.merge.linked(sites) if group.merge else None
    merged = effective(linked.sites, linked.stacks) if linked else effective(sites[0])
    result: defaultdict[PathInFile, list[Settings]] = defaultdict(list)
    for site, place in zip(linked.sites if linked else sites[0], places, strict=True):
        result[place].append(merged[site.index])
    if linked:
        for number, path, settings in _inherited_only(linked):
            result[number, path].append(settings)
    return result


def _inherited_only(linked: LinkedSites) -> Iterator[tuple[int, tuple[str, ...], Settings]]:
    """Yield the mappings of files that are merged of other files only: the file, the path, and the settings.

    A file whose last setting is deleted has such a mapping.
    """
    inherited = [one for one in linked.objects if one.own is None and one.entry.is_own and one.entry.number >= 0]
    in_files = effective(linked.sites) if inherited else {}
    for one in inherited:
        mount = one.entry.mount
        if one.path[: len(mount)] == mount:
            yield one.entry.number, one.path[len(mount) :], merged_settings(one.layers, in_files)


def _captures(settings: Sequence[Settings], target: Release, reader: Reader) -> set[Capture | Rejected]:
    """Return what sites capture. A site that loses its last setting is no site in the edited text."""
    return {capture_of(own, target, reader) for own in settings if own}

"""Proposals of key groups: the mappings of a project and the code that names their keys are changed in one edit set."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.python.document import is_written_in
from cgmigrate.documents.python.key_places import KeyForm, KeyNotFollowedError, KeyPlace
from cgmigrate.documents.python.source import last_name
from cgmigrate.documents.sites import CannotEditError, Site
from cgmigrate.linking.key_groups import KeyGroup, is_mapping
from cgmigrate.lint.diagnostics import Context, SiteCase
from cgmigrate.lint.edit_sets import FileGroup, Place, Proposal
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.kinds import rule_for
from cgmigrate.lint.site_examination import source_for
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.settings import FIELDS, Choice, Settings, Undecided
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.text.plurals import counted
from cgmigrate.text.spans import Span

# --- what writes capture together -----------------------------------------------------------------

MOST_PAIRS = 20_000
"""Pairs that are tried; a group with more is not proved."""


@dataclass(frozen=True, slots=True)
class Write:
    """What one place sets, as its text is and as it will be."""

    before: Settings
    after: Settings
    reader: Reader
    place: str


def counterexample(writes: Sequence[Write], context: Context) -> str:
    """Return the places of two writes that together capture something else after a rewrite, empty if none do."""
    distinct = list({_key(one): one for one in writes}.values())
    if open_one := next((one for one in distinct if not (_is_known(one.before) and _is_known(one.after))), None):
        return f"{open_one.place}, whose value is not known"
    if len(distinct) ** 2 > MOST_PAIRS:
        return f"{len(distinct)} different places, which are too many"
    for first in distinct:
        for second in distinct:
            if not _is_same(first, second, context):
                return f"{second.place} over {first.place}"
    return ""


def _is_same(first: Write, second: Write, context: Context) -> bool:
    """Return whether two writes capture the same in this order; what the source refuses shows nothing."""
    old, new = {**first.before, **second.before}, {**first.after, **second.after}
    if old == new:
        # What the target captures with it does not depend on the rewrite.
        return True
    was = capture_of(old, source_for(old, context), second.reader)
    return isinstance(was, Rejected) or was == capture_of(new, context.target, second.reader)


def _is_known(settings: Settings) -> bool:
    return not any(isinstance(value, (Undecided, Choice)) for value in settings.values())


def _key(write: Write) -> str:
    return repr((sorted(write.before.items()), sorted(write.after.items()), write.reader))


# --- key groups ------------------------------------------------------------

_SHOWN = (KeyForm.FIELD, KeyForm.SHOWN)
_READS = (KeyForm.KEY, KeyForm.ATTRIBUTE, KeyForm.GENERATED)


class CannotMoveError(Exception):
    """A group cannot move together; the message says why."""


class Proposed(NamedTuple):
    """Files with what their sites would get."""

    group: FileGroup
    proposals: list[Proposal]
    cases: dict[Place, SiteCase]


def moved_together(
    group: FileGroup, proposals: list[Proposal], cases: dict[Place, SiteCase], keys: KeyGroup
) -> Proposed:
    """Return proposals in which the mappings of a group and the code that names their keys change together.

    Raises CannotMoveError.
    """
    return _Move(Proposed(group, proposals, cases), keys).made()


@dataclass(frozen=True)
class _Move:
    proposed: Proposed
    keys: KeyGroup

    @property
    def _files(self) -> Sequence[ExaminedFile]:
        return self.proposed.group.files

    @cached_property
    def _mappings(self) -> dict[Place, Site]:
        """The mappings with a deprecated key."""
        return {
            (number, site.index): site
            for number, file in enumerate(self._files)
            for site in file.document.sites
            if is_mapping(site) and not self.keys.names.isdisjoint(site.own)
        }

    @cached_property
    def _joined(self) -> list[Proposal]:
        return [one for one in self.proposed.proposals if not self._mappings.keys().isdisjoint(one.members)]

    @cached_property
    def _rewrites(self) -> dict[Place, Settings]:
        return {place: own for one in self._joined for place, own in one.rewrites.items()}

    def made(self) -> Proposed:
        """Return the proposals with those of the group as one. Raises CannotMoveError."""
        self._check_mappings()
        new = self._replacements()
        same = frozenset(old for old, names in new.items() if len(names) == 1 and self._keeps_value(old, names[0]))
        self._check_new_names(new)
        files, places = list(self._files), list[Place]()
        for number, file in enumerate(self._files):
            if isinstance(file.document, PythonDocument):
                try:
                    files[number], added = self._with_code(file, file.document, new, same)
                except (KeyNotFollowedError, CannotEditError) as error:
                    line = f":{error.line}" if isinstance(error, KeyNotFollowedError) else ""
                    raise CannotMoveError(f"{file.path}{line} ({error})") from error
                places += [(number, index) for index in added]
        return self._as_one_set(files, places)

    # --- the mappings -----------------------------------------------------------------------------

    def _check_mappings(self) -> None:
        """Raise CannotMoveError if a mapping stays as it is, or two of them are not sound together."""
        moving = {place for one in self._joined for place in one.members}
        for place in self._mappings:
            if place not in moving:
                raise CannotMoveError(f"{self._name(place)} keeps its settings")
        writes = list(self._writes)
        reader = next(iter(writes)).reader
        writes += [
            Write(site.own, site.own, reader, file.path)
            for file in self._files
            if isinstance(file.document, PythonDocument)
            for site in _others_in(file)
        ]
        if pair := counterexample(writes, self._files[0].context):
            raise CannotMoveError(f"{pair} would capture something else")

    @cached_property
    def _writes(self) -> Sequence[Write]:
        """What the mappings set."""
        return [
            Write(site.own, self._after(place), self.proposed.cases[place].reader, self._name(place))
            for place, site in self._mappings.items()
        ]

    def _after(self, place: Place) -> Settings:
        return self._rewrites.get(place, self._mappings[place].own)

    def _name(self, place: Place) -> str:
        file = self._files[place[0]]
        site = self._mappings[place]
        first = min((use.span for use in site.written), key=lambda span: span.start, default=site.span)
        line = first.lines(file.document.text)[0]
        return f"{file.path}:{line}"

    def _replacements(self) -> dict[str, list[str]]:
        """Return each old key with the new ones that the mappings have instead."""
        catalogue = self._files[0].document.catalogue
        new: dict[str, dict[str, None]] = {}
        for place, site in self._mappings.items():
            after = self._after(place)
            for old in self.keys.names & site.own.keys() - after.keys():
                added = [name for name in after if name not in site.own]
                names = [name for name in added if old in catalogue.all_older_names(name)]
                # A value that is none of its successors decides about another setting.
                names = names or [name for name in added if name in catalogue[old].line_for]
                new.setdefault(old, {}).update(dict.fromkeys(names))
        every = {name for names in new.values() for name in names}
        for old in self.keys.names:
            if not new.get(old):
                # No mapping keeps its value, and it is named with one that is replaced by the same.
                new[old] = dict.fromkeys(name for name in catalogue[old].replaced_by if name in every)
        return {
            old: sorted(names, key=lambda name: FIELDS.index(name) if name in FIELDS else len(FIELDS))
            for old, names in new.items()
        }

    def _keeps_value(self, old: str, new: str) -> bool:
        """Return whether each mapping with a key has its value under the new name, and nothing else changes."""
        having = [(place, site) for place, site in self._mappings.items() if old in site.own]
        for place, site in having:
            after = self._after(place)
            rest = {name: value for name, value in after.items() if name != new}
            others = {name: value for name, value in site.own.items() if name != old}
            if new in site.own or after.get(new) != site.own[old] or not rest.keys() <= others.keys() | {*FIELDS}:
                return False
        return bool(having)

    def _check_new_names(self, new: Mapping[str, Sequence[str]]) -> None:
        """Raise CannotMoveError if something has or reads a new key already, beside the mappings that get it."""
        every = {name for names in new.values() for name in names}
        taken = next((name for name in every if name in self.keys.others), "")
        if taken and self.keys.code:
            raise CannotMoveError(f"{self.keys.others[taken]} has `{taken}` already")
        before = {name for site in self._mappings.values() for name in site.own}
        code = [file for file in self._files if isinstance(file.document, PythonDocument)]
        listed = [(file, one) for file in code for one in _places_in(file, (*new, *every)) if one.form not in _SHOWN]
        # An old name that no code reads has no effect: no code may get what replaces it.
        idle = {name for old in new if old in before - {one.name for _, one in listed} for name in new[old]}
        for file, place in listed:
            is_known = place.name in before and not self._is_added(place.name)
            is_known = is_known or place.name in new or place.form is KeyForm.ELEMENT
            is_part = not idle.isdisjoint(new.get(place.name, (place.name,)))
            if is_part or not is_known:
                line = place.span.lines(file.document.text)[0]
                how = "and not each old key" if is_part else "already"
                raise CannotMoveError(f"{file.path}:{line} reads `{place.name}` {how}")

    def _is_added(self, name: str) -> bool:
        """Return whether a mapping gets a key that it has not."""
        return any(name in self._after(place) and name not in site.own for place, site in self._mappings.items())

    # --- the code ---------------------------------------------------------------------------------

    def _with_code(
        self, file: ExaminedFile, document: PythonDocument, new: Mapping[str, Sequence[str]], same: frozenset[str]
    ) -> tuple[ExaminedFile, list[int]]:
        """Return a file of code with the diagnostics about the keys that it names, and their indices."""
        places = [one for one in document.key_places(new.keys()) if new[one.name] or one.form in _READS]
        had = {name for site in self._mappings.values() for name in site.own}
        if gone := next((one for one in places if one.name in had and not new[one.name] and one.form in _READS), None):
            line = gone.span.lines(document.text)[0]
            raise KeyNotFollowedError(f"`{gone.name}` is read, and would be deleted", line)
        self._check_fields(document, {name for name in had if name in new and not new[name]})
        self._check_lists(places, same, document)
        self._check_values(places, new, file)
        problems = document.rename_keys(places, new, same, self._where())
        with_rules = [(problem, rule_for(problem.kind, file.context.rules)) for problem in problems]
        if any(rule is None for _, rule in with_rules):
            raise CannotMoveError(f"no rule reports the code that uses these keys ({file.path})")
        spans = [document.span_of(place) for place in places]
        others = without_spans(file, spans) if spans else file
        own = tuple((problem, rule) for problem, rule in with_rules if rule)
        return replace(others, problems=(*others.problems, *own)), [problem.index for problem in problems]

    def _check_fields(self, document: PythonDocument, gone: Collection[str]) -> None:
        """Raise KeyNotFollowedError if a class would have another value, or none, for a key that is deleted."""
        for place in document.key_places(gone):
            values = [site.own[place.name] for site in self._mappings.values() if place.name in site.own]
            if place.form is KeyForm.FIELD and not _may_be_absent(place, values):
                line = place.span.lines(document.text)[0]
                raise KeyNotFollowedError(f"`{place.name}` is declared with another default, or none", line)

    def _check_lists(self, places: Iterable[KeyPlace], same: frozenset[str], document: PythonDocument) -> None:
        """Raise KeyNotFollowedError if code copies only some of the settings that a mapping has."""
        captured = document.catalogue.captures
        needed = {name for site in self._mappings.values() for name in site.own if name in captured}
        for place in places:
            if place.form is KeyForm.ELEMENT and place.name not in same:
                elements = place.owner.elts if isinstance(place.owner, (ast.List, ast.Tuple, ast.Set)) else ()
                names = {one.value for one in elements if isinstance(one, ast.Constant)}
                if missing := sorted(needed - names):
                    line = place.span.lines(document.text)[0]
                    raise KeyNotFollowedError(f"the list has no `{missing[0]}`", line)

    def _check_values(self, places: Iterable[KeyPlace], new: Mapping[str, Sequence[str]], file: ExaminedFile) -> None:
        """Raise KeyNotFollowedError if code gives a key a value that is something else under its new name."""
        changed = [write for write in self._writes if write.before != write.after]
        for place in places:
            line = place.span.lines(file.document.text)[0]
            for value in place.gets.constants if place.gets else ():
                after = dict.fromkeys(new[place.name], value)
                own = Write({place.name: value}, after, changed[0].reader, f"{file.path}:{line}")
                for one in changed:
                    if pair := counterexample((one, own), file.context):
                        raise KeyNotFollowedError(f"`{value}` would be something else: {pair}", line)

    def _where(self) -> str:
        """Return the mappings in words."""
        first = min(self._mappings)
        more = len({number for number, _ in self._mappings}) - 1
        return self._name(first) + (f" and {counted(more, 'more file')}" if more else "")

    # --- the set ----------------------------------------------------------------------------------

    def _as_one_set(self, files: Sequence[ExaminedFile], places: Sequence[Place]) -> Proposed:
        members = [place for one in self._joined for place in one.members]
        together = Proposal((*members, *places), {**self._rewrites, **{place: {} for place in places}})
        kept = {(number, index) for number, file in enumerate(files) for index in file.cases}
        others = [one for one in self.proposed.proposals if one not in self._joined and kept.issuperset(one.members)]
        cases = {place: case for place, case in self.proposed.cases.items() if place in kept}
        return Proposed(replace(self.proposed.group, files=files), [together, *others], cases)


def _may_be_absent(place: KeyPlace, values: Sequence[object]) -> bool:
    """Return whether the class of a field takes a mapping without it for one with each of some values."""
    if not isinstance(place.owner, ast.ClassDef):
        return False
    if any(last_name(base).endswith("TypedDict") for base in place.owner.bases):
        return True
    for one in place.owner.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=default)) if name == place.name:
                return all(value == default for value in values)
    return False


def _places_in(file: ExaminedFile, names: Iterable[str]) -> Sequence[KeyPlace]:
    assert isinstance(file.document, PythonDocument)
    try:
        return file.document.key_places(frozenset(names))
    except KeyNotFollowedError as error:
        raise CannotMoveError(f"{file.path}:{error.line} ({error})") from error


def with_key_places(file: ExaminedFile, names: frozenset[str]) -> ExaminedFile:
    """Return a file of code with where it names some keys."""
    if not isinstance(file.document, PythonDocument):
        return file
    spans = [file.document.span_of(place) for place in _places_in(file, names)]
    spans += [written.span for site in _others_in(file) for written in site.written]
    return replace(file, relations=replace(file.relations, key_places=tuple(spans)))


def _others_in(file: ExaminedFile) -> list[Site]:
    """Return what code sets under names that stay."""
    deprecated = file.document.catalogue.deprecated
    return [site for site in file.document.sites if site.origin is not None and deprecated.isdisjoint(site.own)]


def without_spans(file: ExaminedFile, spans: Sequence[Span]) -> ExaminedFile:
    """Return a file without what there is to say about the code in some spans."""

    def is_inside(span: Span) -> bool:
        return any(span.start < one.end and one.start < span.end for one in spans)

    sites = {site.index for site in file.document.sites if is_written_in(site, spans)}
    return replace(
        file,
        problems=tuple(one for one in file.problems if not is_inside(one[0].span)),
        cases={index: case for index, case in file.cases.items() if index not in sites},
        diagnostics=tuple(one for one in file.diagnostics if not is_inside(one.span)),
        skipped=tuple(one for one in file.skipped if not is_inside(one[0].span)),
    )

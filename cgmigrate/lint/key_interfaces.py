"""Proposals of key interfaces: YAML files and the code that copies their keys are changed in one edit set.

The code has to copy every setting that a mapping has, before and after. Then what gets the values has the settings of
the mapping, and the proof of the YAML files is that of the code, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cgmigrate.documents.nesting import outer_of
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.python.key_copies import KeyCopier
from cgmigrate.documents.python.key_copy_edits import KeyCopyText
from cgmigrate.documents.sites import CannotEditError, Site
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking.key_interfaces import KeyInterface, fills
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.lint.edit_sets import FileGroup, Place, Proposal
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.kinds import rule_for
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import FIELDS
from cgmigrate.text.plurals import counted
from cgmigrate.text.spans import Span


class NotCopiedError(Exception):
    """Code does not copy a setting that it would have to copy; the message says which and where."""


class Proposed(NamedTuple):
    """A group with what its sites would get."""

    group: FileGroup
    proposals: list[Proposal]
    cases: dict[Place, SiteCase]


def with_copiers(
    group: FileGroup, proposals: list[Proposal], cases: dict[Place, SiteCase], interface: KeyInterface
) -> Proposed:
    """Return proposals in which the mappings of an interface and the code that copies their keys change together.

    If the code cannot be changed, the mappings get a risk that says why.
    """
    proposed = Proposed(group, proposals, cases)
    fillers = _fillers(group, interface)
    joined = [one for one in proposals if not fillers.isdisjoint(one.members)]
    if not joined:
        return proposed
    try:
        return _Changes(proposed, interface, fillers, joined).made()
    except (NotCopiedError, CannotEditError) as error:
        return _with_risk(proposed, joined, str(error))


def _with_risk(proposed: Proposed, proposals: Iterable[Proposal], risk: str) -> Proposed:
    """Return what sites would get, with a risk for those of some proposals."""
    members = {place for one in proposals for place in one.members}
    cases = {place: case.risk(risk) if place in members else case for place, case in proposed.cases.items()}
    return Proposed(proposed.group, proposed.proposals, cases)


def _fillers(group: FileGroup, interface: KeyInterface) -> set[Place]:
    """Return the mappings whose deprecated settings are read by the code of an interface only."""
    copiers = [one for file in group.files for one in _copiers_of(file)]
    return {
        (number, site.index)
        for number, file in enumerate(group.files)
        for site in file.document.sites
        if site.commands or isinstance(outer_of(file.document), YamlDocument)
        if file.document.catalogue.deprecated & site.own.keys() <= interface.followed
        and any(fills(site, copier) for copier in copiers)
    }


def _is_inside(span: Span, others: Iterable[Span]) -> bool:
    return any(other.start <= span.start < other.end for other in others)


def without_accepted(file: ExaminedFile) -> ExaminedFile:
    """Return a file without diagnostics about code that has each deprecated key under its new names, too.

    Which files use its lists and classes does not matter: they have both names.
    """
    document, catalogue = file.document, file.document.catalogue
    if not isinstance(document, PythonDocument):
        # Only a file without code that copies keys is read with its command lines.
        return file
    accepted = [
        copier
        for copier in document.every_copier()
        if all(newer_names(old, catalogue) & copier.names for old in copier.names & catalogue.deprecated)
    ]
    spans = [span for copier in accepted for span in document.spans_of(copier)]
    return _without(file, spans) if spans else file


def newer_names(old: str, catalogue: Catalogue) -> set[str]:
    """Return the captured settings that replace a deprecated one."""
    return {name for name in catalogue.captures if old in catalogue.older_names(name)}


def _without(file: ExaminedFile, spans: Sequence[Span]) -> ExaminedFile:
    """Return a file without what there is to say about the code in some spans."""
    sites = {site.index for site in file.document.sites if _is_inside(site.span, spans)}
    return replace(
        file,
        problems=tuple(one for one in file.problems if not _is_inside(one[0].span, spans)),
        cases={index: case for index, case in file.cases.items() if index not in sites},
        diagnostics=tuple(one for one in file.diagnostics if not _is_inside(one.span, spans)),
        skipped=tuple(one for one in file.skipped if not _is_inside(one[0].span, spans)),
    )


def _is_code(file: ExaminedFile) -> bool:
    return isinstance(file.document, PythonDocument)


def _copiers_of(file: ExaminedFile) -> Sequence[KeyCopier]:
    return file.document.key_copiers if isinstance(file.document, PythonDocument) else ()


@dataclass(frozen=True, slots=True)
class _Changes:
    """The changes of one interface: ``joined`` are the proposals for its mappings."""

    proposed: Proposed
    interface: KeyInterface
    fillers: Collection[Place]
    joined: Sequence[Proposal]

    def made(self) -> Proposed:
        """Return the proposals with those of the interface as one. Raises NotCopiedError and CannotEditError."""
        group = self.proposed.group
        files = [self._followed(number, file) for number, file in enumerate(group.files)]
        places: list[Place] = []
        names = {number: self._names_in(file) for number, file in enumerate(group.files) if _is_code(file)}
        every = {name for of_file in names.values() for of_copier in of_file.values() for name in of_copier}
        self._check_types()
        for number, of_file in names.items():
            if not of_file and not every:
                continue
            files[number], added = self._with_copies(files[number], of_file, sorted(every, key=FIELDS.index))
            places += [(number, index) for index in added]
        members = [place for one in self.joined for place in one.members]
        rewrites = {place: own for one in self.joined for place, own in one.rewrites.items()}
        together = Proposal((*members, *places), rewrites | {place: {} for place in places})
        others = [one for one in self.proposed.proposals if one not in self.joined]
        kept = {(number, index) for number, file in enumerate(files) for index in file.cases}
        cases = {
            place: case
            for place, case in self.proposed.cases.items()
            if place in kept or not isinstance(group.files[place[0]].document, PythonDocument)
        }
        others = [one for one in others if kept.issuperset(one.members)]
        return Proposed(replace(group, files=files), [together, *others], cases)

    def _followed(self, number: int, file: ExaminedFile) -> ExaminedFile:
        """Return a file whose mappings of the interface have no risk by the code that reads their keys."""
        own = frozenset(index for at, index in self.fillers if at == number)
        return replace(file, relations=replace(file.relations, followed=own)) if own else file

    def _names_in(self, file: ExaminedFile) -> dict[int, list[str]]:
        """Return the names that the copiers of a file have to copy as well, by their positions."""
        document = file.document
        assert isinstance(document, PythonDocument)
        names = {}
        for at, copier in enumerate(document.key_copiers):
            if filled := [place for place in sorted(self.fillers) if fills(self._site(place), copier)]:
                line = document.text.count("\n", 0, document.spans_of(copier)[0].start) + 1
                names[at] = self._names(copier, filled, f"{file.path}:{line}")
        return {at: of_copier for at, of_copier in names.items() if of_copier}

    def _with_copies(
        self, file: ExaminedFile, names: Mapping[int, Sequence[str]], every: Sequence[str]
    ) -> tuple[ExaminedFile, list[int]]:
        """Return a file of code with the diagnostics about what it copies, and their indices.

        ``every`` are the names that the code of all files is to copy: TypedDicts get these keys.
        """
        document = file.document
        assert isinstance(document, PythonDocument)
        written = dict.fromkeys(name for of_copier in names.values() for name in of_copier)
        problems = document.copy_keys(names, every, self._text(list(written) or every))
        with_rules = [(problem, rule_for(problem.kind, file.context.rules)) for problem in problems]
        if any(rule is None for _, rule in with_rules):
            raise NotCopiedError(f"no rule reports the code that copies its keys ({file.path})")
        others = _without(file, document.spans_of_copiers()) if problems else file
        own = tuple((problem, rule) for problem, rule in with_rules if rule)
        return replace(others, problems=(*others.problems, *own)), [problem.index for problem in problems]

    def _names(self, copier: KeyCopier, filled: Sequence[Place], place: str) -> list[str]:
        """Return the names that a copier has to copy as well. Raises NotCopiedError."""
        group, cases = self.proposed.group, self.proposed.cases
        joined = {place for one in self.joined for place in one.members}
        catalogue = group.files[0].document.catalogue
        captured = catalogue.captures
        needed: dict[str, None] = {}
        for filler in filled:
            case = cases.get(filler)
            if filler not in joined or case is None or case.after is None:
                continue
            if missing := sorted((case.before.keys() & captured) - copier.names):
                raise NotCopiedError(f"code copies its keys by name, but not `{missing[0]}` ({place})")
            needed |= dict.fromkeys(name for name in case.after if name in captured and name not in copier.names)
        unread = dict(self.interface.others)
        for filler in filled:
            before = cases[filler].before if filler in cases else self._site(filler).own
            unread |= dict.fromkeys(before, group.files[filler[0]].path)
        if name := next((name for name in needed if name in unread), ""):
            raise NotCopiedError(f"{unread[name]} has `{name}`, which the code does not copy yet ({place})")
        if needed:
            # Those who set a deprecated name may set the new ones tomorrow.
            newer = (
                name for old in sorted(copier.names & catalogue.deprecated) for name in newer_names(old, catalogue)
            )
            needed |= dict.fromkeys(name for name in newer if name not in copier.names and name not in unread)
        return sorted(needed, key=FIELDS.index)

    def _check_types(self) -> None:
        """Raise NotCopiedError if a TypedDict admits only some values of a setting that the mappings get."""
        cases = (self.proposed.cases.get(place) for one in self.joined for place in one.members)
        after = {name for case in cases if case is not None for name in case.after or ()}
        for file in self.proposed.group.files:
            for key_type in file.document.key_types if isinstance(file.document, PythonDocument) else ():
                for name, line in key_type.restricted():
                    if name in after:
                        raise NotCopiedError(f"a TypedDict admits only some values of `{name}` ({file.path}:{line})")

    def _site(self, place: Place) -> Site:
        return self.proposed.group.files[place[0]].document.sites[place[1]]

    def _text(self, names: Sequence[str]) -> KeyCopyText:
        """Return what the diagnostics of the code say."""
        group = self.proposed.group
        number, index = min(place for place in self.fillers)
        document = group.files[number].document
        line = document.text.count("\n", 0, document.sites[index].span.start) + 1
        more = len({number for number, _ in self.fillers}) - 1
        where = f"{group.files[number].path}:{line}" + (f" and {counted(more, 'more file')}" if more else "")
        new = ", ".join(f"`{name}`" for name in names)
        fix = f"name {new} as well" if names else "copy it if the mapping has it"
        return KeyCopyText(
            f"code copies the key `{{name}}` of {where} by its name",
            f"a TypedDict names the key `{{name}}` of {where}, which code copies by its name",
            fix,
        )

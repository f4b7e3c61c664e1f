"""Edit sets before they are text: sites that share settings are rewritten together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.inheritance import components
from cgmigrate.lint.diagnostics import Applicability, Reason, SiteCase
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.problems import risk_of
from cgmigrate.lint.relations import with_relations
from cgmigrate.lint.soundness import differ, order_dependence, proposed_rewrites
from cgmigrate.megatron.settings import Settings

Place = tuple[int, int]
"""The number of a file in its group, and the index of a site or problem of that file."""


@dataclass(frozen=True, slots=True)
class EditSet:
    """Sites that are rewritten together, or one problem with a replacement.

    ``rewrites`` are the own settings afterwards of what changes; ``members`` are all sites that share settings.
    """

    rewrites: Mapping[Place, Settings]
    members: tuple[Place, ...]
    applicability: Applicability
    because: tuple[str, ...] = ()

    def in_file(self, number: int) -> dict[int, Settings]:
        """Return the rewrites in one file of the group, by index."""
        return {index: own for (file, index), own in self.rewrites.items() if file == number}

    @property
    def files(self) -> tuple[int, ...]:
        """The numbers of the files that change."""
        return tuple(sorted({file for file, _ in self.rewrites}))


@dataclass(frozen=True, slots=True)
class Proposal:
    """The sites of a group that share settings, and the own settings that they get if the text allows it."""

    members: tuple[Place, ...]
    rewrites: Mapping[Place, Settings]


@dataclass(frozen=True, slots=True)
class Group:
    """Files that are planned together. ``sites`` are those of all files; their indices are positions among them."""

    files: Sequence[ExaminedFile]
    sites: Sequence[Site]
    offsets: Sequence[int]

    @classmethod
    def of(cls, files: Sequence[ExaminedFile]) -> Group:
        """Return the group of some files."""
        offsets = [0, *accumulate(len(file.sites) for file in files)]
        sites = [_moved(site, offset) for file, offset in zip(files, offsets, strict=False) for site in file.sites]
        return cls(files, sites, offsets)

    def place(self, index: int) -> Place:
        """Return the file and the index in it of a site of the group."""
        number = next(at for at, offset in enumerate(self.offsets[1:]) if index < offset)
        return number, index - self.offsets[number]

    def document(self, index: int) -> Document:
        """Return the document of a site of the group."""
        return self.files[self.place(index)[0]].document


def _moved(site: Site, offset: int) -> Site:
    if not offset:
        return site
    return replace(
        site,
        index=site.index + offset,
        inherits=tuple(index + offset for index in site.inherits),
        linked=tuple(index + offset for index in site.linked),
    )


def proposals_of(group: Group) -> tuple[list[Proposal], dict[Place, SiteCase]]:
    """Return what the sites of a group would get, and their cases with the reason where they get nothing."""
    cases = {
        file.sites[index].index + offset: case
        for file, offset in zip(group.files, group.offsets, strict=False)
        for index, case in file.cases.items()
    }
    proposals: list[Proposal] = []
    for component in components(group.sites):
        proposal, checked = _proposal(group, component, cases)
        cases |= checked
        if proposal is not None:
            proposals.append(proposal)
    return proposals, {group.place(index): case for index, case in cases.items()}


def _proposal(
    group: Group, component: Sequence[int], cases: Mapping[int, SiteCase]
) -> tuple[Proposal | None, dict[int, SiteCase]]:
    """Return the rewrite of sites that share settings, None if they stay as they are, and their cases."""
    own = {index: cases[index] for index in component if index in cases}
    number, first = group.place(component[0])
    by_branch = group.files[number].by_branch.get(first)
    if by_branch is None and not any(map(_changes, own.values())):
        return None, {}
    if reason := _block_of(group, component, own):
        return None, {index: case.block(reason) for index, case in own.items()}
    rewrites: Mapping[int, Settings]
    rewrites, own = proposed_rewrites(group.sites, own, component, group.files[number].context)
    if by_branch is not None:
        rewrites = {group.offsets[number] + index: settings for index, settings in by_branch.rewrites.items()}
        own = {index: _with_risks(case, by_branch.risks[case.site.index]) for index, case in own.items()}
    if any(case.blocked for case in own.values()):
        return None, own
    changed = {
        group.place(index): settings
        for index, settings in rewrites.items()
        if differ(settings, group.document(index).sites[group.place(index)[1]].own)
    }
    return Proposal(tuple(map(group.place, own)), changed), own


def _changes(case: SiteCase) -> bool:
    return case.final is not None and differ(case.final, case.before)


def _block_of(group: Group, component: Sequence[int], cases: Mapping[int, SiteCase]) -> str:
    """Return why sites that share settings cannot be rewritten, empty if nothing prevents it."""
    blocked = [index for index, case in cases.items() if case.blocked]
    without_reader = [index for index in component if index not in cases]
    if (index := next(iter((*blocked, *without_reader)), None)) is not None:
        line = group.document(index).text.count("\n", 0, group.sites[index].span.start) + 1
        return f"it shares settings with the mapping on line {line}, which cannot be rewritten"
    return order_dependence(list(cases.values()))


def _with_risks(case: SiteCase, risks: Sequence[Reason]) -> SiteCase:
    return replace(case, risks=(*case.risks, *(risk for risk in risks if risk not in case.risks)))


def edit_sets_of(
    group: Group, proposals: Sequence[Proposal], proposed: Mapping[Place, SiteCase]
) -> tuple[list[EditSet], dict[Place, SiteCase]]:
    """Return the edit sets of a group, those of its problems included, and the cases with all their risks."""
    cases = {place: _with_relations(group, place, case) for place, case in proposed.items()}
    sets = []
    for proposal in proposals:
        for place in proposal.members:
            # A rewrite is safe only if no other code sets or reads the same object.
            if risk := group.files[place[0]].document.risk(place[1]):
                cases[place] = cases[place].risk(risk)
        because = [reason.text for place in proposal.members for reason in cases[place].risks]
        for place in proposal.members if because else ():
            if not cases[place].risks:
                cases[place] = cases[place].risk("it shares settings with a mapping whose rewrite is not safe")
        applicability = Applicability.UNSAFE if because else Applicability.SAFE
        sets.append(EditSet(proposal.rewrites, proposal.members, applicability, tuple(dict.fromkeys(because))))
    return [*sets, *_sets_of_problems(group)], cases


def _with_relations(group: Group, place: Place, proposed: SiteCase) -> SiteCase:
    """Return a case with the risks that other files give it; those of its own captures follow."""
    file = group.files[place[0]]
    examined = file.cases[place[1]]
    related = with_relations(examined, file.relations, file.context)
    risks = (*related.risks, *proposed.risks[len(examined.risks) :])
    return replace(proposed, risks=risks, diagnostics=related.diagnostics)


def _sets_of_problems(group: Group) -> list[EditSet]:
    """Return an edit set for each problem that has a replacement."""
    sets = []
    for number, file in enumerate(group.files):
        for problem, _ in file.problems:
            if problem.replacement:
                risk = risk_of(problem, file.document, file.context)
                applicability = Applicability.UNSAFE if risk else Applicability.SAFE
                place = (number, problem.index)
                sets.append(EditSet({place: {}}, (place,), applicability, (risk,) if risk else ()))
    return sets

"""Edit sets before they are text: sites that share settings are rewritten together or not at all."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from cgmigrate.documents.changes import changed_names, differ
from cgmigrate.documents.sites import Document, Problem, Site
from cgmigrate.linking.branches import shown_value
from cgmigrate.linking.inheritance import Stacks, components, contributions, effective, wrote
from cgmigrate.linking.merged_files import LinkedSites, MergedObject, MergedSites
from cgmigrate.linking.ownership import Owner
from cgmigrate.lint.diagnostics import Applicability, Reason, SiteCase
from cgmigrate.lint.entry_proofs import entry_problem
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.identity import set_id
from cgmigrate.lint.problem_diagnostics import risk_of
from cgmigrate.lint.relations import with_relations
from cgmigrate.lint.soundness import order_dependence, proposed_rewrites, replaced_risk
from cgmigrate.megatron.settings import FIELDS, Settings
from cgmigrate.megatron.types import Reader

ABSENT = object()
_Cases = Mapping[int, SiteCase]
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
class FileGroup:
    """Files that are planned together. ``sites`` are those of all files; their indices are positions among them."""

    files: Sequence[ExaminedFile]
    sites: Sequence[Site]
    offsets: Sequence[int]
    merge: MergedSites | None = None
    """How the sites of a file are merged with those of others, None for a single file."""
    stacks: Stacks = field(default_factory=dict)
    objects: Mapping[int, Sequence[MergedObject]] = field(default_factory=dict)
    """The mappings into which a site is merged, by the index of the site."""

    @classmethod
    def of(cls, files: Sequence[ExaminedFile], merge: MergedSites | None = None) -> FileGroup:
        """Return the group of some files. Sites of one object have one owner, and the settings of all of them."""
        offsets = [0, *accumulate(len(file.sites) for file in files)]
        if merge is None:
            (file,) = files
            return cls(files, file.sites, offsets)
        linked = merge.linked([file.sites for file in files])
        sites, objects = linked.sites, dict[int, list[MergedObject]]()
        for one in linked.objects:
            for index in one.layers:
                objects.setdefault(index, []).append(one)
        merged = effective(sites, linked.stacks)
        owners = _shared_owners(sites, linked, [owner for file in files for owner in file.owners])
        spans = list(pairwise(offsets))
        return cls(
            [
                file.with_merged(owners[start:end], {index - start: merged[index] for index in range(start, end)})
                for file, (start, end) in zip(files, spans, strict=True)
            ],
            sites,
            offsets,
            merge,
            linked.stacks,
            objects,
        )

    def place(self, index: int) -> Place:
        """Return the file and the index in it of a site of the group."""
        number = bisect_right(self.offsets, index) - 1
        return number, index - self.offsets[number]

    def components(self) -> list[list[int]]:
        """Return the sites that share settings, each after those with which it is merged."""
        layers = {one.layers: None for every in self.objects.values() for one in every}
        return components(self.sites, layers, self.stacks)

    def objects_of(self, component: Sequence[int]) -> list[MergedObject]:
        """Return the mappings into which some sites are merged."""
        return list({id(one): one for index in component for one in self.objects.get(index, ())}.values())

    def sources(self, index: int) -> tuple[int, ...]:
        """Return the sites from which a site of the group inherits, the nearest one first."""
        return (*self.sites[index].inherits, *reversed(self.stacks[index].below if index in self.stacks else ()))

    def path(self, index: int) -> str:
        """Return the path of the file of a site of the group."""
        return self.files[self.place(index)[0]].path

    def name(self, index: int) -> str:
        """Return where a site of the group is, in words: its line, with its file if there are several."""
        file = self.files[self.place(index)[0]]
        line = file.document.text.count("\n", 0, self.sites[index].span.start) + 1
        return f"on line {line}" if self.merge is None else f"in {file.path}:{line}"

    def document(self, index: int) -> Document:
        """Return the document of a site of the group."""
        return self.files[self.place(index)[0]].document


def _shared_owners(sites: Sequence[Site], linked: LinkedSites, owners: Sequence[Owner]) -> list[Owner]:
    """Return the owners of sites; one that is ambiguous is that of the sites that its settings are merged with.

    So is that of a site whose file is merged at another place only: its path in its file shows nothing.
    """
    result = list(owners)
    moved = _moved_sites(sites, linked)
    for component in components(sites, [one.layers for one in linked.objects]):
        at_place = [index for index in component if index not in moved]
        known = [owners[index] for index in at_place or component if owners[index].ecosystem is not None]
        if len({owner.ecosystem.name for owner in known if owner.ecosystem}) == 1:
            for index in component:
                is_known = result[index].ecosystem and (index not in moved or not at_place)
                result[index] = result[index] if is_known else known[0]
    return result


def _moved_sites(sites: Sequence[Site], linked: LinkedSites) -> set[int]:
    """Return the sites that other files merge, and only at another path than that in their own file."""
    others = [(index, one.path) for one in linked.objects for index in one.layers if one.own != index]
    at_place = {index for index, path in others if sites[index].path == path}
    return {index for index, _ in others} - at_place


def proposals_of(group: FileGroup) -> tuple[list[Proposal], dict[Place, SiteCase]]:
    """Return what the sites of a group would get, and their cases with the reason where they get nothing."""
    cases = {
        index + offset: case
        for file, offset in zip(group.files, group.offsets, strict=False)
        for index, case in file.cases.items()
    }
    proposals: list[Proposal] = []
    for component in group.components():
        proposal, checked = _proposal(group, component, cases)
        cases |= checked if proposal is not None else _as_sets(group, checked)
        if proposal is not None:
            proposals.append(proposal)
    return proposals, {group.place(index): case for index, case in cases.items()}


def _as_sets(group: FileGroup, cases: Mapping[int, SiteCase]) -> dict[int, SiteCase]:
    """Return the cases of sites that share settings; those of several files with one reason are one withheld set."""
    by_reason: dict[str, list[int]] = {}
    for index, case in cases.items():
        if case.blocked and not case.blocked.rule:
            by_reason.setdefault(case.blocked.text, []).append(index)
    result = dict(cases)
    for indices in by_reason.values():
        if len({group.path(index) for index in indices}) > 1:
            places = sorted(f"{group.path(index)}\0{group.sites[index].path}" for index in indices)
            for index in indices:
                result[index] = replace(result[index], withheld_set=set_id("\0".join(places)))
    return result


def _proposal(
    group: FileGroup, component: Sequence[int], cases: Mapping[int, SiteCase]
) -> tuple[Proposal | None, dict[int, SiteCase]]:
    """Return the rewrite of sites that share settings, None if they stay as they are, and their cases.

    Every file is judged by itself, and with those that it is merged with.
    """
    own = {index: cases[index] for index in component if index in cases}
    return _rewrite(group, component, own)


def _rewrite(
    group: FileGroup, component: Sequence[int], own: dict[int, SiteCase]
) -> tuple[Proposal | None, dict[int, SiteCase]]:
    """Return the rewrite of sites with these cases, None if they stay as they are, and the cases."""
    number, first = group.place(component[0])
    by_branch = group.files[number].by_branch.get(first)
    if by_branch is None and not any(map(_changes, own.values())):
        return None, {}
    if reason := _block_of(group, component, own):
        return None, {index: case.block(reason) for index, case in own.items()}
    rewrites: Mapping[int, Settings]
    rewrites, own = _planned(group, component, own)
    if by_branch is not None:
        rewrites = {group.offsets[number] + index: settings for index, settings in by_branch.rewrites.items()}
        own = {index: _with_risks(case, by_branch.risks[case.site.index]) for index, case in own.items()}
    if not _may_keep(group, own):
        return None, _all_blocked(group, own)
    if group.merge is not None:
        if reason := _restored(group, rewrites):
            return None, {index: case.block(reason) for index, case in own.items()}
        proved = _proved(group, component, own, rewrites)
        if any(case.blocked and not own[index].blocked for index, case in proved.items()):
            return None, proved
        own = _each_alone(group, component, rewrites, proved) if not group.merge.deep else proved
    changed = _written(group, rewrites)
    if group.merge is not None:
        own = {index: replace(case, notes=_additions(group, index, rewrites, own)) for index, case in own.items()}
    return Proposal(tuple(map(group.place, own)), changed), own


def _planned(group: FileGroup, sites: Sequence[int], cases: _Cases) -> tuple[dict[int, Settings], dict[int, SiteCase]]:
    """Return the own settings that sites get, and their cases."""
    context = group.files[group.place(sites[0])[0]].context
    rewrites, checked = proposed_rewrites(group.sites, cases, sites, context, group.stacks)
    return rewrites, {index: _with_overrides(group, index, case) for index, case in checked.items()}


def _are_merged(group: FileGroup, component: Iterable[int]) -> bool:
    """Return whether sites are mappings of files that are merged, and no code."""
    return group.merge is not None and all(group.sites[index].origin is None for index in component)


def _may_keep(group: FileGroup, cases: _Cases) -> bool:
    """Return whether the sites that cannot be rewritten have the same settings in effect although others change."""
    kept = [case for case in cases.values() if case.blocked]
    if not kept:
        return True
    changes = any(_changes(case) for case in cases.values() if not case.blocked)
    return _are_merged(group, cases) and changes and not any(differ(case.before, case.after or {}) for case in kept)


def _written(group: FileGroup, rewrites: Mapping[int, Settings]) -> dict[Place, Settings]:
    """Return the own settings of the sites that change."""
    changed: dict[Place, Settings] = {}
    for index, settings in rewrites.items():
        place, document = group.place(index), group.document(index)
        if differ(settings, document.sites[place[1]].own):
            changed[place] = settings
    return changed


def _proved(
    group: FileGroup, component: Sequence[int], cases: _Cases, rewrites: Mapping[int, Settings]
) -> dict[int, SiteCase]:
    """Return the cases of sites, blocked or with a risk where an entry point would capture something else."""
    before, after = contributions(group.sites, component, {}), contributions(group.sites, component, rewrites)
    context = group.files[group.place(component[0])[0]].context
    result = dict(cases)
    for merged in group.objects_of(component):
        if _is_case(merged):
            continue
        reader = cases[merged.layers[-1]].reader
        if reason := entry_problem(merged, before, after, reader, context):
            for index in result:
                result[index] = result[index].block(reason) if merged.entry.is_certain else result[index].risk(reason)
    return result


def _is_case(merged: MergedObject) -> bool:
    """Return whether a mapping is the case of a site, which is checked."""
    return len(merged.layers) == 1 or (merged.own is not None and merged.entry.is_own)


def _each_alone(
    group: FileGroup, component: Sequence[int], rewrites: Mapping[int, Settings], cases: _Cases
) -> dict[int, SiteCase]:
    """Return the cases of sites, with a risk where one captures something else without those of other files."""
    before, after = contributions(group.sites, component, {}), contributions(group.sites, component, rewrites)
    context = group.files[group.place(component[0])[0]].context
    risks = {
        index: replaced_risk(case, before[index], after[index], context)
        for index, case in cases.items()
        if not case.blocked
    }
    return {index: case.risk(risks[index]) if risks.get(index) else case for index, case in cases.items()}


def _additions(
    group: FileGroup, index: int, rewrites: Mapping[int, Settings], cases: Mapping[int, SiteCase]
) -> tuple[str, ...]:
    """Return a note for each setting that a site gets only since a file that is merged into it changes."""
    notes = []
    site = group.sites[index]
    for name, value in rewrites[index].items():
        below = group.sources(index)
        source = next((one for one in below if name in (cases[one].after or {})), None)
        source = next(iter(below), None) if source is None else source
        if (
            wrote(site, name, group.document(index).catalogue)
            or source is None
            or group.path(source) == group.path(index)
        ):
            continue
        after = (cases[source].after or {}).get(name, ABSENT)
        will = "will not set it" if after is ABSENT else f"will set it to `{shown_value(after)}`"
        added = group.document(index).spelled(group.place(index)[1], name, value)
        notes.append(f"`{added}` is added, since {group.path(source)} {will}")
    return tuple(notes)


def _all_blocked(group: FileGroup, cases: Mapping[int, SiteCase]) -> dict[int, SiteCase]:
    """Return the cases of sites that share settings; of several files, each says which file prevents the rewrite."""
    first = next(index for index, case in cases.items() if case.blocked)
    if group.merge is None:
        return dict(cases)
    reason = f"it shares settings with the mapping {group.name(first)}, which cannot be rewritten"
    return {index: case if index == first else case.block(reason) for index, case in cases.items()}


def _changes(case: SiteCase) -> bool:
    return case.final is not None and differ(case.final, case.before)


def _block_of(group: FileGroup, component: Sequence[int], cases: Mapping[int, SiteCase]) -> str:
    """Return why sites that share settings cannot be rewritten, empty if nothing prevents it."""
    blocked = [index for index, case in cases.items() if case.blocked]
    without_reader = [index for index in component if index not in cases]
    others = [] if _are_merged(group, component) else blocked
    if (index := next(iter((*others, *without_reader)), None)) is not None:
        return f"it shares settings with the mapping {group.name(index)}, which cannot be rewritten"
    if len({case.reader for case in cases.values()}) > 1:
        return "it shares settings with a file that another program reads"
    return order_dependence(list(cases.values())) or _disagreement(group, cases)


def _disagreement(group: FileGroup, cases: Mapping[int, SiteCase]) -> str:
    """Return why sites cannot be rewritten if one keeps a setting that another one changes, empty if none does."""
    kept = {index: case.kept.keys() for index, case in cases.items() if case.kept}
    changed = set().union(*(changed_names(one.before, one.final or one.before) for one in cases.values() if kept))
    index = next((index for index, names in kept.items() if names & changed), None)
    return (
        "" if index is None else f"it shares settings with the mapping {group.name(index)}, which cannot be rewritten"
    )


def _with_overrides(group: FileGroup, index: int, case: SiteCase) -> SiteCase:
    """Return a case, blocked if it changes and a command line overrides a setting of its mapping."""
    site = case.site
    # A site with flags or overrides is on a command line itself.
    if site.flags or (site.overrides and site.origin is None) or case.after is None or case.before == case.after:
        return case
    catalogue, related = group.document(index).catalogue, changed_names(case.before, case.after)
    related |= catalogue.captures if related & catalogue.captures else frozenset()
    # A setting that moves to another section is written by its key.
    keys = related | {name.rpartition(".")[2] for name in related}
    overrides = group.files[group.place(index)[0]].relations.overrides
    override = next((one for one in overrides if one.setting in keys and one.concerns(site.path, case.before)), None)
    return case.block(f"a command line overrides {override}, and has to change with it") if override else case


def _restored(group: FileGroup, rewrites: Mapping[int, Settings]) -> str:
    """Return why a rewrite is wrong that writes a deprecated setting where it was not written, empty if none does."""
    for index, settings in rewrites.items():
        site = group.sites[index]
        if group.document(index).catalogue.deprecated & (settings.keys() - site.own.keys()):
            return f"it shares settings with the mapping {group.name(index)}, which needs one under its old name"
    return ""


def _with_risks(case: SiteCase, risks: Sequence[Reason]) -> SiteCase:
    return replace(case, risks=(*case.risks, *(risk for risk in risks if risk not in case.risks)))


def edit_sets_of(
    group: FileGroup, proposals: Sequence[Proposal], proposed: Mapping[Place, SiteCase]
) -> tuple[list[EditSet], dict[Place, SiteCase]]:
    """Return the edit sets of a group, those of its problems included, and the cases with all their risks."""
    cases = {place: _with_relations(group, place, case) for place, case in proposed.items()}
    sets = []
    for proposal in proposals:
        sites = [place for place in proposal.members if place in cases]
        for place in sites:
            cases[place] = _with_object(group.files[place[0]], place[1], cases[place])
        rewritten = [place for place in sites if not cases[place].blocked]
        because = [reason.text for place in rewritten for reason in cases[place].risks]
        for place in rewritten if because else ():
            if not cases[place].risks:
                cases[place] = cases[place].risk("it shares settings with a mapping whose rewrite is not safe")
        applicability = Applicability.UNSAFE if because else Applicability.SAFE
        rewrites = proposal.rewrites if because else _in_proved_form(group, proposal.rewrites)
        cases |= {
            place: _in_form(cases[place], settings, rewrites[place])
            for place, settings in proposal.rewrites.items()
            if place in cases
        }
        sets.append(EditSet(rewrites, proposal.members, applicability, tuple(dict.fromkeys(because))))
    computed = _computed(group, cases)
    cases |= {place: _as_proved(cases[place], settings) for place, settings in computed.items()}
    sets += [EditSet({place: settings}, (place,), Applicability.SAFE) for place, settings in computed.items()]
    sets += _sets_of_problems(group, {place for one in proposals for place in one.members})
    return [_as_analysed(one, group, cases) for one in _joined(group, sets)], cases


def may_be_proved(one: EditSet, cases: Mapping[Place, SiteCase]) -> bool:
    """Return whether a set rewrites configurations of Megatron-Bridge that other code may set or read."""
    return bool(one.because) and all(
        place in cases
        and cases[place].may_be_proved
        and cases[place].reader is Reader.BRIDGE
        and changed_names(cases[place].before, one.rewrites.get(place, {})) & cases[place].before.keys() <= {*FIELDS}
        for place in one.members
    )


def _as_analysed(one: EditSet, group: FileGroup, cases: Mapping[Place, SiteCase]) -> EditSet:
    """Return a set that is not analysed if only the objects of the checkout, which are not followed, make it unsafe."""
    files = [group.files[number] for number in one.files]
    if not one.because or any(file.relations.is_followed for file in files):
        return one
    alone = {problem.index for file in files for problem, _ in file.problems if problem.may_be_proved}
    if may_be_proved(one, cases) or alone.issuperset(index for _, index in one.members):
        return replace(one, applicability=Applicability.NOT_ANALYSED, because=())
    return one


def _computed(group: FileGroup, cases: Mapping[Place, SiteCase]) -> dict[Place, Settings]:
    """Return the settings of the sites with values that are computed, as far as a proof shows what these are."""
    return {
        place: group.files[place[0]].relations.proved_rewrites[place[1]]
        for place, case in cases.items()
        if case.blocked and place[1] in group.files[place[0]].relations.proved
    }


def _as_proved(case: SiteCase, settings: Settings) -> SiteCase:
    """Return the case of a site with a value that is computed, and the settings that are proved to be right."""
    return replace(case, blocked=None, risks=(), diagnostics=(), final=settings)


def _in_proved_form(group: FileGroup, rewrites: Mapping[Place, Settings]) -> dict[Place, Settings]:
    """Return rewrites in the form in which they are proved."""
    return {
        place: group.files[place[0]].relations.proved_rewrites.get(place[1], settings)
        for place, settings in rewrites.items()
    }


def _in_form(case: SiteCase, first: Settings, proved: Settings) -> SiteCase:
    """Return a case whose rewrite writes the settings of another form than the first one."""
    if first.keys() == proved.keys() or case.after is None:
        return case
    kept = {name: value for name, value in case.after.items() if name not in first.keys() - proved.keys()}
    return replace(case, after=kept | {name: value for name, value in proved.items() if name not in first})


def _with_object(file: ExaminedFile, index: int, case: SiteCase) -> SiteCase:
    """Return a case with the risks of the other code that has its object: a rewrite is safe if that is proved."""
    if index in file.relations.proved:
        return case.proved()
    if reason := file.relations.not_proved.get(index, ""):
        case = case.risk(reason, of_object=True)
    risk = file.document.sites[index].elsewhere or file.document.risk(index)
    return case.risk(risk, of_object=True) if risk else case


def _joined(group: FileGroup, sets: Sequence[EditSet]) -> list[EditSet]:
    """Return the edit sets, those as one that are proved only together."""
    result: list[EditSet] = []
    by_number: dict[int, list[EditSet]] = {}
    for one in sets:
        number, index = one.members[0]
        proved = group.files[number].relations.proved.get(index)
        if proved is None or one.because:
            result.append(one)
        else:
            by_number.setdefault(proved, []).append(one)
    for number, together in by_number.items():
        rewrites = {place: settings for one in together for place, settings in one.rewrites.items()}
        members = tuple(place for one in together for place in one.members)
        if set(members) == _places_of(group, number):
            result.append(EditSet(rewrites, members, Applicability.SAFE))
        else:
            because = ("it is proved only together with a rewrite that is not possible",)
            result.append(EditSet(rewrites, members, Applicability.UNSAFE, because))
    return result


def _places_of(group: FileGroup, number: int) -> set[Place]:
    """Return the sites that are proved only together, by the number of the proof."""
    return {
        (at, index)
        for at, file in enumerate(group.files)
        for index, of_site in file.relations.proved.items()
        if of_site == number
    }


def _with_relations(group: FileGroup, place: Place, proposed: SiteCase) -> SiteCase:
    """Return a case with the risks that other files give it; those of its own captures follow."""
    file = group.files[place[0]]
    examined = file.cases[place[1]]
    related = with_relations(examined, file.relations, file.context)
    own, later = proposed.risks[: len(examined.risks)], proposed.risks[len(examined.risks) :]
    risks = (*own, *related.risks[len(examined.risks) :], *later)
    return replace(proposed, risks=risks, diagnostics=related.diagnostics)


def _sets_of_problems(group: FileGroup, settled: Collection[Place]) -> list[EditSet]:
    """Return an edit set for each problem that has a replacement and is not settled by another set."""
    sets = []
    for number, file in enumerate(group.files):
        for problem, _ in file.problems:
            is_proved = problem.if_proved and problem.index in file.relations.proved
            if (problem.replacement or is_proved) and (number, problem.index) not in settled:
                because = _risks_of_problem(file, problem)
                applicability = Applicability.UNSAFE if because else Applicability.SAFE
                place = (number, problem.index)
                sets.append(EditSet({place: {}}, (place,), applicability, because))
    return sets


def _risks_of_problem(file: ExaminedFile, problem: Problem) -> tuple[str, ...]:
    """Return why the fix of a problem is unsafe, empty if it is safe."""
    if problem.index in file.relations.proved:
        return ()
    risk = risk_of(problem, file.document, file.context)
    reason = file.relations.not_proved.get(problem.index, "")
    return tuple(dict.fromkeys(one for one in (risk, reason) if one))

"""One file as examined: its sites with their owners, the rules that match, and what each site would get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.documents.sites import Document, Problem, Site, Use
from cgmigrate.linking.branches import (
    CannotMergeError,
    Variant,
    first_branches,
    has_choice,
    merged_rewrites,
    undecided,
    variants,
)
from cgmigrate.linking.inheritance import components, effective
from cgmigrate.linking.ownership import Owner, owned_sites
from cgmigrate.lint.diagnostics import Context, LintDiagnostic, Reason, SiteCase
from cgmigrate.lint.problem_diagnostics import problems_of
from cgmigrate.lint.relations import Relations, with_relations
from cgmigrate.lint.rules import Rule
from cgmigrate.lint.site_examination import case_of
from cgmigrate.lint.soundness import order_dependence, proposed_rewrites
from cgmigrate.lint.unknown_owners import other_library, own_class, own_fields, unknown_owner_diagnostics
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader

# --- branches -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BranchRewrites:
    """The own settings that sites that share settings get, right for all branches of their values."""

    rewrites: Mapping[int, Settings]
    risks: Mapping[int, Sequence[Reason]]


def merge_branches(
    document: Document, sites: list[Site], owners: Sequence[Owner], context: Context
) -> tuple[list[Site], dict[int, BranchRewrites]]:
    """Return the sites without conditions, and the rewrites of those that had some, by index.

    Sites that can be migrated for all branches alike get the values of the first branches; the values of others
    become undecided.
    """
    by_branch: dict[int, BranchRewrites] = {}
    if not any(map(has_choice, sites)):
        return sites, by_branch
    result = list(sites)
    for component in components(sites):
        if not any(has_choice(sites[index]) for index in component):
            continue
        try:
            rewrites = _over_all_branches(document, sites, component, owners, context)
        except CannotMergeError as error:
            for index in component:
                result[index] = undecided(sites[index], str(error))
        else:
            for index in component:
                result[index] = first_branches(sites[index])
                by_branch[index] = rewrites
    return result, by_branch


def _over_all_branches(
    document: Document, sites: Sequence[Site], component: Sequence[int], owners: Sequence[Owner], context: Context
) -> BranchRewrites:
    """Examine sites once for each combination of branches. Raises CannotMergeError if these do not agree."""
    _require_editable([sites[index] for index in component], [owners[index] for index in component])
    rewrites: list[dict[int, Settings]] = []
    risks: dict[int, list[Reason]] = {index: [] for index in component}
    options = variants(sites, component)
    for variant in options:
        merged = effective(variant.sites)
        cases = {i: _case_of_branch(variant.sites[i], owners[i], merged[i], document, context) for i in component}
        own, cases = _rewrites(variant, component, cases, context)
        rewrites.append(own)
        for index, case in cases.items():
            risks[index] += [risk for risk in case.risks if risk not in risks[index]]
    return BranchRewrites(merged_rewrites(sites, component, options, rewrites), risks)


def _require_editable(sites: Sequence[Site], owners: Sequence[Owner]) -> None:
    """Raise CannotMergeError unless each site has one owner with a reader, and its text can be edited."""
    if any(owner.ecosystem is None or owner.ecosystem.reader is None or owner.conflict for owner in owners):
        raise CannotMergeError
    if reason := next(filter(None, (site.blocked_by for site in sites)), ""):
        raise CannotMergeError(reason)


def _case_of_branch(site: Site, owner: Owner, before: Settings, document: Document, context: Context) -> SiteCase:
    """Return the case of a site; no other file is merged with code."""
    return with_relations(case_of(site, owner, before, document, context), Relations(), context)


def _rewrites(
    variant: Variant, component: Sequence[int], cases: Mapping[int, SiteCase], context: Context
) -> tuple[dict[int, Settings], dict[int, SiteCase]]:
    """Return the own settings of sites with one combination of branches, and their cases.

    Raises CannotMergeError if one is blocked.
    """
    _require_unblocked(variant, cases)
    if reason := order_dependence(list(cases.values())):
        raise CannotMergeError(reason)
    rewrites, checked = proposed_rewrites(variant.sites, cases, component, context)
    _require_unblocked(variant, checked)
    return rewrites, checked


def _require_unblocked(variant: Variant, cases: Mapping[int, SiteCase]) -> None:
    if blocked := next((case.blocked for case in cases.values() if case.blocked), None):
        raise CannotMergeError(f"where {variant.conditions}: {blocked.text}")
    if reason := next((reason for case in cases.values() for reason in case.kept.values()), None):
        raise CannotMergeError(f"where {variant.conditions}: {reason.text or reason.help}")


# --- examination ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExaminedFile:
    """A file, its sites, and the cases of those that have a reader, by index."""

    path: str
    document: Document
    context: Context
    sites: Sequence[Site]
    """The sites without conditions, with all that they inherit."""
    owners: Sequence[Owner]
    by_branch: Mapping[int, BranchRewrites]
    """The rewrites of sites with conditions, by index."""
    problems: tuple[tuple[Problem, Rule], ...]
    relations: Relations
    cases: Mapping[int, SiteCase] = field(default_factory=dict)
    diagnostics: tuple[LintDiagnostic, ...] = ()
    """Those about sites whose owner is ambiguous, and about code that passes settings on."""
    skipped: tuple[tuple[Use, str], ...] = ()
    """Settings of other systems, each with its owner."""

    @property
    def has_fixes(self) -> bool:
        """Whether a rule with a fix matches one of its sites."""
        return any(match.fix for case in self.cases.values() for _, match in case.matches)

    def with_merged(self, owners: Sequence[Owner], merged: Mapping[int, Settings]) -> ExaminedFile:
        """Return the file with the owners and settings in effect that other files give its sites, by index."""
        same = all(merged[index] == case.before for index, case in self.cases.items())
        return self if same and list(owners) == list(self.owners) else _with_cases(self, owners, merged)


def examine(path: str, document: Document, context: Context) -> ExaminedFile:
    """Return a file with the owners and cases of its sites."""
    context = context.at(path)
    sites, owners = owned_sites(document.sites, document.top_level, context.ecosystems)
    sites, by_branch = merge_branches(document, sites, owners, context)
    file = ExaminedFile(
        path,
        document,
        context,
        sites,
        owners,
        by_branch,
        tuple(problems_of(document, context)),
        Relations(builds_on=document.builds_on),
    )
    return _with_cases(file, owners, effective(sites))


def _with_cases(file: ExaminedFile, owners: Sequence[Owner], merged: Mapping[int, Settings]) -> ExaminedFile:
    """Return a file with the cases of its sites; ``merged`` are the settings in effect at each, by index."""
    cases: dict[int, SiteCase] = {}
    diagnostics: list[LintDiagnostic] = []
    skipped = list(file.document.skipped)
    classes = set[object]()
    for site, owner in zip(file.sites, owners, strict=True):
        if library := other_library(site):
            skipped += [(written, library) for written in site.written]
        elif owner.ecosystem is None:
            own = own_class(site, file.document)
            if own is None or not (own.is_reported or own in classes):
                diagnostics += unknown_owner_diagnostics(site, file.document, file.context, own)
            else:
                old = (one for one in site.written if one.setting in file.document.catalogue.deprecated)
                skipped += [(written, f"`{own.name}`, which is reported elsewhere") for written in old]
            classes.add(own)
        elif owner.ecosystem.reader is None and not owner.conflict:
            skipped += [(written, owner.ecosystem.name) for written in site.written]
        else:
            cases[site.index] = _case(site, owner, merged[site.index], file)
            skipped += _of_older_releases(site, file) if file.context.assumed_source else ()
    return replace(file, owners=owners, cases=cases, diagnostics=tuple(diagnostics), skipped=tuple(skipped))


def _of_older_releases(site: Site, file: ExaminedFile) -> Iterator[tuple[Use, str]]:
    """Yield the names of a site that the source release no longer has, if that is only the default, each with why."""
    catalogue, source = file.document.catalogue, file.context.source
    for written in site.written:
        setting = catalogue.get(catalogue.by_key.get(written.key, ""))
        if setting is not None and setting.is_gone_in(source):
            older = f"megatron-core {setting.until} and older"
            yield written, f"{older}, and the source {source} is only the default (--from {setting.until})"


def _case(site: Site, owner: Owner, before: Settings, file: ExaminedFile) -> SiteCase:
    """Return the case of a site; what the class of its object defines itself is none of megatron-core's settings."""
    others = before.keys() - file.document.catalogue.captures
    own = others & own_fields(site, file.document) if others else set()
    if not own:
        return case_of(site, owner, before, file.document, file.context)
    kept = {name: before[name] for name in own}
    rest = {name: value for name, value in before.items() if name not in own}
    case = case_of(site, owner, rest, file.document, file.context)
    return replace(case, before=before, final=None if case.final is None else {**kept, **case.final})


def settings_of(document: Document, context: Context) -> dict[int, tuple[Reader, Settings]]:
    """Return each site that has a reader, by index: the reader and the settings in effect, merged ones included."""
    sites, owners = owned_sites(document.sites, document.top_level, context.ecosystems)
    merged = effective(sites)
    return {
        site.index: (owner.ecosystem.reader, merged[site.index])
        for site, owner in zip(sites, owners, strict=True)
        if owner.ecosystem is not None and owner.ecosystem.reader is not None
    }

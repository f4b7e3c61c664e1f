"""Settings whose values conditions choose: rewrites that hold for every branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.sites import Document, Site
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
from cgmigrate.linking.ownership import Owner
from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.relations import Relations, with_relations
from cgmigrate.lint.site_examination import case_of
from cgmigrate.lint.soundness import order_dependence, proposed_rewrites
from cgmigrate.megatron.settings import Settings


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
        cases = {i: _case(variant.sites[i], owners[i], merged[i], document, context) for i in component}
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


def _case(site: Site, owner: Owner, before: Settings, document: Document, context: Context) -> SiteCase:
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

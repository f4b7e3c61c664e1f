"""Which sites are rewritten: those that share settings (by anchors, merge keys, objects) together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.inheritance import components
from cgmigrate.lint.branches import BranchRewrites
from cgmigrate.lint.diagnostics import Context, FilePlan, SiteCase
from cgmigrate.lint.soundness import differ, order_dependence, proposed_rewrites, write_error
from cgmigrate.megatron.settings import Settings


@dataclass(frozen=True, slots=True)
class ExaminedSites:
    """The sites of a document: the cases of those that have a reader, and the rewrites that hold for all branches."""

    document: Document
    sites: Sequence[Site]
    cases: Mapping[int, SiteCase]
    by_branch: Mapping[int, BranchRewrites]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Sites that share settings, and the own settings that they get if the text allows it."""

    cases: Sequence[SiteCase]
    rewrites: Mapping[int, Settings]


def plan_rewrites(
    examined: ExaminedSites, replacements: Mapping[int, Settings], context: Context, plan: FilePlan
) -> bool:
    """Add the rewrites of all sites to a plan, and give the other sites the reason why they are not rewritten.

    Return whether all rewrites and ``replacements`` can be written together. If not, each was tried alone.
    """
    document = examined.document
    in_question = (_candidate(examined, component, context) for component in components(examined.sites))
    candidates = [candidate for candidate in in_question if candidate is not None]
    together = dict(replacements)
    for candidate in candidates:
        together |= candidate.rewrites
    writable = not together or not write_error(document, together)
    if writable:
        plan.quotes |= document.quotes(together)
    for candidate in candidates:
        if writable or _is_writable_alone(document, candidate, plan):
            _add(document, candidate, plan)
    return writable


def _candidate(examined: ExaminedSites, component: Sequence[int], context: Context) -> _Candidate | None:
    """Return the rewrite of sites that share settings, None if they stay as they are."""
    cases = [examined.cases[index] for index in component if index in examined.cases]
    by_branch = examined.by_branch.get(component[0])
    if by_branch is None and not any(case.final is not None and differ(case.final, case.before) for case in cases):
        return None
    if reason := _block_of(examined, component, cases):
        for case in cases:
            case.block(reason)
        return None
    rewrites: Mapping[int, Settings] = proposed_rewrites(examined.sites, component, cases, context)
    if by_branch is not None:
        rewrites = by_branch.rewrites
        for case in cases:
            case.risks += [risk for risk in by_branch.risks[case.site.index] if risk not in case.risks]
    if any(case.blocked for case in cases):
        return None
    sites = examined.document.sites
    return _Candidate(cases, {index: own for index, own in rewrites.items() if differ(own, sites[index].own)})


def _block_of(examined: ExaminedSites, component: Sequence[int], cases: Sequence[SiteCase]) -> str:
    """Return why sites that share settings cannot be rewritten, empty if nothing prevents it."""
    blocked = [case.site for case in cases if case.blocked]
    without_reader = [examined.sites[index] for index in component if index not in examined.cases]
    if site := next(iter((*blocked, *without_reader)), None):
        line = examined.document.text.count("\n", 0, site.span.start) + 1
        return f"it shares settings with the mapping on line {line}, which cannot be rewritten"
    return order_dependence(cases)


def _is_writable_alone(document: Document, candidate: _Candidate, plan: FilePlan) -> bool:
    if error := write_error(document, candidate.rewrites):
        for case in candidate.cases:
            case.block(f"the text cannot be changed safely: {error}")
        plan.unwritable |= candidate.rewrites
        return False
    plan.quotes |= document.quotes(candidate.rewrites)
    return True


def _add(document: Document, candidate: _Candidate, plan: FilePlan) -> None:
    for case in candidate.cases:
        # A rewrite is safe only if no other code sets or reads the same object.
        if risk := document.risk(case.site.index):
            case.risk(risk)
    safe = not any(case.risks for case in candidate.cases)
    for case in candidate.cases:
        if not safe and not case.risks:
            case.risk("it shares settings with a mapping whose rewrite is not safe")
    (plan.safe if safe else plan.unsafe).update(candidate.rewrites)
    plan.together |= dict.fromkeys(candidate.rewrites, tuple(candidate.rewrites))

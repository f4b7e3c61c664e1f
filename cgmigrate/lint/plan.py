"""The plan of a document: its diagnostics and rewrites, each rewrite checked for soundness.

A rewrite is sound if the target release captures with the new settings what the source release captures with the old
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.inheritance import effective
from cgmigrate.linking.ownership import Owner, owned_sites
from cgmigrate.lint.branches import merge_branches
from cgmigrate.lint.cases import case_of
from cgmigrate.lint.diagnostics import Context, Diagnostic, FilePlan, SiteCase
from cgmigrate.lint.problems import ProblemPlanner, enabled_problems
from cgmigrate.lint.rewrites import ExaminedSites, plan_rewrites
from cgmigrate.lint.site_diagnostics import diagnostics_of
from cgmigrate.lint.unknown_owners import unknown_owner_diagnostics
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader


def examine(document: Document, context: Context) -> FilePlan:
    """Return the diagnostics of a document and the settings that its sites get."""
    plan = FilePlan(skipped=list(document.skipped))
    sites, owners = owned_sites(document.sites, document.top_level, context.ecosystems)
    sites, by_branch = merge_branches(document, sites, owners, context)
    cases = plan.cases = _cases(document, sites, owners, context, plan)
    problems = enabled_problems(document, context)
    replacements: dict[int, Settings] = {problem.index: {} for problem, _ in problems if problem.replacement}
    writable = plan_rewrites(ExaminedSites(document, sites, cases, by_branch), replacements, context, plan)
    planner = ProblemPlanner(document, context, plan, writable)
    plan.diagnostics += [planner.diagnostic(problem, rule) for problem, rule in problems]
    for case in cases.values():
        plan.diagnostics += diagnostics_of(case, context, plan)
    plan.diagnostics = [_with_help(diagnostic, context) for diagnostic in plan.diagnostics]
    plan.diagnostics.sort(key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule))
    return plan


def settings_of(document: Document, context: Context) -> dict[int, tuple[Reader, Settings]]:
    """Return each site that has a reader, by index: the reader and the settings in effect, merged ones included."""
    sites, owners = owned_sites(document.sites, document.top_level, context.ecosystems)
    merged = effective(sites)
    return {
        site.index: (owner.ecosystem.reader, merged[site.index])
        for site, owner in zip(sites, owners, strict=True)
        if owner.ecosystem is not None and owner.ecosystem.reader is not None
    }


def _cases(
    document: Document, sites: Sequence[Site], owners: Sequence[Owner], context: Context, plan: FilePlan
) -> dict[int, SiteCase]:
    """Return the cases of the sites that have a reader, by index; the others go to the plan."""
    merged = effective(sites)
    cases: dict[int, SiteCase] = {}
    for site, owner in zip(sites, owners, strict=True):
        if owner.ecosystem is None:
            plan.diagnostics += unknown_owner_diagnostics(site, document, context)
        elif owner.ecosystem.reader is None and not owner.conflict:
            plan.skipped += [(written, owner.ecosystem.name) for written in site.written]
        else:
            cases[site.index] = case_of(site, owner, merged[site.index], document, context)
    return cases


def _with_help(diagnostic: Diagnostic, context: Context) -> Diagnostic:
    """Return a diagnostic that has neither a fix nor help with the help of its rule."""
    if diagnostic.applicability or diagnostic.help:
        return diagnostic
    rule = context.rules.get(diagnostic.rule)
    return replace(diagnostic, help=rule.help) if rule else diagnostic

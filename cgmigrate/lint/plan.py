"""Site + rules → diagnostics and fixes, each fix checked for soundness before anybody sees it.

A fix is sound when the settings before, read by the source release, capture what the settings
after capture, read by the target release. All sites that share text (through anchors and merge
keys) are fixed together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cgmigrate.documents.sites import Document, Problem, Site
from cgmigrate.linking.inheritance import components, effective
from cgmigrate.linking.ownership import Owner, Owners
from cgmigrate.lint.advice import advice_for
from cgmigrate.lint.branches import _choose, _Chosen
from cgmigrate.lint.cases import _case_of
from cgmigrate.lint.diagnostics import Applicability, Context, Diagnostic, FilePlan, SiteCase
from cgmigrate.lint.rules import Rule
from cgmigrate.lint.site_diagnostics import diagnostics_of
from cgmigrate.lint.soundness import _cannot_be_written, _differs, _input_error, _order_matters, _proposed
from cgmigrate.megatron.releases import SPLIT_IN
from cgmigrate.megatron.settings import (
    DEPRECATED,
    Settings,
)
from cgmigrate.megatron.types import Reader


def examine(document: Document, context: Context) -> FilePlan:
    """Return what there is to say about a document and how its sites should be written."""
    result = FilePlan(skipped=list(document.skipped))
    merged = effective(document.sites)
    asked = Owners(document.top_level, context.ecosystems)
    owners = [asked.of(site, merged[site.index].keys()) for site in document.sites]
    sites = _laid_over(document.sites, owners)
    sites, chosen = _choose(document, sites, owners, context)
    merged = effective(sites)
    cases: dict[int, SiteCase] = {}
    for site, owner in zip(sites, owners, strict=True):
        if owner.ecosystem is None:
            result.diagnostics += _owner_unknown(site, document, context)
        elif owner.ecosystem.reader is None and not owner.conflict:
            result.skipped += [(written, owner.ecosystem.name) for written in site.written]
        else:
            cases[site.index] = _case_of(site, owner, merged[site.index], document, context)
    problems = [
        (_held(problem, context), rule) for problem in document.problems if (rule := _rule_of(problem, context))
    ]
    fine = _decide(document, sites, cases, chosen, context, result, {p.index: {} for p, _ in problems if p.replacement})
    for problem, rule in problems:
        result.diagnostics.append(_told_problem(problem, rule, document, context, result, fine))
    for case in cases.values():
        result.diagnostics += diagnostics_of(case, context, result)
    result.diagnostics = [_with_help(diagnostic, context) for diagnostic in result.diagnostics]
    result.diagnostics.sort(key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule))
    return result


def settings_of(document: Document, context: Context) -> dict[int, tuple[Reader, Settings]]:
    """Each site that has a reader, by index: the reader, and the settings that it gets (merged ones included)."""
    merged = effective(document.sites)
    asked = Owners(document.top_level, context.ecosystems)
    owners = [asked.of(site, merged[site.index].keys()) for site in document.sites]
    merged = effective(_laid_over(document.sites, owners))
    return {
        site.index: (owner.ecosystem.reader, merged[site.index])
        for site, owner in zip(document.sites, owners, strict=True)
        if owner.ecosystem is not None and owner.ecosystem.reader is not None
    }


def _laid_over(sites: Sequence[Site], owners: Sequence[Owner]) -> list[Site]:
    """Let a site that its ecosystem lays over the mapping around it inherit from that mapping's site."""
    by_path = {site.path: site.index for site in sites}
    result = list(sites)
    for site, owner in zip(sites, owners, strict=True):
        below = by_path.get(site.path[:-1])
        if owner.ecosystem is not None and owner.ecosystem.laid_over and below not in (None, site.index):
            result[site.index] = replace(site, inherits=(*site.inherits, below))
    return result


def _with_help(diagnostic: Diagnostic, context: Context) -> Diagnostic:
    """A diagnostic without a fix and without help of its own gets that of its rule."""
    if diagnostic.applicability or diagnostic.help:
        return diagnostic
    rule = context.rules.get(diagnostic.rule)
    return replace(diagnostic, help=rule.help) if rule else diagnostic


def _rule_of(problem: Problem, context: Context) -> Rule | None:
    """The rule that explains a problem; None when it is not selected or not yet true of the target."""
    rule = context.rules.get(problem.rule)
    return rule if rule is not None and rule.deprecated_in <= context.target else None


def _held(problem: Problem, context: Context) -> Problem:
    return replace(problem, replacement="") if problem.span in context.suppressed else problem


def _told_problem(
    problem: Problem, rule: Rule, document: Document, context: Context, result: FilePlan, fine: bool
) -> Diagnostic:
    """A diagnostic about what is no site; what it becomes is written like the fix of a site.

    ``fine`` says that all that can be written was tried together and is right.
    """
    told = Diagnostic(rule.id, rule.severity, problem.span, problem.message, site=problem.index)
    if not problem.replacement:
        return replace(told, blocked_by=problem.blocked_by, help=problem.advice)
    risk = problem.risk
    if context.source >= SPLIT_IN:
        risk = risk or f"the code already runs on megatron-core {context.source}, where it does something else"
    risk = risk or document.risk(problem.index)
    if not fine and (reason := _input_error(document, {problem.index: {}})):
        blocked_by = f"the text cannot be changed safely: {reason}"
        return replace(told, blocked_by=blocked_by, help=f"write `{problem.replacement}` by hand")
    (result.unsafe if risk else result.safe)[problem.index] = {}
    applicability = Applicability.UNSAFE if risk else Applicability.SAFE
    fix = problem.fix or f"write `{problem.replacement}`"
    return replace(told, fix=fix, applicability=applicability, because=risk)


def _if_megatrons(advice: str) -> str:
    return f"if it is megatron-core's, {advice}" if advice else ""


def _owner_unknown(site: Site, document: Document, context: Context) -> list[Diagnostic]:
    rule = context.rules["CG006"]
    message = "whose `{}` this is cannot be told from here (DeepSpeed, TensorRT-LLM and others have one, too)"
    if site.origin is not None:
        whose = site.origin.callee or site.origin.object
        owner = f"`{whose}`" if whose else "what gets it"
        message = f"whose `{{}}` this is cannot be told: {owner} is not known as Megatron's"
    return [
        Diagnostic(
            rule.id,
            rule.severity,
            written.span,
            message.format(written.key),
            help=_if_megatrons(advice_for(document, site, written, site.own)),
        )
        for written in site.written
        if site.origin is None or written.field in DEPRECATED
    ]


# --- all sites together ---------------------------------------------------------------------------


def _decide(
    document: Document,
    sites: Sequence[Site],
    cases: Mapping[int, SiteCase],
    chosen: Mapping[int, _Chosen],
    context: Context,
    result: FilePlan,
    beside: Mapping[int, Settings],
) -> bool:
    """Choose the settings that sites get, component by component of sites that share text.

    Returns whether all that is chosen, and what is written ``beside`` the sites, could be written together;
    else each was tried alone.
    """
    candidates: list[tuple[list[SiteCase], dict[int, Settings]]] = []
    for component in components(sites):
        group = [cases[index] for index in component if index in cases]
        answer = chosen.get(component[0])
        changed = any(case.final is not None and _differs(case.final, case.before) for case in group)
        if not changed and answer is None:
            continue
        strangers = [index for index in component if index not in cases]
        blocked = [case for case in group if case.blocked]
        if blocked or strangers:
            line = document.text.count("\n", 0, (blocked[0].site if blocked else sites[strangers[0]]).span.start)
            for case in group:
                case.block(f"it shares settings with the mapping on line {line + 1}, which cannot be rewritten")
            continue
        if why := _order_matters(group):
            for case in group:
                case.block(why)
            continue
        rewrites = _proposed(sites, component, group, context)
        if answer is not None:
            rewrites = dict(answer.rewrites)
            for case in group:
                case.risks += [risk for risk in answer.risks[case.site.index] if risk not in case.risks]
        rewrites = {index: own for index, own in rewrites.items() if _differs(own, document.sites[index].own)}
        if not any(case.blocked for case in group):
            candidates.append((group, rewrites))
    together = {**beside, **{index: own for _, rewrites in candidates for index, own in rewrites.items()}}
    fine = not together or not _input_error(document, together)
    if fine:
        result.quotes |= document.quotes(together)
    for group, rewrites in candidates:
        if not fine:
            if _cannot_be_written(document, rewrites, group):
                result.unwritable |= rewrites
                continue
            result.quotes |= document.quotes(rewrites)
        _add_exposure(document, group)
        safe = not any(case.risks for case in group)
        for case in group:
            if not safe and not case.risks:
                case.risk("it shares settings with a mapping whose rewrite is not safe")
        (result.safe if safe else result.unsafe).update(rewrites)
        result.together |= dict.fromkeys(rewrites, tuple(rewrites))
    return fine


def _add_exposure(document: Document, group: Sequence[SiteCase]) -> None:
    """A rewrite is safe only where no other code sets or reads the same object."""
    for case in group:
        if reason := document.risk(case.site.index):
            case.risk(reason)

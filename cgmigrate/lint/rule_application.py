"""The application of rules to a site: each rewrites the settings once, in order, until none matches any more.

A rule that cannot rewrite its settings keeps them as they are, together with those that other rules connect with them.
The settings on which captures depend are kept or rewritten together, since they have one meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cgmigrate.documents.changes import differ
from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.hybrid_forms import as_hybrid
from cgmigrate.lint.other_settings import refused
from cgmigrate.lint.rules import Rule, RuleCase, matching_case


def with_rules_applied(case: SiteCase, context: Context) -> SiteCase:
    """Return a site with the rules that migrate applied to it; it is blocked if they can rewrite nothing."""
    applied, conflicts = _applied(case, context)
    if not conflicts:
        return applied
    _, reason = conflicts[0]
    blocked = applied.block(reason.text, reason.rule, reason.help)
    rules = [rule for rule, _ in applied.matches]
    while conflicts:
        for rule, why in conflicts:
            case = case.keep(_connected(rule, rules, case), why)
        applied, conflicts = _applied(case, context)
        rules += [rule for rule, _ in applied.matches]
    assert applied.final is not None
    return applied if differ(applied.final, applied.before) else blocked


def _applied(case: SiteCase, context: Context) -> tuple[SiteCase, list[tuple[Rule, Reason]]]:
    """Return a site with the rules applied that concern no setting that is kept, and the others that cannot be."""
    current, done = dict(case.before), set[tuple[str, int]]()
    rules = [rule for rule in context.rules.values() if rule.migrates and rule.available_in <= context.target]
    state = case.state(current, context.target)
    matches, conflicts = list(case.matches), list[tuple[Rule, Reason]]()
    captures = case.document.catalogue.captures
    progress = True
    while progress:
        progress = False
        for rule in rules:
            match = matching_case(rule, state)
            if match is None or (rule.id, id(match)) in done:
                continue
            done.add((rule.id, id(match)))
            matches.append((rule, match))
            if case.reason_to_keep(rule):
                continue
            after, reason = _rewritten(rule, match, current, case, context)
            if reason is not None:
                conflicts.append((rule, reason))
                continue
            current = after
            state = case.state(current, context.target)
            if match.fix is not None and match.fix.unsafe:
                # What an object of code gets elsewhere, a proof shows.
                is_of_object = case.site.overrides or case.site.origin is not None
                case = case.risk(match.fix.unsafe, rule.id, of_object=is_of_object and rule.names <= captures)
            progress = True
    return replace(case, matches=tuple(matches), final=current), conflicts


def _rewritten(
    rule: Rule, match: RuleCase, settings: Mapping[str, object], case: SiteCase, context: Context
) -> tuple[dict[str, object], Reason | None]:
    """Return the settings after the fix of a rule, or the reason why they stay as they are."""
    if (choice := match.choice(settings)) or match.fix is None:
        return {}, Reason(choice, rule.id)
    if match.is_hybrid:
        return as_hybrid(settings, case, rule.id)
    after = match.fix.apply(settings)
    return after, refused(match, settings, after, case, context.target)


def _connected(rule: Rule, rules: Sequence[Rule], case: SiteCase) -> frozenset[str]:
    """Return the settings of a rule, and those of other rules that have a setting in common with them."""
    captures = case.document.catalogue.captures
    names = rule.names
    while True:
        groups: Iterable[frozenset[str]] = (captures, *(other.names for other in rules))
        more = names.union(*(group for group in groups if group & names))
        if more == names:
            return names
        names = more

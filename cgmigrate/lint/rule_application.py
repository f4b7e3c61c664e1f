"""The application of rules to a site: each rewrites the settings once, in order, until none matches any more.

If a rule matches that cannot rewrite its settings, all settings of the site stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.other_settings import refused
from cgmigrate.lint.rules import Rule, RuleCase, matching_case


def with_rules_applied(case: SiteCase, context: Context) -> SiteCase:
    """Return a site with the rules that migrate applied to it, blocked by one that cannot rewrite its settings."""
    current, done = dict(case.before), set[tuple[str, int]]()
    rules = [rule for rule in context.rules.values() if rule.migrates and rule.available_in <= context.target]
    state = case.state(current, context.target)
    matches, conflicts = list(case.matches), list[Reason]()
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
                conflicts.append(reason)
                continue
            current = after
            state = case.state(current, context.target)
            if match.fix is not None and match.fix.unsafe:
                # What an object of code gets elsewhere, a proof shows.
                is_of_object = case.site.overrides or case.site.origin is not None
                case = case.risk(match.fix.unsafe, rule.id, of_object=is_of_object and rule.names <= captures)
            progress = True
    applied = replace(case, matches=tuple(matches), final=current)
    return applied.block(conflicts[0].text, conflicts[0].rule, conflicts[0].help) if conflicts else applied


def _rewritten(
    rule: Rule, match: RuleCase, settings: Mapping[str, object], case: SiteCase, context: Context
) -> tuple[dict[str, object], Reason | None]:
    """Return the settings after the fix of a rule, or the reason why they stay as they are."""
    if (choice := match.choice(settings)) or match.fix is None:
        return {}, Reason(choice, rule.id)
    after = match.fix.apply(settings)
    return after, refused(match, settings, after, case, context.target)

"""The application of rules to a site: each rewrites the settings once, in order, until none matches any more.

A rule that cannot rewrite its settings keeps them as they are, together with those that other rules connect with them.
The settings on which captures depend are kept or rewritten together, since they have one meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cgmigrate.documents.changes import changed_names, differ
from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.fixes import RuleRename
from cgmigrate.lint.hybrid_forms import as_hybrid
from cgmigrate.lint.rules import Rule, RuleCase, matching_case
from cgmigrate.megatron.acceptance import refusal_of_place, refusal_of_setting
from cgmigrate.megatron.catalogue import ABSENT
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader


def refused(match: RuleCase, before: Settings, after: Settings, case: SiteCase, target: Release) -> Reason | None:
    """Return why the fix of a match cannot be made at a site, None if it can; ``after`` are the settings after it."""
    catalogue, as_flag = case.document.catalogue, _is_command_line(case)
    fix = match.fix
    assert fix is not None
    for name in sorted(fix.set.keys() & before.keys() - match.when.keys() - catalogue.captures):
        if name in changed_names(before, after):
            return Reason("", help=f"`{{{name}}}` is written as well: keep the value that is meant")
    for name in sorted((after.keys() & changed_names(before, after)) - catalogue.captures):
        if reason := refusal_of_setting(catalogue[name], after[name], target, as_flag=as_flag):
            return Reason(reason)
    for old in sorted(fix.rename.keys() & before.keys() - catalogue.captures):
        if not as_flag and (reason := refusal_of_place(catalogue[old], catalogue[fix.rename[old].to], target)):
            return Reason(reason)
        if advice := _lost(old, fix.rename[old], before[old], case):
            return Reason("", help=advice)
    return None


def _lost(old: str, rename: RuleRename, value: object, case: SiteCase) -> str:
    """Return what to write by hand where the text cannot say the new value of a setting, empty if it can."""
    new, setting = rename.value(value), case.document.catalogue[rename.to]
    if new == ABSENT and case.site.overrides:
        return f"`{{{old}}}` may be set elsewhere: write the `{{{rename.to}}}` that is meant, and delete `{{{old}}}`"
    turned_off = setting.is_flag and new is False and value is not False and setting.default is not False
    if turned_off and _is_command_line(case):
        instead = f"write `{setting.no_flag}`" if setting.no_flag else "write the flag that does"
        return f"`{setting.flag}` turns the setting on, and not off: {instead} in place of `{{{old}}}`"
    return ""


def _is_command_line(case: SiteCase) -> bool:
    return case.reader is Reader.COMMAND_LINE


def _ships(path: str) -> bool:
    return path.startswith(str(rules_folder()))


def checked_others(case: SiteCase, after: Settings, context: Context) -> SiteCase:
    """Return a site with the reason why its other settings cannot be rewritten, or why that is unsafe.

    ``after`` are its settings in effect afterwards.
    """
    changed = changed_names(case.before, after) - case.document.catalogue.captures
    if not changed:
        return case
    catalogue = case.document.catalogue
    for name in sorted(changed & after.keys()):
        if name not in (case.final or {}) and not catalogue[name].can_unset:
            return case.block(f"`{name}` is inherited, and the catalogue has no value that unsets it")
        if refusal := refusal_of_setting(catalogue[name], after[name], context.target, as_flag=_is_command_line(case)):
            return case.block(refusal)
    for rule, match in case.matches:
        names = match.fix.names & changed if match.fix else frozenset[str]()
        # The proof of a rule that ships is not about a team's entry for the same setting.
        is_other = _ships(rule.path) and not all(_ships(catalogue[name].path or rule.path) for name in names)
        if match.fix and names and (is_other or not (match.fix.proved_by or match.fix.unsafe)):
            case = case.risk(
                f"no source shows that {context.target} reads the new settings as {case.source} reads the old ones",
                rule.id,
            )
    return case


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

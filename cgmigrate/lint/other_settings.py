"""The proof of a fix of settings on which the capture model does not depend.

Without a model, what a release makes of such a setting is not computed. The fix is withheld if the target does not
accept the result, and it is unsafe unless its rule names the source that proves it.
"""

from __future__ import annotations

from cgmigrate.documents.changes import changed_names
from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.fixes import RuleRename
from cgmigrate.lint.rules import RuleCase
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

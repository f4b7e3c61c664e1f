"""The proof of a fix of settings on which the capture model does not depend.

Without a model, what a release makes of such a setting is not computed. The fix is withheld if the target does not
accept the result, and it is unsafe unless its rule names the source that proves it.
"""

from __future__ import annotations

from cgmigrate.documents.changes import same
from cgmigrate.lint.diagnostics import Context, SiteCase
from cgmigrate.megatron.acceptance import refusal_of_setting
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader


def checked_others(case: SiteCase, after: Settings, context: Context) -> SiteCase:
    """Return a site with the reason why its other settings cannot be rewritten, or why that is unsafe.

    ``after`` are its settings in effect afterwards.
    """
    changed = _changed(case, after)
    if not changed:
        return case
    catalogue, as_flag = case.document.catalogue, case.reader is Reader.COMMAND_LINE
    for name in changed:
        if name in after and name not in (case.final or {}) and not catalogue[name].can_unset:
            return case.block(f"`{name}` is inherited, and the catalogue has no value that unsets it")
        if name not in after:
            continue
        if refusal := refusal_of_setting(catalogue[name], after[name], context.target, as_flag=as_flag):
            return case.block(refusal)
    for rule, match in case.matches:
        if match.fix and match.fix.names & changed and not (match.fix.proved_by or match.fix.unsafe):
            case = case.risk(
                f"no source shows that {context.target} reads the new settings as {case.source} reads the old ones",
                rule.id,
            )
    return case


def _changed(case: SiteCase, after: Settings) -> frozenset[str]:
    """Return the settings that differ afterwards, without those of the capture model."""
    names = (case.before.keys() | after.keys()) - case.document.catalogue.captures
    return frozenset(
        name for name in names if (name in case.before) != (name in after) or not same(case.before[name], after[name])
    )

"""Whether a site that keeps its settings could be rewritten once those that it merges are."""

from __future__ import annotations

from dataclasses import replace

from cgmigrate.documents.changes import differ
from cgmigrate.lint.diagnostics import Context, SiteCase
from cgmigrate.lint.rule_application import with_rules_applied
from cgmigrate.lint.site_examination import source_for
from cgmigrate.megatron.settings import Choice, Settings, Undecided


def _is_unknown(settings: Settings) -> bool:
    return any(isinstance(value, (Undecided, Choice)) for value in settings.values())


def would_be_rewritten(case: SiteCase, context: Context) -> bool:
    """Return whether a site that keeps its settings could be rewritten once those that it merges are."""
    after = case.after or {}
    if not differ(case.before, after) or _is_unknown(after):
        return False
    again = _examined(case, after, context)
    return again.blocked is None and again.final is not None and differ(again.final, after)


def _examined(case: SiteCase, settings: Settings, context: Context) -> SiteCase:
    """Return a site with the rules applied to other settings in effect."""
    source = source_for(settings, context)
    case = replace(case, before=settings, source=source, matches=(), risks=(), blocked=None, final=None, kept={})
    return with_rules_applied(case, context)

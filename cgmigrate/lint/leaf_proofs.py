"""Files that are merged into others and are no entry points: only the configurations that they end up in are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cgmigrate.documents.changes import differ
from cgmigrate.linking.inheritance import merged as merged_settings
from cgmigrate.linking.merged_files import MergedObject
from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.rule_application import with_rules_applied
from cgmigrate.lint.site_examination import source_for
from cgmigrate.megatron.settings import Choice, Settings, Undecided


def as_part(case: SiteCase, context: Context) -> SiteCase:
    """Return the case of a site that is judged by the files that merge it, without what concerns it alone.

    If its own settings contradict each other, its deprecated ones are deleted: each file that merges it gets what it
    needs.
    """
    captures = case.document.catalogue.captures
    if not case.before.keys() <= captures or _is_unknown(case.before):
        return case
    blocked = case.blocked
    if blocked is not None and not _is_of_rule(blocked, context):
        return case
    risks = tuple(risk for risk in case.risks if not _is_of_rule(risk, context))
    settings = case.before if blocked or case.final is None else case.final
    deprecated = case.document.catalogue.deprecated
    final = {name: value for name, value in settings.items() if name not in deprecated}
    return replace(case, is_part=True, risks=risks, blocked=None, final=final)


def _is_of_rule(reason: Reason, context: Context) -> bool:
    return reason.rule in context.rules


def _is_unknown(settings: Settings) -> bool:
    return any(isinstance(value, (Undecided, Choice)) for value in settings.values())


def merged_risks(
    merged: MergedObject, cases: Mapping[int, SiteCase], before: Mapping[int, Settings], context: Context
) -> tuple[Reason, ...]:
    """Return why a rewrite is not safe for a mapping that a file merges without settings of its own.

    ``before`` is what each site has in its file, by index.
    """
    case, settings = cases[merged.layers[-1]], merged_settings(merged.layers, before)
    return () if _is_unknown(settings) else _examined(case, settings, context).risks


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

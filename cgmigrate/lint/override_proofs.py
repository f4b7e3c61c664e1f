"""The proof of a fix for the command lines that override a setting of the rewritten mapping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cgmigrate.lint.diagnostics import Context, SiteCase
from cgmigrate.lint.site_examination import source_for
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.settings import Choice, Undecided
from cgmigrate.megatron.types import Capture, Rejected, describe_both

if TYPE_CHECKING:
    from cgmigrate.linking.overrides import Override


def override_problem(case: SiteCase, overrides: Iterable[Override], context: Context) -> str:
    """Return why a rewrite is wrong together with an override, empty if each gives the same before and after."""
    site = case.site
    if site.flags or (site.overrides and site.origin is None):
        # It is on a command line itself.
        return ""
    for override in overrides:
        if case.after is None or case.before == case.after:
            continue
        if override.concerns(case.site.path, override.recipes) and (reason := _reason(case, override, context)):
            return reason
    return ""


def _reason(case: SiteCase, override: Override, context: Context) -> str:
    old = {**case.before, override.setting: override.value}
    new = {**(case.after or {}), override.setting: override.value}
    says = f"a command line overrides {override}"
    was_there, is_there = (override.setting in settings for settings in (case.before, case.after or {}))
    if override.sign == "" and was_there and not is_there:
        return f"{says}, which would be rejected where the configuration no longer has the key"
    if override.sign == "+" and is_there and not was_there:
        return f"{says} with `+`, which would be rejected where the configuration has the key"
    if any(isinstance(value, (Undecided, Choice)) for value in (*old.values(), *new.values())):
        return f"{says}, and has to change with it"
    was = capture_of(old, source_for(old, context), case.reader)
    will = capture_of(new, context.target, case.reader)
    if was == will:
        return ""
    if isinstance(was, Rejected):
        # Without the name of a recipe, it may be for one that the release accepts.
        is_refused = isinstance(will, Rejected) or not override.recipes
        refuses = f"{case.reader.value} ({case.source}) already rejects that ({was.reason.rstrip('.')})"
        return "" if is_refused else f"{says}, and {refuses}"
    return f"{says}{_difference(was, will)}"


def _difference(was: Capture, will: Capture | Rejected) -> str:
    if isinstance(will, Rejected):
        return f", and would be rejected after the rewrite ({will.reason.rstrip('.')})"
    now, then = describe_both(was, will)
    return f"; with it, the text captures {now} before the rewrite and {then} after it"

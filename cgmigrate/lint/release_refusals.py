"""Settings that a reader refuses: which release refuses them, and what to write instead."""

from __future__ import annotations

from cgmigrate.lint.diagnostics import Context, SiteCase
from cgmigrate.lint.rules import matching_case
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Rejected


def refusal_of(case: SiteCase, context: Context) -> tuple[Rejected, Release] | None:
    """Return the refusal of a site's current settings and the release that refuses them.

    The target comes first, since its messages name the settings of today; None if both releases accept the settings.
    """
    for release in (context.target, case.source):
        verdict = capture_of(case.before, release, case.reader)
        if isinstance(verdict, Rejected) and verdict.stage == "config":
            return verdict, release
    return None


def refusal_note(case: SiteCase, context: Context) -> str:
    """Return who refuses a site's current settings and in which words; empty if both releases accept them."""
    refused = refusal_of(case, context)
    if refused is None:
        return ""
    refusal, release = refused
    # The releases of a run are megatron-core's; that of Megatron-Bridge is not known.
    program = "Megatron-Bridge" if refusal.code == "bridge-local" else f"megatron-core {release}"
    return f'{program} rejects it: "{refusal.reason}"'


def help_for(refusal: Rejected, settings: Settings, case: SiteCase, context: Context) -> str:
    """Return what to write instead of refused settings: the help of the rule about this refusal."""
    state = case.state(settings, context.target, refusal.code)
    matches = (matching_case(rule, state) for rule in context.possible_rules(state) if not rule.migrates)
    advice = next((match.help for match in matches if match is not None and match.about_refusal), "")
    return advice or f"write settings that {case.reader.value} accepts"

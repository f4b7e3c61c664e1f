"""What a release does with the settings of a site: it refuses them, or captures what the model has of them.

The capture model knows the settings of CUDA graphs only. A release also refuses them for other settings, which rules
describe, and captures only layers that the model has.
"""

from __future__ import annotations

from cgmigrate.lint.diagnostics import Context, SiteCase
from cgmigrate.lint.layers import captured_of_model
from cgmigrate.lint.rule_texts import message
from cgmigrate.lint.rules import matching_case
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import IMPL_SINCE, Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, Settings
from cgmigrate.megatron.types import Capture, Rejected


def verdict_on(case: SiteCase, settings: Settings, release: Release, context: Context) -> Capture | Rejected:
    """Return what a release captures with some settings of a site, or its refusal."""
    capture = capture_of(settings, release, case.reader)
    if isinstance(capture, Rejected):
        return capture
    return _refusal_by_rule(case, settings, release, context) or captured_of_model(capture, case)


def _refusal_by_rule(case: SiteCase, settings: Settings, release: Release, context: Context) -> Rejected | None:
    """Return the refusal that a rule about other settings describes: the one that comes first in a job."""
    state = case.state_of_companions(_with_implementation(settings, release), release)
    refusals = [
        Rejected(rule.id, message(match.message, case, context), rule.fields, match.stage)
        for rule in context.possible_rules(state)
        if not rule.migrates and (match := matching_case(rule, state)) is not None and match.stage
    ]
    return min(refusals, key=lambda one: one.stage != "config", default=None)


def _with_implementation(settings: Settings, release: Release) -> Settings:
    """Return settings with the implementation that a boolean names."""
    named = {ENABLE: "local", EXTERNAL: "transformer_engine"}
    impl = next((value for name, value in named.items() if settings.get(name) is True), None)
    if impl is None or settings.get(IMPL, "none") != "none" or release < IMPL_SINCE:
        return settings
    return {**{name: value for name, value in settings.items() if name not in named}, IMPL: impl}

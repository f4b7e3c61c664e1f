"""The proof of a fix: the captures before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cgmigrate.documents.sites import Site
from cgmigrate.linking.inheritance import NO_STACKS, Stacks, effective_in, own_after
from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.matches import help_for
from cgmigrate.lint.rule_application import checked_others
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, SPLIT_IN
from cgmigrate.megatron.settings import (
    ENABLE,
    EXTERNAL,
    FIELDS,
    IMPL,
    INFERENCE,
    SCOPE,
    MergedValue,
    Settings,
    Undecided,
    names_in,
)
from cgmigrate.megatron.types import Capture, Rejected, describe_both


def proposed_rewrites(
    sites: Sequence[Site],
    cases: Mapping[int, SiteCase],
    component: Sequence[int],
    context: Context,
    stacks: Stacks = NO_STACKS,
) -> tuple[dict[int, Settings], dict[int, SiteCase]]:
    """Return the own settings that give the sites of one component their final settings, and their cases, by index.

    The cases have the settings in effect afterwards, and the reason if the captures differ. Sites that cannot be
    rewritten keep their own settings.
    """
    finals = {
        index: final for index in component if not cases[index].blocked and (final := cases[index].final) is not None
    }
    rewrites = own_after(sites, component, finals, context.catalogue, stacks)
    after = effective_in(sites, component, rewrites, stacks)
    planned = {index: replace(cases[index], after=after[index]) for index in component}
    checked = {
        index: case if case.blocked else _checked(case, after[index], context) for index, case in planned.items()
    }
    return rewrites, checked


def replaced_risk(case: SiteCase, before: Settings, after: Settings, context: Context) -> str:
    """Return why a site is not safe to rewrite if a loader replaces mappings instead of merging them, empty if it is.

    ``before`` and ``after`` are its settings without those of other files.
    """
    if case.keeps_captures:
        return ""
    was, will = capture_of(before, case.source, case.reader), capture_of(after, context.target, case.reader)
    if was == will or isinstance(was, Rejected):
        return ""
    now = str(was) if isinstance(will, Rejected) else describe_both(was, will)[0]
    return (
        "a loader may replace the mapping of the other file instead of merging it; "
        f"by itself this one captures {now} in {case.source}, and something else after the rewrite"
    )


def order_dependence(cases: Sequence[SiteCase]) -> str:
    """Return why sites with branches between them cannot be rewritten one by one, empty if they can.

    They can if the old and the new settings correspond one to one, whichever sites ran: modules under
    another name, or sites that set everything themselves.
    """
    uncertain = [case for case in cases if case.site.uncertain]
    if not uncertain:
        return ""
    reason = "which settings are in effect depends on the branches and loops above"
    names = {name for case in cases for name in case.site.own}
    scopes = [names_in(case.site.own.get(SCOPE)) for case in cases]
    if names & {ENABLE, EXTERNAL, INFERENCE} or any("full_iteration_inference" in scope for scope in scopes):
        return reason
    if all("full_iteration" not in scope for scope in scopes):
        return ""
    return "" if all({IMPL, SCOPE} <= set(case.site.own) for case in uncertain) else reason


def undecided_setting(settings: Settings) -> str:
    """Return why it is not known what settings capture, empty if it is."""
    undecided = {name: value for name in FIELDS if isinstance(value := settings.get(name), Undecided)}
    for name, value in undecided.items():
        if isinstance(value, MergedValue):
            return f"`{name}` of a mapping with `<<` has {value.reason}"
    return "another setting of the same configuration is computed at run time" if undecided else ""


def _checked(case: SiteCase, after: Settings, context: Context) -> SiteCase:
    """Compare the captures before and after; return the site with the reason if they differ."""
    if case.keeps_captures:
        # What is captured is as unclear afterwards as before; the fix is about other settings.
        return checked_others(case, after, context)
    if undecided := undecided_setting(after):
        # What it merges was the same in any order, and would no longer be.
        return case.block(undecided)
    was = capture_of(case.before, case.source, case.reader)
    will = capture_of(after, context.target, case.reader)
    if isinstance(was, Rejected):
        reason = refused_before(was, case, context)
        return case.block(reason.text, help=reason.help)
    if isinstance(will, Rejected):
        text = f"{case.reader.value} ({context.target}) would reject the result ({will.reason.rstrip('.')})"
        return case.block(text, help=help_for(will, after, case, context))
    if risk := _risk_of(case, was, will, context):
        case = case.risk(risk)
    return checked_others(case, after, context)


def refused_before(was: Rejected, case: SiteCase, context: Context) -> Reason:
    """Return that a site is not rewritten, since its source release refuses it."""
    text = f"{case.reader.value} ({case.source}) already rejects it ({was.reason.rstrip('.')}): decide what is meant"
    return Reason(text, help=help_for(was, case.before, case, context))


def _risk_of(case: SiteCase, was: Capture, will: Capture, context: Context) -> str:
    """Return why it is not certain that two captures are what was meant, empty if it is."""
    if case.reader.validates_as_bridge and (other := _bridge_order(case, was, context)):
        return other
    if was != will:
        now, then = describe_both(was, will)
        return f"megatron-core {case.source} captures {now}, after the rewrite {context.target} would capture {then}"
    if case.source >= SPLIT_IN and (old := _older_meaning(case)) is not None and old != was:
        before, now = describe_both(old, was)
        return f"up to megatron-core {LAST_OLD} this captured {before}, {case.source} captures {now}: which is meant?"
    return ""


def _bridge_order(case: SiteCase, was: Capture, context: Context) -> str:
    """Return why it is ambiguous what a boolean captures through Megatron-Bridge, empty if it is not.

    The order of reading changed in Bridge 0.6, which also runs with older releases of megatron-core.
    """
    boolean = next((name for name in (ENABLE, EXTERNAL) if case.before.get(name) is True), "")
    now = capture_of(case.before, context.target, case.reader)
    contradicts = bool(boolean) and case.before.get(IMPL) == "none"
    if not contradicts or case.source == context.target or not isinstance(now, Capture) or now == was:
        return ""
    first, second = describe_both(was, now)
    return (
        f"Megatron-Bridge up to 0.5 captures {first}; since 0.6 it clears the scope with `none` "
        f"before megatron-core reads `{boolean}`, and captures {second}: which is meant?"
    )


def _older_meaning(case: SiteCase) -> Capture | None:
    """Return what 0.17 captures with settings that it accepts; None for others, such as those with newer names."""
    old = capture_of(case.before, LAST_OLD, case.reader)
    return old if isinstance(old, Capture) else None

"""One site under examination: which rules match, what they rewrite it to, and what makes that unsafe."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from cgmigrate.documents.changes import differ
from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.ownership import Owner
from cgmigrate.linking.surroundings import SiteSurroundings
from cgmigrate.linking.test_recipes import programs_of_test_case
from cgmigrate.lint.diagnostics import Context, Reason, SiteCase
from cgmigrate.lint.rule_application import with_rules_applied
from cgmigrate.lint.rules import Rule, RuleCase, RuleKind, matching_case
from cgmigrate.lint.soundness import refused_before, undecided_setting
from cgmigrate.lint.unknown_owners import unknown_value_diagnostics
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import (
    ENABLE,
    EXTERNAL,
    IMPL,
    INFERENCE,
    MODULES,
    SCOPE,
    Choice,
    Settings,
    Undecided,
    names_in,
)
from cgmigrate.megatron.types import Reader, Rejected

_OTHER_SCOPE = "a scope elsewhere on the command line, which this one overrides, would take effect"


def case_of(site: Site, owner: Owner, before: Settings, document: Document, context: Context) -> SiteCase:
    """Return a site of a known owner with its matching rules, its final settings, and what makes these unsafe.

    ``before`` are its settings with those that it merges.
    """
    assert owner.ecosystem is not None
    reader = owner.ecosystem.reader or Reader.CONFIG
    overrides = owner.ecosystem.overrides_parent and not site.inherits
    around = SiteSurroundings(document, site, owner.ecosystem, before, partial(_is_up_to, document.path))
    source = source_for(before, context)
    case = SiteCase(site, document, reader, before, source, around, owner.ecosystem.id, overrides, context.path)
    case = replace(case, programs=_programs(site, document))
    for reason in filter(None, (owner.conflict, site.blocked_by, site.read_back, owner.ecosystem.not_rewritten)):
        case = case.block(reason)
    case = replace(case, diagnostics=tuple(unknown_value_diagnostics(case, context)))
    if reason := undecided_setting(before):
        return _without_captures(case, Reason(reason), context) or replace(
            case.block(reason), matches=_matches_of_names(case, context)
        )
    if not before.keys() <= document.catalogue.captures:
        was = capture_of(before, case.source, reader)
        refusal = refused_before(was, case, context) if isinstance(was, Rejected) else None
        if refusal and (kept := _without_captures(case, refusal, context)):
            return kept
    return _migrated(case, context)


def _programs(site: Site, document: Document) -> tuple[str, ...]:
    """Return the programs that get the flags of a site; those of a test case are in the recipes of the tests."""
    if (shown := site.programs or site.scripts) or not site.flags or not document.path.endswith((".yaml", ".yml")):
        return shown
    return programs_of_test_case(document.path)


def _is_up_to(path: str, package: str, release: Release) -> bool:
    """Return whether the project around a file pins a package to a release, or to an older one."""
    from pathlib import Path

    from cgmigrate.project.pins.package_pins import pinned_up_to

    return bool(path) and bool(pinned_up_to(Path(path).parent, package, release))


def _without_captures(case: SiteCase, reason: Reason, context: Context) -> SiteCase | None:
    """Return a site whose other settings are rewritten than those on which captures depend; None if none is."""
    captures = case.document.catalogue.captures
    if case.before.keys() <= captures:
        return None
    applied = with_rules_applied(case.keep(captures, reason), context)
    if applied.final is None or not differ(applied.final, applied.before):
        return None
    known = {rule.id for rule, _ in applied.matches}
    deprecated = (match for match in _matches_of_names(case, context) if match[0].id not in known)
    return replace(applied, matches=(*applied.matches, *deprecated))


def _migrated(case: SiteCase, context: Context) -> SiteCase:
    """Return a site with the rules applied to it."""
    case = with_rules_applied(case, context)
    if case.keeps_captures:
        return case
    case = _with_list(_name_none(case))
    return _keep_overriding(case, context) if case.site.overrides else case


def _with_list(case: SiteCase) -> SiteCase:
    """Return an object of code with its modules as a list, which is the type of the field, where the scope was none."""
    site, final = case.site, case.final or {}
    is_object = site.origin is not None and (site.overrides or site.constructs)
    if (
        not is_object
        or MODULES not in final
        or MODULES in site.own
        or not (final[MODULES] is None or isinstance(final[MODULES], str))
    ):
        return case
    return replace(case, final={**final, MODULES: names_in(final[MODULES])})


def _name_none(case: SiteCase) -> SiteCase:
    """Set the implementation to ``none`` for the branches of a condition in which a boolean is false."""
    written = case.document.sites[case.site.index].own
    if IMPL in case.before or not any(isinstance(written.get(name), Choice) for name in (ENABLE, EXTERNAL)):
        return case
    if case.final is not None and IMPL not in case.final:
        case = replace(case, final={**case.final, IMPL: "none"})
    if case.site.overrides:
        return case.risk(
            "where `cuda_graph_impl` is set elsewhere, false keeps that value, and `none` overrides it", of_object=True
        )
    return case


def _keep_overriding(case: SiteCase, context: Context) -> SiteCase:
    """Keep what a site that changes an object overrides: a deleted setting would keep its older value."""
    own, final = case.site.own, dict(case.final or {})
    if context.target < SPLIT_IN or case.blocked:
        return case
    elsewhere = "is set elsewhere, if at all"
    if SCOPE in own and SCOPE not in final:
        if own[SCOPE] is None and MODULES in case.before:
            case = case.risk("it resets the deprecated setting of an object on which it may be set", of_object=True)
            return replace(case, final=final)
        if case.reader is Reader.COMMAND_LINE and names_in(own[SCOPE]) == ["full"] and MODULES not in final:
            # A command line cannot say an empty list.
            return replace(case.risk(_OTHER_SCOPE, of_object=True), final=final)
        final.setdefault(MODULES, [])
        if IMPL not in final and not names_in(final[MODULES]):
            case = case.risk(
                f"the implementation {elsewhere}; where it is `local` with the scope full_iteration, "
                "this line turned the full iteration off",
                of_object=True,
            )
    if IMPL not in final and any(own.get(name) is False for name in (ENABLE, EXTERNAL)):
        case = case.risk(
            f"the implementation {elsewhere}, and false turned it off: to keep that, write `cuda_graph_impl` none",
            of_object=True,
        )
    return replace(case, final=final)


def source_for(settings: Settings, context: Context) -> Release:
    """Return the release that reads the current settings: one that has settings of these names."""
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    return context.target if new and context.source < SPLIT_IN <= context.target else context.source


def _matches_of_names(case: SiteCase, context: Context) -> tuple[tuple[Rule, RuleCase], ...]:
    """Return the matches of the deprecated names of a site that cannot be evaluated, so that each is reported."""
    decided = {name: value for name, value in case.before.items() if not isinstance(value, Undecided)}
    state = case.state(decided, context.target)
    matches = [
        (rule, matching_case(rule, state)) for rule in context.rules.values() if rule.kind is RuleKind.DEPRECATED
    ]
    return tuple((rule, match) for rule, match in matches if match is not None)

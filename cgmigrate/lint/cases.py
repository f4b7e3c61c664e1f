"""One site under examination: which rules match, what they rewrite it to, and what makes that unsafe."""

from __future__ import annotations

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.ownership import Owner
from cgmigrate.lint.diagnostics import Context, Diagnostic, SiteCase
from cgmigrate.lint.kinds import CheckKind, enabled_rule_for
from cgmigrate.lint.matches import place_of
from cgmigrate.lint.reasons import OR_UNSAFE
from cgmigrate.lint.rules import Case, Rule, RuleKind, matching_case
from cgmigrate.lint.unknown_values import unknown_value_diagnostics
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
from cgmigrate.megatron.types import Reader


def case_of(site: Site, owner: Owner, before: Settings, document: Document, context: Context) -> SiteCase:
    """Return a site of a known owner with its matching rules, its final settings, and what makes these unsafe.

    ``before`` are its settings with those that it merges.
    """
    assert owner.ecosystem is not None
    reader = owner.ecosystem.reader or Reader.CONFIG
    case = SiteCase(site, document, reader, before, _source_for(before, context))
    _block_fixed_text(case, owner, context)
    case.diagnostics += unknown_value_diagnostics(case, context)
    if any(isinstance(value, Undecided) for value in before.values()):
        case.block("another setting of the same configuration is computed when the file is used")
        case.matches = _matches_of_names(case, context)
    else:
        _migrate(case, context)
    if owner.ecosystem.overrides_parent and not site.inherits and _unsets(case):
        case.risk("it overrides settings of another file, and a false may turn one of them off")
    return case


def _block_fixed_text(case: SiteCase, owner: Owner, context: Context) -> None:
    """Block a site whose text has several owners, cannot be edited, or has a suppressed fix."""
    for reason in filter(None, (owner.conflict, case.site.blocked_by)):
        case.block(reason)
    if any(written.span in context.suppressed for written in case.site.written):
        case.block("a comment suppresses its fix")


def _migrate(case: SiteCase, context: Context) -> None:
    """Apply the rules to a site, and add the risks of what is around it."""
    _apply_rules(case, context)
    _name_none(case)
    if case.site.overrides:
        _keep_overriding(case, context)
    if any(match.fix for _, match in case.matches):
        _risk_readers(case, context)
        _risk_merged_files(case, context)


def _unsets(case: SiteCase) -> bool:
    """Return whether a boolean that is false would be deleted, so that an overridden setting takes effect."""
    final = case.final or case.before
    return any(case.before.get(name) is False and name not in final for name in (ENABLE, EXTERNAL))


def _risk_merged_files(case: SiteCase, context: Context) -> None:
    """Add a risk and a diagnostic for each file that this one is merged with."""
    merged = (
        (CheckKind.BUILDS_ON_FILES, case.document.builds_on or context.names_files),
        (CheckKind.MERGED_INTO_FILES, context.merged_into),
    )
    for kind, other in merged:
        if not other:
            continue
        rule = enabled_rule_for(kind, context.rules)
        case.risk(_merge_risk(rule, other), rule.id)
        # A mapping that only merges another shows no setting: the diagnostic is at the mapping that it merges.
        if case.site.written:
            case.diagnostics.append(_merged_diagnostic(rule, other, case))


def _risk_readers(case: SiteCase, context: Context) -> None:
    """Add a risk for each YAML key that code reads by its name, since the code has to change together with it."""
    if case.site.origin is not None:
        return
    for written in case.site.written:
        place = context.key_readers.get(written.field)
        if place and written.key.rpartition(".")[2] == written.field:
            case.risk(f"code reads or sets `{written.field}` by its name ({place}), and has to change together with it")


def _name_none(case: SiteCase) -> None:
    """Name the implementation ``none`` for the branches of a condition in which a boolean is false."""
    written = case.document.sites[case.site.index].own
    if IMPL in case.before or not any(isinstance(written.get(name), Choice) for name in (ENABLE, EXTERNAL)):
        return
    if case.final is not None and IMPL not in case.final:
        case.final = {**case.final, IMPL: "none"}
    if case.site.overrides:
        case.risk("the implementation may be set elsewhere: false left it on there, and `none` does not")


def _merged_diagnostic(rule: Rule, other: str, case: SiteCase) -> Diagnostic:
    """Return the diagnostic about a site that is merged with settings of another file."""
    written = place_of(rule.fields, case.site) or case.site.written[0]
    message = _merge_risk(rule, other)
    advice = f"migrate these files together by hand{OR_UNSAFE} each as if it were used alone"
    return Diagnostic(rule.id, rule.severity, written.span, message, help=advice, reports=rule.reports)


def _merge_risk(rule: Rule, other: str) -> str:
    direction = "is merged with" if rule.reports == CheckKind.BUILDS_ON_FILES else "is merged into"
    return f"the file {direction} `{other}`, and cgmigrate does not rewrite files together yet"


def _keep_overriding(case: SiteCase, context: Context) -> None:
    """Keep what a site that changes an object overrides: a deleted setting would keep its older value."""
    own, final = case.site.own, dict(case.final or {})
    if context.target < SPLIT_IN or case.blocked:
        return
    elsewhere = "is set elsewhere, if at all"
    if SCOPE in own and SCOPE not in final:
        if own[SCOPE] is None and MODULES in case.before:
            case.risk("it resets the deprecated setting of an object on which it may be set")
            case.final = final
            return
        final.setdefault(MODULES, [])
        if IMPL not in final and not names_in(final[MODULES]):
            case.risk(
                f"the implementation {elsewhere}; where it is `local` with the scope full_iteration, "
                "this line turned the full iteration off"
            )
    if IMPL not in final and any(own.get(name) is False for name in (ENABLE, EXTERNAL)):
        case.risk(
            f"the implementation {elsewhere}, and false turned it off: to keep that, write `cuda_graph_impl` none"
        )
    case.final = final


def _source_for(settings: Settings, context: Context) -> Release:
    """Return the release that reads the current settings: one that has settings of these names."""
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    return context.target if new and context.source < SPLIT_IN <= context.target else context.source


def _matches_of_names(case: SiteCase, context: Context) -> list[tuple[Rule, Case]]:
    """Return the matches of the deprecated names of a site that cannot be evaluated, so that each is reported."""
    decided = {name: value for name, value in case.before.items() if not isinstance(value, Undecided)}
    state = case.state(decided, context.target)
    matches = [
        (rule, matching_case(rule, state)) for rule in context.rules.values() if rule.kind is RuleKind.DEPRECATED
    ]
    return [(rule, match) for rule, match in matches if match is not None]


def _apply_rules(case: SiteCase, context: Context) -> None:
    """Let each migrating rule rewrite the settings once, in order, until none matches any more."""
    current, done = dict(case.before), set[tuple[str, int]]()
    rules = [rule for rule in context.rules.values() if rule.migrates and rule.available_in <= context.target]
    state = case.state(current, context.target)
    progress = True
    while progress:
        progress = False
        for rule in rules:
            match = matching_case(rule, state)
            if match is None or (rule.id, id(match)) in done:
                continue
            done.add((rule.id, id(match)))
            case.matches.append((rule, match))
            if match.fix is None:
                case.block(match.decide, rule.id)
                continue
            current = match.fix.apply(current)
            state = case.state(current, context.target)
            if match.fix.unsafe:
                case.risk(match.fix.unsafe, rule.id)
            progress = True
    case.final = current

"""One site under examination: which rules hold, what they rewrite it to, and what makes that unsafe."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cgmigrate.documents.sites import Document, Site, Written
from cgmigrate.linking.ownership import Owner
from cgmigrate.lint.advice import advice_for
from cgmigrate.lint.conditions import State, matching_case
from cgmigrate.lint.diagnostics import Context, Diagnostic, SiteCase, reader_name
from cgmigrate.lint.matches import place_of
from cgmigrate.lint.reasons import OR_UNSAFE
from cgmigrate.lint.rules import Case, Rule
from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import (
    DEPRECATED,
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


def _case_of(site: Site, owner: Owner, before: Settings, document: Document, context: Context) -> SiteCase:
    """A site of a known owner under examination."""
    assert owner.ecosystem is not None
    reader = owner.ecosystem.reader or Reader.CONFIG
    case = _examine_site(site, reader, before, owner.conflict, document, context)
    if owner.ecosystem.laid_over and not site.inherits and _unsets(case):
        case.risk("it is laid over settings that this file does not hold, and a false may undo one of them")
    return case


def _unsets(case: SiteCase) -> bool:
    """Whether a boolean that is false would be deleted, which matters where something lies below."""
    final = case.final or case.before
    return any(case.before.get(name) is False and name not in final for name in (ENABLE, EXTERNAL))


# --- one site -------------------------------------------------------------------------------------


def _examine_site(
    site: Site, reader: Reader, before: Settings, conflict: str, document: Document, context: Context
) -> SiteCase:
    case = SiteCase(site, document, reader, before, _source_for(before, context))
    for reason in filter(None, (conflict, site.blocked_by)):
        case.block(reason)
    if any(written.span in context.suppressed for written in site.written):
        case.block("it is to stay as it is")
    undecided = [written for written in site.written if isinstance(written.value, Undecided)]
    if site.origin is not None and not DEPRECATED & set(before):
        # Code computes values all the time; that is worth a word only where an old name has to be migrated.
        undecided = []
    if copied := _copied_from(undecided):
        case.diagnostics.append(_copy_diagnostic(context.rules["CG003"], copied, undecided))
    elif undecided:
        rule = context.rules["CG003"]
        for written in undecided:
            assert isinstance(written.value, Undecided)
            message = f"`{written.key}` has {written.value.reason}, so what is captured cannot be known from here"
            advice = advice_for(document, site, written, before)
            case.diagnostics.append(Diagnostic(rule.id, rule.severity, written.span, message, help=advice))
    if any(isinstance(value, Undecided) for value in before.values()):
        case.block("a value beside it is computed when the file is used")
        case.matches = _matches_of_names(case, context)
        return case
    _apply_rules(case, context)
    _name_none(case, document)
    if site.overrides:
        _keep_overriding(case, context)
    _risk_readers(case, context)
    for code, merged_with in (("CG004", document.builds_on or context.names_files), ("CG010", context.merged_into)):
        if merged_with and any(match.fix for _, match in case.matches):
            case.risk(_merge_risk(code, merged_with), code)
            # A mapping that only merges another shows no setting: the diagnostic is at the mapping that it merges.
            if case.site.written:
                case.diagnostics.append(_merged_diagnostic(context.rules[code], merged_with, case))
    return case


def _risk_readers(case: SiteCase, context: Context) -> None:
    """A key that code reads by its name has to change together with that code."""
    if case.site.origin is not None or not any(match.fix for _, match in case.matches):
        return
    for written in case.site.written:
        place = context.key_readers.get(written.field)
        if place and written.key.rpartition(".")[2] == written.field:
            case.risk(f"code reads or sets `{written.field}` by its name ({place}), and has to change together with it")


def _name_none(case: SiteCase, document: Document) -> None:
    """Where a condition chooses between true and false, false needs a name, too: the implementation ``none``."""
    written = document.sites[case.site.index].own
    if IMPL in case.before or not any(isinstance(written.get(name), Choice) for name in (ENABLE, EXTERNAL)):
        return
    if case.final is not None and IMPL not in case.final:
        case.final = {**case.final, IMPL: "none"}
    if case.site.overrides:
        case.risk("the implementation is set elsewhere, if at all: where it is, false left it on, and `none` does not")


def _merged_diagnostic(rule: Rule, other: str, case: SiteCase) -> Diagnostic:
    """What to say of a site whose other half may stand in another file."""
    written = place_of(rule.fields, case.site) or case.site.written[0]
    message = _merge_risk(rule.id, other)
    advice = f"migrate these files together by hand{OR_UNSAFE} each as if it stood alone"
    return Diagnostic(rule.id, rule.severity, written.span, message, help=advice)


def _merge_risk(code: str, other: str) -> str:
    direction = "is merged with" if code == "CG004" else "is merged into"
    return f"the file {direction} `{other}`, and cgmigrate does not rewrite files together yet"


def _keep_overriding(case: SiteCase, context: Context) -> None:
    """A site that changes an object must go on saying what it said: leaving a setting out keeps an older value."""
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


_DOTTED = re.compile(r"[A-Za-z_][\w.]*")


def _copied_from(undecided: Sequence[Written]) -> str:
    """The object of which settings are copied one by one, empty when there is no one such object."""
    objects: set[str] = set()
    for written in undecided:
        assert isinstance(written.value, Undecided)
        owner, dot, name = written.value.text.rpartition(".")
        objects.add(owner if dot and name == written.field and _DOTTED.fullmatch(owner) else "")
    return objects.pop() if len(objects) == 1 and len(undecided) > 1 else ""


def _copy_diagnostic(rule: Rule, copied: str, undecided: Sequence[Written]) -> Diagnostic:
    """One diagnostic for settings that are copied together, so that they go on being consistent."""
    written = next((written for written in undecided if written.field in DEPRECATED), undecided[0])
    *first, last = (f"`{other.field}`" for other in undecided)
    names = f"{', '.join(first)} and {last}"
    message = f"{names} are copied from `{copied}`, whose values are not known here"
    advice = (
        "copy `cuda_graph_impl`, `cuda_graph_modules` and `inference_cuda_graph_scope`, and no deprecated setting, "
        f"once `{copied}` is written with the new names"
    )
    return Diagnostic(rule.id, rule.severity, written.span, message, help=advice)


def _source_for(settings: Settings, context: Context) -> Release:
    """The release that reads the settings now: one that knows their names."""
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    return context.target if new and context.source < SPLIT_IN <= context.target else context.source


def _matches_of_names(case: SiteCase, context: Context) -> list[tuple[Rule, Case]]:
    """The deprecated names of a site that cannot be evaluated, so that none of them goes unsaid."""
    decided = {name: value for name, value in case.before.items() if not isinstance(value, Undecided)}
    state = State(decided, reader_name(case.reader), case.source, context.target)
    found = [(rule, matching_case(rule, state)) for rule in context.rules.values() if rule.id.startswith("CG1")]
    return [(rule, match) for rule, match in found if match is not None]


def _apply_rules(case: SiteCase, context: Context) -> None:
    """Let each migrating rule rewrite the settings once, in order, until none holds any more."""
    reader = reader_name(case.reader)
    current, done = dict(case.before), set[tuple[str, int]]()
    rules = [rule for rule in context.rules.values() if rule.migrates and rule.available_in <= context.target]
    progress = True
    while progress:
        progress = False
        for rule in rules:
            match = matching_case(rule, State(current, reader, case.source, context.target))
            if match is None or (rule.id, id(match)) in done:
                continue
            done.add((rule.id, id(match)))
            case.matches.append((rule, match))
            if match.fix is None:
                case.block(match.decide, rule.id)
                continue
            current = match.fix.apply(current)
            if match.fix.unsafe:
                case.risk(match.fix.unsafe, rule.id)
            progress = True
    case.final = current

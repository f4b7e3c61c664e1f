"""Diagnostics in words: where they point, what is said, the fix in short, and why it is held back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cgmigrate.documents.changes import Change, changes
from cgmigrate.documents.sites import Document, Site, Written
from cgmigrate.lint.advice import advice_for
from cgmigrate.lint.conditions import State, matching_case
from cgmigrate.lint.diagnostics import SAFE, UNSAFE, Context, Diagnostic, Examination, SiteCase, reader_name
from cgmigrate.lint.fix_text import fix_text
from cgmigrate.lint.rules import Case, Rule
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, SPLIT_IN, Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, IMPL, MODULES, SCOPE, Undecided
from cgmigrate.megatron.types import Capture, Reader, Rejected


def diagnostics_of(case: SiteCase, document: Document, context: Context, result: Examination) -> list[Diagnostic]:
    """Return all there is to say of one site, now that it is decided what becomes of it."""
    site = case.site
    applicability, planned = _plan(site, document, result)
    matches = [(rule, match, written) for rule, match in case.matches if (written := place_of(rule, site)) is not None]
    if not matches and planned:
        # What it inherits changes, and so must what it writes itself.
        matches = [(rule, match, _changed(site, planned)) for rule, match in case.matches[:1]]
    remarks = _remarks(case, applicability, context)
    if applicability != SAFE:
        matches, remarks = _without_repetition(matches, remarks)
    beside = [
        Diagnostic(rule.id, rule.severity, place.span, _message(match.message, case, context), help=advice)
        for rule, match, _ in remarks
        if (place := place_of(rule, site)) is not None
        for advice in (_message(match.help or match.decide, case, context),)
    ]
    refusals = {rule.id for rule, match, _ in remarks if "rejected" in match.when}
    refusal = next((diagnostic for diagnostic in beside if diagnostic.rule in refusals), None)
    # What says only why a fix is unsafe is settled with it.
    told = [_of_a_risk(f, applicability) if any(r.rule == f.rule for r in case.risks) else f for f in case.told]
    spans = {diagnostic.rule: diagnostic.span for diagnostic in reversed([*beside, *told])}
    spans |= {rule.id: written.span for rule, _, written in reversed(matches)}
    lines = {rule: _line(document, span.start) for rule, span in spans.items()}
    main = _main_rule(case, matches)
    found = list(told)
    for rule, match, written in matches:
        diagnostic = Diagnostic(rule.id, rule.severity, written.span, _message(match.message, case, context))
        fix = fix_text(document, site, written, planned, result.quotes.get(site.index, {}))
        notes = _notes(case, applicability, context) if rule.id == main else ()
        diagnostic = replace(diagnostic, fix=fix, applicability=applicability, notes=notes)
        if applicability != SAFE:
            diagnostic = _explained(diagnostic, case, refusal, lines, context)
        if not applicability and not diagnostic.help:
            diagnostic = replace(diagnostic, help=_by_hand(case, written, result))
        found.append(diagnostic)
    found += beside
    return [replace(diagnostic, site=site.index) for diagnostic in found + _unsaid(case, found, context)]


OR_UNSAFE = ", or with --unsafe-fixes"
"""The part of an advice that holds only where there is an unsafe fix."""


def _of_a_risk(diagnostic: Diagnostic, applicability: str) -> Diagnostic:
    """What says only why a fix is unsafe; where something else prevents the fix, no option applies it."""
    advice = diagnostic.help if applicability else diagnostic.help.partition(OR_UNSAFE)[0]
    return replace(diagnostic, applicability=applicability, help=advice)


def _plan(site: Site, document: Document, result: Examination) -> tuple[str, list[Change]]:
    """Whether a site's fix is safe or unsafe, and what it changes; empty where there is none."""
    for applicability, sites in ((UNSAFE, result.unsafe), (SAFE, result.safe)):
        if site.index in sites:
            return applicability, changes(document.sites[site.index].own, sites[site.index])
    return "", []


def _changed(site: Site, planned: Sequence[Change]) -> Written:
    names = {name for change in planned for name in (getattr(change, "name", ""), getattr(change, "old", ""))}
    return next((written for written in site.written if written.field in names), site.written[0])


def _main_rule(case: SiteCase, matches: Sequence[tuple[Rule, Case, Written]]) -> str:
    """The rule whose diagnostic carries the notes of a site: the one that gives a reason, else the first."""
    reasons = {reason.rule for reason in ([case.blocked] if case.blocked else case.risks)}
    return next((rule.id for rule, _, _ in matches if rule.id in reasons), matches[0][0].id if matches else "")


def _explained(
    diagnostic: Diagnostic, case: SiteCase, refusal: Diagnostic | None, lines: Mapping[str, int], context: Context
) -> Diagnostic:
    """A diagnostic with the reasons why its fix is unsafe or missing; ``lines`` are those of the site's diagnostics."""
    if case.blocked is None:
        # Its own reasons first; those of other diagnostics of the site with their place.
        reasons = sorted(case.risks, key=lambda reason: reason.rule not in ("", diagnostic.rule))
        texts = [_message(reason.text, case, context) + _at(reason.rule, diagnostic, lines) for reason in reasons]
        why = "; ".join(dict.fromkeys(texts))
        return replace(diagnostic, because=why) if diagnostic.applicability else replace(diagnostic, blocked_by=why)
    text, rule = _message(case.blocked.text, case, context), case.blocked.rule
    if rule == diagnostic.rule:
        return replace(diagnostic, help=text)
    if rule in lines:
        return replace(diagnostic, blocked_by=f"{rule} on line {lines[rule]}", help=text)
    if rule:
        return replace(diagnostic, help=text)
    other = refusal or next((told for told in case.told if told.rule == "CG003"), None)
    if other is not None:
        return replace(diagnostic, blocked_by=f"{other.rule} on line {lines[other.rule]}", help=other.help)
    return replace(diagnostic, blocked_by=text, help=_message(case.blocked.help, case, context))


def _by_hand(case: SiteCase, written: Written, result: Examination) -> str:
    """What to write where there is no fix: the fix that cannot be written, else advice for the setting alone."""
    site, document = case.site, case.document
    if site.index in result.by_hand:
        planned = changes(document.sites[site.index].own, result.by_hand[site.index])
        if text := fix_text(document, site, written, planned, {}):
            return f"by hand, {text}"
    return advice_for(document, site, written, case.before)


def _at(rule: str, diagnostic: Diagnostic, lines: Mapping[str, int]) -> str:
    return f" ({rule} on line {lines[rule]})" if rule in lines and rule != diagnostic.rule else ""


def _line(document: Document, offset: int) -> int:
    return document.text.count("\n", 0, offset) + 1


def _without_repetition(
    matches: list[tuple[Rule, Case, Written]], remarks: list[tuple[Rule, Case, tuple[str, ...]]]
) -> tuple[list[tuple[Rule, Case, Written]], list[tuple[Rule, Case, tuple[str, ...]]]]:
    """Where no fix is written, one diagnostic a setting says what is wrong.

    What a rule about this very trap says (CG3) goes before a refusal (CG2), and a refusal before
    the plain deprecation (CG1).
    """
    trapped = {written.field for rule, _, written in matches if not rule.id.startswith("CG1")}
    remarks = [r for r in remarks if "rejected" not in r[1].when or not trapped & set(r[2])]
    refused = {name for _, match, names in remarks if "rejected" in match.when for name in names}
    shown = [
        (rule, match, written)
        for rule, match, written in matches
        if not rule.id.startswith("CG1") or written.field not in trapped | refused
    ]
    return shown, remarks


def _unsaid(case: SiteCase, found: Sequence[Diagnostic], context: Context) -> list[Diagnostic]:
    """Deprecated names of which no rule had anything to say: an omission would be silent."""
    told = {diagnostic.span for diagnostic in found}
    result = []
    for written in case.site.written:
        rule = next(
            (r for r in context.rules.values() if r.id.startswith("CG1") and r.fields == (written.field,)), None
        )
        if rule is not None and written.span not in told and rule.deprecated_in <= context.target:
            diagnostic = Diagnostic(rule.id, rule.severity, written.span, rule.summary)
            if case.blocked:
                diagnostic = replace(diagnostic, blocked_by=_message(case.blocked.text, case, context))
            result.append(replace(diagnostic, help=advice_for(case.document, case.site, written, case.before)))
    return result


def _remarks(case: SiteCase, applicability: str, context: Context) -> list[tuple[Rule, Case, tuple[str, ...]]]:
    """Rules that only remark, on the settings as they will be when a safe fix is written, else as they are."""
    settings = case.final if applicability == SAFE and case.final is not None else case.before
    if any(isinstance(value, Undecided) for value in settings.values()):
        return []
    if case.site.overrides and not {IMPL, ENABLE, EXTERNAL} & set(settings):
        # The implementation is set elsewhere: what is missing here is not known to be missing.
        return []
    verdict = _refusal(case, context) if settings is case.before else None
    if verdict is not None and verdict[0].code == "bridge-local" and case.site.of_built_model:
        # Megatron-Bridge validates a configuration before the model is built, and not again.
        verdict = None
    state = State(settings, reader_name(case.reader), case.source, context.target, verdict[0].code if verdict else "")
    found: list[tuple[Rule, Case, tuple[str, ...]]] = []
    explained = False
    for rule in context.rules.values():
        if rule.migrates or (match := matching_case(rule, state)) is None:
            continue
        about_refusal = "rejected" in match.when
        if about_refusal and explained:
            continue
        explained = explained or about_refusal
        fields = verdict[0].fields if about_refusal and verdict else rule.fields
        found.append((replace(rule, fields=(*fields, *rule.fields)), match, fields))
    return found


def _refusal(case: SiteCase, context: Context) -> tuple[Rejected, Release] | None:
    """Who refuses a site as it is: the target, or else the source, and with what words."""
    for release in (context.target, case.source):
        verdict = capture_of(case.before, release, case.reader)
        if isinstance(verdict, Rejected) and verdict.stage == "config":
            return verdict, release
    return None


def place_of(rule: Rule, site: Site) -> Written | None:
    """Where a diagnostic points: the first of the rule's settings that the site itself writes."""
    by_name = {written.field: written for written in site.written}
    heirs = {MODULES: SCOPE, IMPL: ENABLE}
    for name in (*rule.fields, *(heirs[name] for name in rule.fields if name in heirs)):
        if name in by_name:
            return by_name[name]
    return None


_ASSIGNED = re.compile(r"`\{(\w+)\}: ([^`]+)`")
"""A setting with its value in a rule's text, which is shown in the syntax of the file."""


def _spelled(case: SiteCase, name: str, value: str) -> str:
    plain: object = value.strip("[]").replace(",", " ").split() if value.startswith("[") else value
    return case.document.spelled(case.site.index, name, {"null": None, "[]": []}.get(value, plain))


def _message(template: str, case: SiteCase, context: Context) -> str:
    """Fill in how this site spells the settings, the releases, and the reader's refusal."""
    if "{" not in template:
        return template
    filled = _ASSIGNED.sub(lambda found: f"`{_spelled(case, *found.groups())}`", template)
    for name in FIELDS:
        filled = filled.replace("{" + name + "}", case.site.written_as(name))
    filled = filled.replace("{source}", str(case.source)).replace("{target}", str(context.target))
    if "{reason}" in filled or "{refuser}" in filled:
        refusal = _refusal(case, context)
        assert refusal is not None, "only rules about a refusal quote one"
        filled = filled.replace("{reason}", refusal[0].reason.rstrip(".")).replace("{refuser}", str(refusal[1]))
    return filled


def _notes(case: SiteCase, applicability: str, context: Context) -> tuple[str, ...]:
    """What holds beside the diagnostic: settings set too late, and what an older release made of them."""
    if case.site.overrides and SCOPE in case.site.own and case.reader is Reader.CONFIG and context.target >= SPLIT_IN:
        late = "since megatron-core 0.18 an assignment to `cuda_graph_scope` is silently ignored"
        return (late if case.site.built else f"where the configuration is built already, {late}",)
    if applicability != SAFE or not context.assumed_source or case.source > LAST_OLD:
        return ()
    now = capture_of(case.before, case.source, case.reader)
    for minor in (16, 15, 14):
        older = Release(0, minor)
        then = capture_of(case.before, older, case.reader)
        if isinstance(then, Capture) and then != now:
            return (f"in megatron-core {older} this captured {then}; if you come from there, run with --from {older}",)
    return ()

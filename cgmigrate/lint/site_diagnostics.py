"""The diagnostics of one site, after its fix is decided."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from cgmigrate.documents.changes import Add, Change, Remove, Rename, Revalue, changes
from cgmigrate.documents.sites import Document, Site, Use
from cgmigrate.lint.advice import advice_for
from cgmigrate.lint.conditions import PACKAGE, absent_keys
from cgmigrate.lint.diagnostics import Applicability, Context, Fix, LintDiagnostic, SiteCase
from cgmigrate.lint.hybrid_forms import hybrid_notes
from cgmigrate.lint.kinds import CheckKind
from cgmigrate.lint.matches import (
    Match,
    migrating_matches,
    refusal_note,
    remarks_of,
    without_expected,
    without_repetition,
)
from cgmigrate.lint.rule_texts import SiteReasons, message, notes_of, with_fix
from cgmigrate.lint.rules import Rule, RuleCase, RuleKind
from cgmigrate.megatron.settings import MODULES, SCOPE, Settings, Undecided
from cgmigrate.text.spans import Span

# --- texts of fixes -------------------------------------------------------------------------------

LONGEST = 160
"""Characters of a quoted text that are shown."""


def fix_text(document: Document, site: Site, written: Use, planned: Iterable[Change], quotes: Mapping[str, str]) -> str:
    """Return the part of a fix that concerns one setting; ``quotes`` is how the site's settings read afterwards."""
    planned = list(planned)
    own = {one.setting: one for one in site.written}
    if written.setting == SCOPE and Revalue(SCOPE, None) in planned:
        modules = next((one.value for one in planned if isinstance(one, Add) and one.name == MODULES), None)
        if modules is not None and (call := document.call_instead(site.index, modules)):
            return f"write {quoted(call)}, which also clears the scope"
    parts: list[str] = []
    deleted: list[str] = []
    for change in planned:
        match change:
            case Rename(old=old, new=new, value=value) if old == written.setting:
                parts += _rewritten(
                    _text_of(document, written), quotes.get(new, ""), document, (site.index, new, value)
                )
            case Revalue(name=name, value=value):
                spelled = (site.index, name, value)
                parts += _rewritten(_text_of(document, own[name]), quotes.get(name, ""), document, spelled)
            case Add(name=name, value=value, after=beside) if beside == written.setting:
                parts.append(f"add {quoted(quotes.get(name) or document.spelled(site.index, name, value))}")
            case Remove(name=name) if name == written.setting:
                deleted.append(f"delete {_shortened(_text_of(document, written))}")
    return ", ".join([*parts, *deleted])


def _text_of(document: Document, written: Use) -> str:
    return document.text[written.span.start : written.span.end]


def _rewritten(before: str, after: str, document: Document, spelled: tuple[int, str, object]) -> list[str]:
    """Return what is written and deleted when one text becomes the other.

    A list of YAML in block style is shown as it would be written in one line; ``spelled`` are its site, its name and
    its value. Of brackets with comments, and where the value is not known, the lines that change are shown.
    """
    if not after or (_in_block_style(after) and not isinstance(spelled[2], Undecided)):
        return [f"write {quoted(document.spelled(*spelled))}"]
    if not _by_lines(after):
        return [f"write {quoted(after)}"]
    old, new = _lines(before), _lines(after)
    # The first line holds the name, which is written anew.
    written = [line for line in new if line not in old]
    deleted = [line for line in old[1:] if line not in new]
    return [f"write {quoted(line)}" for line in written] + [f"delete {quoted(line)}" for line in deleted]


def _shortened(text: str) -> str:
    """Return a deleted text for display; of several lines, the first."""
    if not _by_lines(text):
        return quoted(text)
    first = _lines(text)[0]
    return quoted(f"{first.partition(' #')[0] if _in_block_style(text) else first} …")


def _by_lines(text: str) -> bool:
    """Return whether line breaks mean something: a list of YAML in block style, or a comment inside brackets."""
    lines = _lines(text)
    return _in_block_style(text) or (len(lines) > 1 and any("#" in line for line in lines))


def _in_block_style(text: str) -> bool:
    """Return whether the value begins below the name, as a list of YAML in block style does."""
    lines = _lines(text)
    return len(lines) > 1 and re.fullmatch(r"[^\[({]*:(\s+#.*)?", lines[0]) is not None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def quoted(text: str) -> str:
    """Return a text in backticks, in one line."""
    shown = " ".join(text.split())
    return f"`{shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + '…'}`"


# --- site diagnostics ------------------------------------------------------------

Enabled = Callable[[str], bool]
"""Whether the rule of a code is reported for a file."""


@dataclass(frozen=True, slots=True)
class SiteOutcome:
    """What was decided about the fix of a site."""

    fix: Fix | None = None
    own: Settings | None = None
    """The settings that the fix writes at the site, None if it writes nothing there."""
    quotes: Mapping[str, str] = field(default_factory=dict)
    """How the settings of the site read after the fix, by name."""
    unwritable: Settings | None = None
    """Settings that are right, but that the text does not allow to be written."""


def diagnostics_of(case: SiteCase, context: Context, outcome: SiteOutcome, enabled: Enabled) -> list[LintDiagnostic]:
    """Return the diagnostics of a site, in the order: from its examination, migrations, remarks, deprecations."""
    diagnostics = SiteReport.of(case, context, outcome, enabled).diagnostics()
    diagnostics += _unreported(case, diagnostics, context)
    return [replace(diagnostic, site=case.site.index) for diagnostic in diagnostics]


@dataclass(frozen=True, slots=True)
class SiteReport:
    """What the diagnostics of a site are made of: its fix, and the rules that match."""

    case: SiteCase
    context: Context
    outcome: SiteOutcome
    changes: Sequence[Change]
    """What the fix changes, empty if there is none."""
    matches: Sequence[Match]
    remarks: Sequence[Match]

    @classmethod
    def of_fix(cls, case: SiteCase, context: Context, outcome: SiteOutcome, enabled: Enabled) -> SiteReport:
        """Return what a fix settles: a report without remarks, unless matches depend on them."""
        is_safe = outcome.fix is not None and outcome.fix.applicability is Applicability.SAFE
        if not is_safe or case.keeps_captures:
            return cls.of(case, context, outcome, enabled)
        fix = _changes(case, outcome)
        return cls(case, context, outcome, fix, migrating_matches(case, fix), ())

    @classmethod
    def of(cls, case: SiteCase, context: Context, outcome: SiteOutcome, enabled: Enabled) -> SiteReport:
        """Return what is to be reported of a site. ``enabled`` says which rules are reported."""
        fix = _changes(case, outcome)
        matches = migrating_matches(case, fix)
        applicability = outcome.fix.applicability if outcome.fix else None
        # A fix is not made unless all its rules are enabled.
        is_made = all(enabled(match.rule.id) for match in matches if not case.reason_to_keep(match.rule))
        remarks = remarks_of(case, applicability if is_made else None, context)
        if applicability is not Applicability.SAFE or case.keeps_captures:
            # Only what is reported takes precedence over the rest.
            reported = [match for match in matches if enabled(match.rule.id)]
            kept, remarks = without_repetition(reported, [match for match in remarks if enabled(match.rule.id)])
            matches = [match for match in matches if match in kept or not enabled(match.rule.id)]
        return cls(case, context, outcome, fix, matches, without_expected(remarks, case))

    def places_of_fix(self) -> Iterator[tuple[str, Span, bool]]:
        """Yield each diagnostic that the fix settles: its rule, its span, and whether the rule is one of the fix.

        Others only say why the fix is unsafe.
        """
        risks = {risk.rule for risk in self.case.risks}
        yield from ((item.rule, item.span, False) for item in self.case.diagnostics if item.rule in risks)
        rewritten = (match for match in self.matches if not self.case.reason_to_keep(match.rule))
        yield from ((match.rule.id, match.written.span, True) for match in rewritten)

    def diagnostics(self) -> list[LintDiagnostic]:
        """Return the diagnostics of the site."""
        raised = list(self._raised())
        remarks = [self._remark(match) for match in self.remarks]
        reasons = self._reasons(raised, remarks)
        main = self._main_rule()
        migrations = [self._migration(match, reasons, match.rule.id == main) for match in self.matches]
        return [*raised, *migrations, *remarks]

    def _raised(self) -> Iterator[LintDiagnostic]:
        """The diagnostics of the examination; one that gives a risk is settled with the fix that it makes unsafe."""
        risks = {risk.rule for risk in self.case.risks}
        for diagnostic in self.case.diagnostics:
            is_risk = diagnostic.rule in risks
            yield with_fix(diagnostic, self.outcome.fix) if is_risk else diagnostic

    def _remark(self, match: Match) -> LintDiagnostic:
        diagnostic = self._diagnostic(match)
        return replace(diagnostic, help=message(match.case.help or match.case.decide, self.case, self.context))

    def _migration(self, match: Match, reasons: SiteReasons, is_main: bool) -> LintDiagnostic:
        """Return the diagnostic of a rule that rewrites the site; the main one carries the notes of the site."""
        case, kept = self.case, self.case.reason_to_keep(match.rule)
        fix = None if kept else self.outcome.fix
        applicability = fix.applicability if fix else None
        diagnostic = self._diagnostic(match)
        diagnostic = replace(
            diagnostic,
            fix=fix,
            fix_text=""
            if kept
            else fix_text(case.document, case.site, match.written, self.changes, self.outcome.quotes),
            notes=(*diagnostic.notes, *(self._notes(applicability) if is_main else ())),
        )
        if applicability is not Applicability.SAFE:
            about_captures = not match.rule.names.isdisjoint(case.document.catalogue.captures)
            reasons = reasons if about_captures or not kept else replace(reasons, cause=None)
            diagnostic = reasons.explain(diagnostic, kept)
            if not about_captures and not fix and match.case.decide:
                diagnostic = replace(diagnostic, help=message(match.case.decide, case, self.context))
        if not fix and not diagnostic.help:
            return replace(diagnostic, help=self._by_hand(match))
        return diagnostic

    def _notes(self, applicability: Applicability | None) -> tuple[str, ...]:
        return (*(self.case.notes if applicability else ()), *notes_of(self.case, applicability, self.context))

    def _diagnostic(self, match: Match) -> LintDiagnostic:
        text = message(f"{match.case.message}{self._unless_elsewhere(match)}", self.case, self.context)
        notes = (*self._quotation(match.case), *self._pins(match.case))
        notes += hybrid_notes(self.case, self.context.target) if match.case.is_hybrid else ()
        return LintDiagnostic(match.rule.id, match.severity, match.written.span, text, notes=notes)

    def _unless_elsewhere(self, match: Match) -> str:
        """Return on which settings a diagnostic depends that another file may set; empty if there is none."""
        if match.rule.kind is not RuleKind.COMPANION:
            return ""
        state = self.case.state(self.case.before, self.context.target)
        settings = (self.case.document.catalogue[name] for name in dict.fromkeys(absent_keys(match.case.when, state)))
        of_target = [one for one in settings if one.since <= self.context.target]
        # A flag that turns it off is named by the message.
        names = [one.name for one in of_target if not one.no_flag or one.no_flag not in match.case.message]
        verb = "is" if len(names) == 1 else "are"
        return f", if {' and '.join(f'`{{{name}}}`' for name in names)} {verb} not set elsewhere" if names else ""

    def _pins(self, case: RuleCase) -> tuple[str, ...]:
        """Return a note for each package whose pinned version is too old."""
        tested = case.when.get(PACKAGE, {}).items()
        limits = [(name, tests["below"]) for name, tests in tested if "below" in tests]
        if not limits or not self.case.path:
            return ()
        from pathlib import Path

        from cgmigrate.project.pins.package_pins import pin_below

        folder = Path(self.case.path).parent
        return tuple(f"the project pins {pin_below(folder, name, limit)}" for name, limit in limits)

    def _quotation(self, case: RuleCase) -> tuple[str, ...]:
        """Return a note with the refusal that a case is about, unless its message quotes it."""
        if not case.about_refusal or "{reason}" in case.message:
            return ()
        return tuple(filter(None, [refusal_note(self.case, self.context)]))

    def _reasons(self, raised: Sequence[LintDiagnostic], remarks: Sequence[LintDiagnostic]) -> SiteReasons:
        spans = [(match.rule.id, match.written.span) for match in self.matches]
        spans += [(diagnostic.rule, diagnostic.span) for diagnostic in (*remarks, *raised)]
        refusals = (
            diagnostic for match, diagnostic in zip(self.remarks, remarks, strict=True) if match.case.about_refusal
        )
        unknown_values = (one for one in self.case.diagnostics if one.reports == CheckKind.UNKNOWN_VALUE)
        cause = next(chain(refusals, unknown_values), None)
        return SiteReasons(self.case, self.context, _first_lines(self.case.document, spans), cause)

    def _main_rule(self) -> str:
        """Return the rule that carries the notes: the first that gives a reason, else the first."""
        case, ids = self.case, [rule for rule, _, is_of_fix in self.places_of_fix() if is_of_fix]
        reasons = {reason.rule for reason in ([case.blocked] if case.blocked else case.risks)}
        return next((rule for rule in ids if rule in reasons), ids[0] if ids else "")

    def _by_hand(self, match: Match) -> str:
        """Return what to write if there is no fix: the fix that cannot be written, else advice for the setting."""
        site, document = self.case.site, self.case.document
        if self.outcome.unwritable is not None:
            planned = changes(document.sites[site.index].own, self.outcome.unwritable, document.catalogue)
            if text := fix_text(document, site, match.written, planned, {}):
                return f"by hand, {text}"
        return advice_for(document, site, match.written, self.case.before, self.context.target)


def _changes(case: SiteCase, outcome: SiteOutcome) -> list[Change]:
    """Return what the fix of a site changes, empty if there is none."""
    own = case.document.sites[case.site.index].own
    return changes(own, outcome.own, case.document.catalogue) if outcome.own is not None else []


def _first_lines(document: Document, spans: Iterable[tuple[str, Span]]) -> dict[str, int]:
    """Return rule → line (from 1) of the first of its spans."""
    first: dict[str, Span] = {}
    for rule, span in spans:
        first.setdefault(rule, span)
    return {rule: document.text.count("\n", 0, span.start) + 1 for rule, span in first.items()}


def _unreported(case: SiteCase, diagnostics: Sequence[LintDiagnostic], context: Context) -> Iterator[LintDiagnostic]:
    """The deprecated names that no diagnostic underlines, so that none is passed over silently."""
    underlined = {diagnostic.span for diagnostic in diagnostics}
    blocked_by = message(case.blocked.text, case, context) if case.blocked else ""
    for written in case.site.written:
        rule = _deprecation_of(written.setting, context)
        if rule is None or written.span in underlined:
            continue
        diagnostic = LintDiagnostic(rule.id, rule.severity, written.span, rule.summary)
        advice = advice_for(case.document, case.site, written, case.before, context.target)
        yield replace(diagnostic, blocked_by=blocked_by, help=advice)


def _deprecation_of(name: str, context: Context) -> Rule | None:
    """Return the rule about a deprecated name alone, None if the target does not deprecate it."""
    of_name = (rule for rule in context.rules.values() if rule.kind is RuleKind.DEPRECATED and rule.fields == (name,))
    rule = next(of_name, None)
    return rule if rule is not None and rule.concerns(context.target) else None

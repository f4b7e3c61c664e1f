"""Why the fix of a diagnostic is unsafe or missing, with references to the other diagnostics of its site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cgmigrate.lint.diagnostics import Applicability, Context, Fix, LintDiagnostic, Reason, SiteCase
from cgmigrate.lint.rule_texts import message

OR_UNSAFE = ", or with --unsafe-fixes"
"""The part of an advice that is true only if there is an unsafe fix."""


def with_fix(diagnostic: LintDiagnostic, fix: Fix | None) -> LintDiagnostic:
    """Return a diagnostic that only says why a site's fix is unsafe, with that fix."""
    advice = diagnostic.help if fix else diagnostic.help.partition(OR_UNSAFE)[0]
    return replace(diagnostic, fix=fix, help=advice)


@dataclass(frozen=True, slots=True)
class SiteReasons:
    """The reasons of one site, and the diagnostics of the site that they refer to."""

    case: SiteCase
    context: Context
    lines: Mapping[str, int]
    """Rule → line of its first diagnostic at the site."""
    cause: LintDiagnostic | None = None
    """The diagnostic that explains a block that no rule gave: a refusal, or a value that is not known."""

    def explain(self, diagnostic: LintDiagnostic, kept: Reason | None = None) -> LintDiagnostic:
        """Return a diagnostic with the reasons why its fix is unsafe or missing; ``kept`` is that of its settings."""
        blocked = self.case.blocked or kept
        return self._with_risks(diagnostic) if blocked is None else self._with_block(diagnostic, blocked)

    def _with_risks(self, diagnostic: LintDiagnostic) -> LintDiagnostic:
        if diagnostic.applicability is Applicability.NOT_ANALYSED:
            return diagnostic
        # Its own reasons come first; those of other diagnostics follow, with their lines.
        reasons = sorted(self.case.risks, key=lambda reason: reason.rule not in ("", diagnostic.rule))
        texts = [self._message(reason.text) + self._reference(reason.rule, diagnostic) for reason in reasons]
        text = "; ".join(dict.fromkeys(texts))
        return replace(diagnostic, because=text) if diagnostic.applicability else replace(diagnostic, blocked_by=text)

    def _with_block(self, diagnostic: LintDiagnostic, blocked: Reason) -> LintDiagnostic:
        text = self._message(blocked.text)
        if blocked.rule:
            elsewhere = blocked.rule != diagnostic.rule and blocked.rule in self.lines
            return replace(diagnostic, blocked_by=self._line_of(blocked.rule) if elsewhere else "", help=text)
        if self.cause is not None:
            return replace(diagnostic, blocked_by=self._line_of(self.cause.rule), help=self.cause.help)
        return replace(diagnostic, blocked_by=text, help=self._message(blocked.help))

    def _message(self, template: str) -> str:
        return message(template, self.case, self.context)

    def _line_of(self, rule: str) -> str:
        return f"{rule} on line {self.lines[rule]}"

    def _reference(self, rule: str, diagnostic: LintDiagnostic) -> str:
        return f" ({self._line_of(rule)})" if rule in self.lines and rule != diagnostic.rule else ""

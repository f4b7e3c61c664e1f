"""Messages and notes: the text of a rule with the spelling of the site, the releases and the refusal filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.lint.diagnostics import Applicability, Context, Fix, LintDiagnostic, Reason, SiteCase
from cgmigrate.lint.matches import refusal_of
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, SPLIT_IN, Release
from cgmigrate.megatron.settings import SCOPE
from cgmigrate.megatron.types import Capture, Reader

if TYPE_CHECKING:
    pass

_ASSIGNED = re.compile(r"`\{([\w.]+)\}: ([^`]+)`")
"""A setting with its value in the text of a rule, which is shown in the syntax of the file."""
_NAME = re.compile(r"\{([\w.]+)\}")


def message(template: str, case: SiteCase, context: Context) -> str:
    """Return a text of a rule with its placeholders filled in for a site."""
    if "{" not in template:
        return template
    target = context.target
    filled = _ASSIGNED.sub(lambda match: f"`{_spelled(case, *_of_target(case, target, *match.groups()))}`", template)
    filled = _NAME.sub(lambda match: _named(case, target, match), filled)
    filled = filled.replace("{source}", str(case.source)).replace("{target}", str(context.target))
    if "{ignored}" in filled and case.surroundings is not None:
        filled = filled.replace(
            "{ignored}", ", ".join(f"`{case.site.written_as(n)}`" for n in case.surroundings.ignored())
        )
    if "{reason}" in filled or "{refuser}" in filled:
        refusal = refusal_of(case, context)
        assert refusal is not None, "only rules about a refusal quote one"
        filled = filled.replace("{reason}", refusal[0].reason.rstrip(".")).replace("{refuser}", str(refusal[1]))
    return filled


def _named(case: SiteCase, target: Release, match: re.Match[str]) -> str:
    """Return the spelling of the setting that a placeholder names; the placeholder of anything else."""
    name = match[1]
    return _key(case, _of_target(case, target, name, "")[0]) if name in case.document.catalogue else match[0]


def _of_target(case: SiteCase, target: Release, name: str, value: str) -> tuple[str, str]:
    """Return a setting and its value by the name that the target has for it: an old one where the new one is newer."""
    catalogue = case.document.catalogue
    if (setting := catalogue.get(name)) is None or setting.since <= target or name in case.before:
        return name, value
    for old in catalogue.all_older_names(name):
        if catalogue[old].since > target or catalogue[old].replaced_by[:1] != (name,):
            continue
        values = {str(new): str(former).lower() for former, new in catalogue[old].values}
        if not values or not value:
            return old, value
        if value in values:
            return old, values[value]
    return name, value


def _key(case: SiteCase, name: str) -> str:
    return case.site.written_as(name) if case.surroundings is None else case.surroundings.key(name)


def _spelled(case: SiteCase, name: str, value: str) -> str:
    if name not in case.document.catalogue.name_set:
        return f"{_key(case, name)}: {value}"
    plain: object = value.strip("[]").replace(",", " ").split() if value.startswith("[") else value
    return case.document.spelled(case.site.index, name, {"null": None, "[]": []}.get(value, plain))


def notes_of(case: SiteCase, applicability: Applicability | None, context: Context) -> tuple[str, ...]:
    """Return the notes of a site: an assignment that comes too late, and a different meaning in an older release."""
    origin = case.site.origin
    assigns = case.site.overrides and origin is not None and origin.object and SCOPE in case.site.own
    if assigns and case.reader is Reader.CONFIG and context.target >= SPLIT_IN:
        late = "megatron-core >= 0.18 silently ignores an assignment to `cuda_graph_scope`"
        return (late if case.site.built else f"if the config is already built, {late}",)
    known = applicability is Applicability.SAFE and not case.keeps_captures
    if not known or not context.assumed_source or case.source > LAST_OLD:
        return ()
    now = capture_of(case.before, case.source, case.reader)
    for minor in (16, 15, 14):
        older = Release(0, minor)
        then = capture_of(case.before, older, case.reader)
        if isinstance(then, Capture) and then != now:
            return (f"in megatron-core {older} this captured {then}; if you come from there, run with --from {older}",)
    return ()


# --- why a fix is as it is ------------------------------------------------------------------------

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

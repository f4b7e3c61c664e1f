"""Settings whose values are computed when the file is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cgmigrate.documents.sites import Use
from cgmigrate.lint.advice import advice_for
from cgmigrate.lint.diagnostics import Context, LintDiagnostic, SiteCase
from cgmigrate.lint.kinds import CheckKind, enabled_rule_for
from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.settings import DEPRECATED, MergedValue, Undecided
from cgmigrate.text.spans import Span

_DOTTED = re.compile(r"[A-Za-z_][\w.]*")


def unknown_value_diagnostics(case: SiteCase, context: Context) -> list[LintDiagnostic]:
    """Return the diagnostics about the values of a site that are not known."""
    catalogue = case.document.catalogue
    deprecated = context.deprecated(catalogue)
    # What the project's release does not deprecate is not to be migrated.
    concerned = catalogue.captures - (catalogue.deprecated - deprecated)
    relevant = [written for written in case.site.written if written.setting in concerned]
    undecided = [written for written in relevant if isinstance(written.value, Undecided)]
    if case.site.origin is not None and not DEPRECATED & deprecated & case.before.keys():
        # Code computes values all the time; only where an old name has to be migrated does that matter.
        return []
    rule = enabled_rule_for(CheckKind.UNKNOWN_VALUE, context.rules)
    if copied := _copied_from(undecided):
        return [_copy_diagnostic(rule, copied, undecided)]
    return [*(_diagnostic(rule, written, case, context) for written in undecided), *_merged_diagnostics(rule, case)]


def _merged_diagnostics(rule: Rule, case: SiteCase) -> Iterator[LintDiagnostic]:
    """Yield a diagnostic for each setting that the mappings which a site merges have differently, at its first line."""
    site, text = case.site, case.document.text
    if not site.unordered:
        return
    end = text.find("\n", site.span.start, site.span.end)
    span = Span(site.span.start, site.span.end if end < 0 else end)
    for name, value in case.before.items():
        if isinstance(value, MergedValue) and name in case.document.catalogue.captures:
            message = f"`{name}` has {value.reason}; cgmigrate cannot tell what is captured"
            help = f"write `{name}` in this mapping, or merge one mapping that has it"
            yield LintDiagnostic(rule.id, rule.severity, span, message, help=help, reports=rule.reports)


def _diagnostic(rule: Rule, written: Use, case: SiteCase, context: Context) -> LintDiagnostic:
    assert isinstance(written.value, Undecided)
    message = f"`{written.key}` has {written.value.reason}; cgmigrate cannot tell what is captured"
    advice = advice_for(case.document, case.site, written, case.before, context.target)
    return LintDiagnostic(rule.id, rule.severity, written.span, message, help=advice, reports=rule.reports)


def _copied_from(undecided: Sequence[Use]) -> str:
    """Return the object from which all of several settings are copied, empty if there is no such object."""
    objects: set[str] = set()
    for written in undecided:
        assert isinstance(written.value, Undecided)
        owner, dot, name = written.value.text.rpartition(".")
        objects.add(owner if dot and name == written.setting and _DOTTED.fullmatch(owner) else "")
    return objects.pop() if len(objects) == 1 and len(undecided) > 1 else ""


def _copy_diagnostic(rule: Rule, copied: str, undecided: Sequence[Use]) -> LintDiagnostic:
    """Return one diagnostic for settings that are copied together and have to stay consistent."""
    written = next((written for written in undecided if written.setting in DEPRECATED), undecided[0])
    *first, last = (f"`{other.setting}`" for other in undecided)
    message = f"{', '.join(first)} and {last} are copied from `{copied}`, whose values are not known"
    advice = (
        "copy `cuda_graph_impl`, `cuda_graph_modules` and `inference_cuda_graph_scope`, and no deprecated setting, "
        f"once `{copied}` is written with the new names"
    )
    return LintDiagnostic(rule.id, rule.severity, written.span, message, help=advice, reports=rule.reports)

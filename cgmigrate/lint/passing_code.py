"""Code that passes Megatron's settings on: its types, its checks and what it sets.

Such code has a mapping with Megatron's names (``megatron_cfg``), declares the keys, checks the values and sets the
fields of a configuration. It is looked at only if a rule reports one of the kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cgmigrate.documents.python import PythonDocument
from cgmigrate.lint.diagnostics import Context, Diagnostic
from cgmigrate.lint.kinds import PassingKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cgmigrate.documents.sites import Document
    from cgmigrate.lint.passing_findings import Finding

_KINDS = frozenset(str(kind) for kind in PassingKind)


def passing_diagnostics(document: Document, context: Context) -> list[Diagnostic]:
    """Return the diagnostics about code of a file that passes settings on, for the rules that apply to the target."""
    if not isinstance(document, PythonDocument) or document.source is None:
        return []
    # Each file asks: the rules are gone through once, not once for each kind.
    kinds = {rule.reports: rule for rule in context.rules.values() if rule.reports in _KINDS}
    enabled = {kind: rule for kind, rule in kinds.items() if rule.concerns(context.target)}
    if not enabled:
        return []
    return [
        Diagnostic(rule.id, rule.severity, document.source.span(one.node), one.message, reports=rule.reports)
        for one in _findings(document, context)
        if (rule := enabled.get(one.kind)) is not None
    ]


def _findings(document: PythonDocument, context: Context) -> Iterator[Finding]:
    from cgmigrate.lint.passing_assignments import assignment_findings
    from cgmigrate.lint.passing_checks import check_findings
    from cgmigrate.lint.passing_copies import copy_findings
    from cgmigrate.lint.passing_keys import key_findings
    from cgmigrate.lint.passing_types import type_findings

    yield from key_findings(document)
    yield from type_findings(document, context.target)
    yield from check_findings(document, context.target)
    yield from assignment_findings(document)
    yield from copy_findings(document, context.target)

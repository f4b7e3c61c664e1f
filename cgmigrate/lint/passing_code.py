"""Code that passes Megatron's settings on: its types, its checks and what it sets.

Such code has a mapping with Megatron's names (``megatron_cfg``), declares the keys, checks the values and sets the
fields of a configuration. It is looked at only if a rule reports one of the kinds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from cgmigrate.documents.nesting import NestingDocument
from cgmigrate.documents.python import PythonDocument
from cgmigrate.lint.diagnostics import Context, Diagnostic
from cgmigrate.lint.kinds import PassingKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cgmigrate.documents.code import Code
    from cgmigrate.documents.python.source import Source
    from cgmigrate.documents.sites import Document
    from cgmigrate.lint.passing_findings import Finding
    from cgmigrate.text.spans import Span

    _InFile: TypeAlias = Callable[[Span], Span]

_KINDS = frozenset(str(kind) for kind in PassingKind)


def passing_diagnostics(document: Document, context: Context) -> list[Diagnostic]:
    """Return the diagnostics about code of a file that passes settings on, for the rules that apply to the target.

    The code of a notebook's cells is one program. Code blocks of pages are not looked at: an example is a part of a
    program, and what it lacks may be in the rest.
    """
    programs = list(_programs(document, _as_it_is))
    if not programs:
        return []
    # Each file asks: the rules are gone through once, not once for each kind.
    kinds = {rule.reports: rule for rule in context.rules.values() if rule.reports in _KINDS}
    enabled = {kind: rule for kind, rule in kinds.items() if rule.concerns(context.target)}
    if not enabled:
        return []
    return [
        Diagnostic(rule.id, rule.severity, in_file(source.span(one.node)), one.message, reports=rule.reports)
        for program, source, in_file in programs
        for one in _findings(program, context)
        if (rule := enabled.get(one.kind)) is not None
    ]


def _as_it_is(span: Span) -> Span:
    """Return a span of a file that is Python."""
    return span


def _programs(document: Document, in_file: _InFile) -> Iterator[tuple[PythonDocument, Source, _InFile]]:
    """Yield the Python of a document and of its parts, with what returns where a span of it is in the file."""
    if isinstance(document, PythonDocument) and document.source is not None:
        yield document, document.source, in_file
    elif isinstance(document, NestingDocument):
        yield from _programs(document.outer, in_file)
        for one in document.readable_parts:
            yield from _programs(one.document, partial(_outside, one.part.code, in_file))


def _outside(code: Code, in_file: _InFile, span: Span) -> Span:
    """Return where a span of a part is in the file."""
    return in_file(code.span(span))


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

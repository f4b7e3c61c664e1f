"""Copies of a configuration with other graphs: `dataclasses.replace(config, cuda_graph_impl="none")`.

A copy is validated again. It has what the first validation derived: since 0.18 an inference scope that belongs to the
implementation, and the former booleans that were migrated.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from cgmigrate.documents.nesting import NestingDocument
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.python.name_resolution import MEGATRON
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.documents.python.values import plain_value
from cgmigrate.lint.diagnostics import Context, LintDiagnostic
from cgmigrate.lint.kinds import CheckKind, rule_for
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, INFERENCE, MODULES
from cgmigrate.megatron.types import Reader, Rejected

if TYPE_CHECKING:
    from cgmigrate.documents.code import CodeText
    from cgmigrate.documents.sites import Document
    from cgmigrate.text.spans import Span

    _InFile: TypeAlias = Callable[[Span], Span]

_COPIES = ("dataclasses.replace", "copy.replace")
_CONFIGURATION = "TransformerConfig"
_DERIVES = Release(0, 18)
"""The first release that derives the inference scope when a configuration is validated."""
_BECAME = {ENABLE: "local", EXTERNAL: "transformer_engine"}
"""The former booleans, each with the implementation that it is migrated to."""
_SCOPE = (
    "the copy keeps the inference scope `{scope}` of `{old}`, which `{new}` does not take, and its validation fails"
)
_BOOLEAN = "the copy has both `{name}` and the implementation that it became, and its validation fails"

Settings = Mapping[str, object]


def copy_diagnostics(document: Document, context: Context) -> list[LintDiagnostic]:
    """Return the diagnostics about copies in the code of a file, here-documents in Python included."""
    rule = rule_for(CheckKind.INVALID_COPY, context.rules)
    if rule is None or not rule.concerns(context.target):
        return []
    return [
        LintDiagnostic(rule.id, rule.severity, span, message, reports=rule.reports)
        for span, message in _in_programs(document, context.target, lambda span: span)
    ]


def _in_programs(document: Document, target: Release, in_file: _InFile) -> Iterator[tuple[Span, str]]:
    """Yield the copies that fail in the Python of a document and of its parts; ``in_file`` maps a span to the file."""
    if isinstance(document, PythonDocument) and document.source is not None:
        for call, message in _failing_copies(document, target):
            yield in_file(document.source.span(call)), message
    elif isinstance(document, NestingDocument):
        yield from _in_programs(document.outer, target, in_file)
        for one in document.readable_parts:
            yield from _in_programs(one.document, target, partial(_outside, one.part.code, in_file))


def _outside(code: CodeText, in_file: _InFile, span: Span) -> Span:
    """Return where a span of a part is in the file."""
    return in_file(code.span(span))


def _failing_copies(document: PythonDocument, target: Release) -> Iterator[tuple[ast.Call, str]]:
    """Yield the copies of megatron-core's configurations whose validation fails, each with the reason."""
    source = document.source
    imports_megatron = any(module.partition(".")[0] in MEGATRON for module in document.top_level)
    if source is None or "replace(" not in document.text or not imports_megatron:
        return
    for call, scope in _calls(source.tree, source.tree):
        if document.names.resolve(dotted(call.func)) in _COPIES and call.args:
            original = _original(call.args[0], scope, document)
            message = _failure(original, _keywords(call, document), target) if original is not None else ""
            if message:
                yield call, message


def _calls(node: ast.AST, scope: ast.AST) -> Iterator[tuple[ast.Call, ast.AST]]:
    """Yield the calls in a node, each with the function around it, or the module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, scope
        yield from _calls(child, child if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope)


def _original(node: ast.expr, scope: ast.AST, document: PythonDocument) -> Settings | None:
    """Return the settings with which a configuration of megatron-core was made; None if that is not known."""
    if isinstance(node, ast.Name):
        values = [one.value for one in walk(scope) if isinstance(one, ast.Assign) and _is_named(one, node.id)]
        is_one = sum(_binds(one, node.id) for one in walk(scope)) == len(values) == 1
        return _original(values[0], scope, document) if is_one and isinstance(values[0], ast.Call) else None
    name = document.names.resolve(dotted(node.func)) if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or not (name.startswith("megatron.core.") and name.endswith(_CONFIGURATION)):
        return None
    return None if any(one.arg is None for one in node.keywords) else _keywords(node, document)


def _is_named(assign: ast.Assign, name: str) -> bool:
    return [dotted(one) for one in assign.targets] == [name]


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node gives a variable, or one of its attributes, a value."""
    match node:
        case ast.Name(id=bound, ctx=ast.Store() | ast.Del()) | ast.arg(arg=bound):
            return bound == name
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            return dotted(node).partition(".")[0] == name
    return False


def _keywords(call: ast.Call, document: PythonDocument) -> Settings:
    """Return the arguments with a name that are settings of graphs, as plain values."""
    names = (IMPL, INFERENCE, MODULES, ENABLE, EXTERNAL)
    return {one.arg: plain_value(one.value, document.names) for one in call.keywords if one.arg in names}


def _failure(original: Settings, changed: Settings, target: Release) -> str:
    """Return why the validation of a copy fails, empty if it does not, or if that is not known."""
    values = (*original.values(), *changed.values())
    if not all(value is None or isinstance(value, (str, bool, list)) for value in values):
        return ""
    former = next((name for name in _BECAME if original.get(name) is True), "")
    old = _BECAME.get(former) or original.get(IMPL, "none")
    new = changed.get(IMPL, old)
    if former and changed.get(former) is not False:
        # With `none`, the boolean is migrated once more.
        return "" if new == "none" else _BOOLEAN.format(name=former)
    if target < _DERIVES or INFERENCE in changed or any(changed.get(name) is True for name in _BECAME):
        return ""
    scope = original.get(INFERENCE) or ("layer" if old == "local" else "none")
    is_refused = isinstance(capture_of({IMPL: new, INFERENCE: scope}, target, Reader.CONFIG), Rejected)
    return _SCOPE.format(scope=scope, old=old, new=new) if is_refused else ""

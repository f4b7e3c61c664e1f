"""Types of code that passes settings on: a ``Literal`` of scopes that is a copy of Megatron's list, or was one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.python.source import dotted
from cgmigrate.lint.kinds import PassingKind
from cgmigrate.lint.passing_findings import WRAPPERS, Finding, lacking, quoted, values_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import MODULES, SCOPE

if TYPE_CHECKING:
    from cgmigrate.documents.python import PythonDocument

_LISTS = ("list", "List", "Sequence", "tuple", "Tuple", "set", "Set", "Iterable")
_MAX_STEPS = 4


@dataclass(frozen=True, slots=True)
class Admitted:
    """The texts that a type admits: each alone, and those in lists. ``is_open`` says that it admits others, too."""

    single: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    is_open: bool = False

    def __or__(self, other: Admitted) -> Admitted:
        return Admitted(self.single | other.single, self.listed | other.listed, self.is_open or other.is_open)


_NOTHING, _ANYTHING = Admitted(), Admitted(is_open=True)


def type_findings(document: PythonDocument, target: Release) -> Iterator[Finding]:
    """Yield the types of scopes and modules in a file that lack values of a release, or admit no list of several."""
    source = document.source
    assert source is not None
    for node in source.walk():
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id=name), annotation=annotation)
                | ast.arg(arg=name, annotation=ast.expr() as annotation)
            ) if name in (MODULES, SCOPE):
                if message := _narrow(name, annotation, document, target):
                    yield Finding(PassingKind.NARROW_TYPE, annotation, message)


def _narrow(name: str, annotation: ast.expr, document: PythonDocument, target: Release) -> str:
    """Return what the type of a setting does not admit, empty if it admits all or is no copy of Megatron's list."""
    admitted = admitted_by(annotation, document)
    expected = values_of(name, target, document.catalogue)
    words = admitted.single | admitted.listed
    if admitted.is_open or 2 * len(words.intersection(expected)) < max(len(expected), 1):
        return ""
    missing = lacking(words, expected)
    parts = [f"lacks {quoted(missing)}"] if missing else []
    if not admitted.listed:
        parts.append("admits no list of several")
    return f"the type of `{name}` {' and '.join(parts)}" if parts else ""


def admitted_by(annotation: ast.expr, document: PythonDocument, steps: int = _MAX_STEPS) -> Admitted:
    """Return what a type admits; a type that is not known admits anything."""
    match annotation:
        case ast.Constant(value=None):
            return _NOTHING
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return admitted_by(left, document, steps) | admitted_by(right, document, steps)
        case ast.Subscript(value=value, slice=inner):
            return _of_generic(dotted(value).rpartition(".")[2], inner, document, steps)
        case ast.Name(id=name) if steps and (alias := document.definitions.value_of(name)) is not None:
            return admitted_by(alias, document, steps - 1)
    return _ANYTHING


def _of_generic(name: str, inner: ast.expr, document: PythonDocument, steps: int) -> Admitted:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "Literal":
        return Admitted(words_in(parts))
    if name == "Union":
        admitted = _NOTHING
        for part in parts:
            admitted |= admitted_by(part, document, steps)
        return admitted
    item = admitted_by(parts[0], document, steps) if parts and (name in WRAPPERS or name in _LISTS) else _ANYTHING
    return Admitted(listed=item.single, is_open=item.is_open) if name in _LISTS else item


def words_in(nodes: Sequence[ast.expr]) -> frozenset[str]:
    """Return the texts among constants."""
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))

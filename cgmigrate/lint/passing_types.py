"""Types of code that passes settings on: a ``Literal`` of scopes that is a copy of Megatron's list, or was one.

Also the words in the list that a name is bound to, for checks against a list of the project's own.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cgmigrate.documents.python.class_origins import MAX_BYTES, module_file
from cgmigrate.documents.python.source import dotted
from cgmigrate.lint.kinds import PassingKind
from cgmigrate.lint.passing_findings import Finding, lacking, quoted, values_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import MODULES, SCOPE
from cgmigrate.text.files import read_bytes

if TYPE_CHECKING:
    from cgmigrate.documents.python import PythonDocument

_WRAPPERS = ("NotRequired", "Required", "ReadOnly", "Annotated", "Optional", "Final", "ClassVar")
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
        case ast.Name(id=name) if steps and (alias := assigned_to(name, document)) is not None:
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
    item = admitted_by(parts[0], document, steps) if name in (*_WRAPPERS, *_LISTS) and parts else _ANYTHING
    return Admitted(listed=item.single, is_open=item.is_open) if name in _LISTS else item


def words_in(nodes: Sequence[ast.expr]) -> frozenset[str]:
    """Return the texts among constants."""
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def assigned_to(name: str, document: PythonDocument) -> ast.expr | None:
    """Return the value of a name at the top of a file, or of the file that it is imported from; None if unknown."""
    source = document.source
    assert source is not None
    if (own := _assigned_in(source.tree.body, name)) is not None:
        return own
    holder, _, original = document.names.full.get(name, "").rpartition(".")
    if not holder or not document.path:
        return None
    file = module_file(holder, os.path.dirname(os.path.abspath(document.path)))
    return _assigned_in(_body_of(file), original) if file else None


def _assigned_in(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """Return the value of a name that a block assigns once."""
    values = [value for statement in body if (value := _value_for(statement, name)) is not None]
    return values[0] if len(values) == 1 else None


def _value_for(statement: ast.stmt, name: str) -> ast.expr | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            return value
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
            return value
    return None


@lru_cache(maxsize=64)
def _body_of(file: str) -> tuple[ast.stmt, ...]:
    try:
        return tuple(ast.parse(read_bytes(file, MAX_BYTES)).body)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()

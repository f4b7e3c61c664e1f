"""Other names of collections that code changes: what it changes by one name, it reads by another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

COLLECTION_CHANGES = frozenset(
    ("append", "extend", "insert", "update", "setdefault", "pop", "popitem", "clear", "remove", "sort", "reverse")
) | frozenset(("add", "discard"))
"""Methods that change a collection."""
_PARTS = frozenset(("get", "items", "values", "setdefault", "pop"))
"""Methods of collections that return members."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Names that are bound to what others name, or to parts of it; names of attributes begin with a dot."""

    names: frozenset[str]
    of: frozenset[str]


def changed_aliases(body: Iterable[ast.AST]) -> tuple[Alias, ...]:
    """Return the names that code binds to what others name, and by which it changes collections."""
    nodes = [node for one in body for node in ast.walk(one)]
    changed = {name for node in nodes for name in changed_names(node)}
    aliases = (
        Alias(frozenset(_targets(target)) & changed, frozenset(origins(value))) for target, value in _bindings(nodes)
    )
    return tuple(one for one in aliases if one.names and one.of)


def changed_names(node: ast.AST) -> Iterator[str]:
    """Yield the name by which code changes a collection."""
    match node:
        case (
            ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
            | ast.AugAssign(target=ast.Name(id=name))
        ):
            yield name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in COLLECTION_CHANGES:
            yield name


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                yield target, value


def _targets(node: ast.expr) -> Iterator[str]:
    yield from (part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


def origins(node: ast.expr) -> Iterator[str]:
    """Yield the names of what an expression may be, or be a part of."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(attr=name):
            yield f".{name}"
        case ast.Subscript(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
            yield from origins(value)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in _PARTS:
            yield from origins(value)
        case ast.IfExp(body=first, orelse=second):
            yield from (*origins(first), *origins(second))
        case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            yield from (name for value in values for name in origins(value))

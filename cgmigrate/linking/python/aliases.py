"""Other names of collections that code changes: what it changes by one name, it reads by another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import walk

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
    nodes = [node for one in body for node in walk(one)]
    changed = {name for node in nodes for name in changed_names(node)}
    aliases = (
        Alias(frozenset(_targets(target)) & changed, frozenset(origins(value))) for target, value in _bindings(nodes)
    )
    return tuple(one for one in aliases if one.names and one.of)


def holding_aliases(body: Iterable[ast.AST]) -> tuple[Alias, ...]:
    """Return the names of collections and objects with something that others name, which other code gets or changes."""
    nodes = [node for one in body for node in walk(one)]
    used = {name for node in nodes for name in _used_names(node)}
    aliases = (
        Alias(frozenset(_targets(target)) & used, frozenset(_kept_by(value))) for target, value in _bindings(nodes)
    )
    return tuple(one for one in aliases if one.names and one.of)


def bound_methods(body: Iterable[ast.AST]) -> dict[str, frozenset[str]]:
    """Return the names of methods that change a collection, each with the name of this one."""
    return {
        name: frozenset((value.value.id,))
        for target, value in _bindings([node for one in body for node in walk(one)])
        if isinstance(value, ast.Attribute) and value.attr in COLLECTION_CHANGES and isinstance(value.value, ast.Name)
        for name in _targets(target)
    }


def _used_names(node: ast.AST) -> Iterator[str]:
    """Yield the names of what a call gets, and of that of which a part is changed, or a method is called."""
    match node:
        case ast.Call(func=function, args=arguments, keywords=keywords):
            for one in (*arguments, *(keyword.value for keyword in keywords)):
                yield from (part.id for part in walk(one) if isinstance(part, ast.Name))
            if isinstance(function, ast.Attribute):
                yield from _root(function)
        case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
            yield from _root(node)


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _kept_by(node: ast.expr) -> Iterator[str]:
    """Yield the names of what is in a collection, or what a new object may keep that gets it."""
    match node:
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values) | ast.Dict(values=values):
            members: list[ast.expr] = values
        case ast.Call(func=ast.Name(id=name), args=values, keywords=keywords) if name[:1].isupper():
            members = [*values, *(one.value for one in keywords)]
        case _:
            return
    for one in members:
        yield from (*origins(one), *_kept_by(one))


def changed_names(node: ast.AST) -> Iterator[str]:
    """Yield the name by which code changes a collection."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.AugAssign(target=ast.Name(id=name), value=value) if not _is_text_or_number(value):
            yield name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in COLLECTION_CHANGES:
            yield name


def _is_text_or_number(node: ast.expr) -> bool:
    """Return whether an expression is a text or a number: what it is added to is no collection."""
    match node:
        case ast.BinOp(left=left, op=ast.Add()):
            return _is_text_or_number(left)
        case ast.Constant(value=str() | int() | float()) | ast.JoinedStr():
            return True
    return False


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
    yield from (part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


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

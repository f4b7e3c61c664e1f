"""What makes the names of the attributes that a function sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from cgmigrate.linking.python.aliases import COLLECTION_CHANGES
from cgmigrate.linking.python.name_flows import expressions_in
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.relevance import sets_by_computed_name

_READS = frozenset(("items", "keys", "values", "get", "copy"))
"""Methods that read a dictionary."""
_COPIES = frozenset(("dict", "list", "tuple", "set", "sorted", "len", "bool", "str", "repr", "isinstance"))
"""Builtins that leave a dictionary as it is."""


@lru_cache(maxsize=16384)
def names_set(node: AnyFunction) -> tuple[ast.expr, ...]:
    """Return what makes the names of the attributes that a function sets; all of it where that is not plain."""
    parents = {child: part for part in ast.walk(node) for child in ast.iter_child_nodes(part)}
    made = list[ast.expr]()
    for part in _setting(node):
        names = _names_at(part, parents)
        if names is None:
            return expressions_in(node)
        made += names
    return tuple(made)


def _setting(node: AnyFunction) -> Iterator[ast.AST]:
    """Yield the nodes that may set attributes by their names, and the variables that are the same dictionaries."""
    parts = [*ast.walk(node)]
    yield from filter(sets_by_computed_name, parts)
    same = {
        one.id
        for part in parts
        if isinstance(part, ast.Assign) and _is_namespace(part.value)
        for one in part.targets
        if isinstance(one, ast.Name)
    }
    yield from (one for one in parts if isinstance(one, ast.Name) and one.id in same and isinstance(one.ctx, ast.Load))


def _names_at(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Sequence[ast.expr] | None:
    """Return what makes the names that code sets in one place; None if that is not plain."""
    above = parents.get(node)
    match node, above:
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[_, name, *_]), _:
            return [name]
        case ast.Attribute(attr="__setattr__" | "__delattr__"), ast.Call(func=function, args=[*_, name, _]):
            return [name] if function is node else None
        case ast.Attribute(attr="__getattribute__"), _:
            return []
        case ast.Constant(value="__dict__"), ast.Call(func=ast.Name(id="getattr") | ast.Attribute()):
            return _changed(above, parents)
    return _changed(node, parents) if _is_namespace(node) or isinstance(node, ast.Name) else None


def _changed(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Sequence[ast.expr] | None:
    """Return what makes the names that code changes in the attributes of an object; None if that is not plain."""
    above = parents.get(node)
    match above:
        case ast.Attribute(attr=method) if isinstance(call := parents.get(above), ast.Call) and call.func is above:
            if method in COLLECTION_CHANGES:
                return [*call.args, *(one.value for one in call.keywords)]
            return [] if method in _READS else None
        case ast.Subscript(value=value, slice=name) if value is node:
            return [] if isinstance(above.ctx, ast.Load) else [name]
    return [] if _only_reads(above) else None


def _only_reads(node: ast.AST | None) -> bool:
    """Return whether code leaves the dictionaries that it has: it reads them, or gives them a name."""
    match node:
        case ast.Call(func=ast.Name(id=function)):
            return function in _COPIES
        case ast.Assign(targets=targets):
            return all(isinstance(one, ast.Name) for one in targets)
    return isinstance(node, (ast.Compare, ast.For, ast.comprehension, ast.Dict, ast.Expr)) or (
        isinstance(node, ast.keyword) and node.arg is None
    )


def _is_namespace(node: ast.AST) -> bool:
    """Return whether code has the attributes of an object as a dictionary: ``vars(one)``, ``one.__dict__``."""
    match node:
        case ast.Call(func=ast.Name(id="vars")) | ast.Attribute(attr="__dict__"):
            return True
        case ast.Call(func=ast.Name(id="getattr") | ast.Attribute(), args=[*_, ast.Constant(value="__dict__")]):
            return True
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value="__dict__"), _]):
            return True
    return False

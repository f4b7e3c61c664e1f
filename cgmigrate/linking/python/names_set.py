"""What makes the names of the attributes that a function sets."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.aliases import COLLECTION_CHANGES
from cgmigrate.linking.python.name_flows import expressions_in, names_in
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.relevance import sets_by_computed_name

_READS = frozenset(("items", "keys", "values", "get", "copy"))
"""Methods that read a dictionary."""
_COPIES = frozenset(("dict", "list", "tuple", "set", "sorted", "len", "bool", "str", "repr", "isinstance"))
"""Builtins that leave a dictionary as it is."""


@lru_cache(maxsize=16384)
def names_set(node: AnyFunction) -> tuple[ast.expr, ...]:
    """Return what makes the names of the attributes that a function sets; all of it where that is not plain."""
    parents = {child: part for part in walk(node) for child in ast.iter_child_nodes(part)}
    made = list[ast.expr]()
    for part in _setting(node):
        names = _names_at(part, parents)
        if names is None:
            return expressions_in(node)
        made += names
    return tuple(made)


def _setting(node: AnyFunction) -> Iterator[ast.AST]:
    """Yield the nodes that may set attributes by their names, and the variables that are the same dictionaries."""
    parts = [*walk(node)]
    own = {id(part) for one in parts for part in _own_names_in(one, parts)}
    yield from (part for part in parts if sets_by_computed_name(part) and id(part) not in own)
    same = {
        one.id
        for part in parts
        if isinstance(part, ast.Assign) and _is_namespace(part.value)
        for one in part.targets
        if isinstance(one, ast.Name)
    }
    yield from (one for one in parts if isinstance(one, ast.Name) and one.id in same and isinstance(one.ctx, ast.Load))


def _own_names_in(node: ast.AST, parts: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes in a loop over the attributes of an object that set the same ones of this object again.

    ``for name, value in vars(batch).items(): setattr(batch, name, value.cuda())`` gives it no names that it has not.
    """
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), *_]),
            iter=ast.Call(func=ast.Attribute(value=names, attr="items"), args=[]),
        ) if (owner := _owner(names)) is not None:
            pass
        case _:
            return
    kept = {name, *names_in(owner)}
    if any(_binds(part, kept) for statement in node.body for part in walk(statement)):
        return
    before = _before(node, parts)
    for part in (part for statement in node.body for part in walk(statement)):
        match part:
            case ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Name(id=key), _]):
                if key == name and _is_same(target, owner, before):
                    yield part
            case ast.Subscript(value=own, slice=ast.Name(id=key)):
                target_owner = _owner(own)
                if key == name and target_owner is not None and _is_same(target_owner, owner, before):
                    yield own


def _owner(names: ast.AST) -> ast.expr | None:
    """Return the object of which code has the attributes as a dictionary."""
    match names:
        case ast.Call(func=ast.Name(id="vars"), args=[owner]) | ast.Attribute(value=owner, attr="__dict__"):
            return owner
    return None


def _is_same(one: ast.expr, other: ast.expr, before: ast.stmt | None) -> bool:
    """Return whether two expressions are one object: they are the same, or the statement before gives one the other."""
    if ast.dump(one) == ast.dump(other):
        return True
    match before:
        case ast.Assign(targets=[target], value=value):
            return ast.unparse(target) == ast.unparse(one) and ast.dump(value) == ast.dump(other)
    return False


def _before(statement: ast.stmt, parts: Sequence[ast.AST]) -> ast.stmt | None:
    """Return the statement before another one in its block."""
    blocks = (getattr(part, name, None) for part in parts for name in ("body", "orelse", "finalbody"))
    block = next(one for one in blocks if isinstance(one, list) and statement in one)
    at = block.index(statement)
    return block[at - 1] if at else None


def _binds(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names and not isinstance(node.ctx, ast.Load)


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

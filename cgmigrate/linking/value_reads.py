"""Reads of a setting whose name stays and whose value a fix changes, in code that goes another way with the new value.

Beside a scope of ``full_iteration``, ``cuda_graph_impl: local`` becomes ``full_iteration``: ``if c.cuda_graph_impl ==
"local"`` is not taken any more. A function that names other settings of graphs, too, decides by all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.documents.python.scopes import Function
from cgmigrate.documents.python.source import NOT_LITERAL, last_name, literal_value
from cgmigrate.linking.python_places import SHOWING

_LOOKS_UP = frozenset(("get", "index", "getattr", "pop", "open", "Path", "join"))
"""Functions that look for a text in something, or for a file."""
_KEEPING = SHOWING | {"str", "repr", "format", "isinstance"}
"""Functions that do not decide by what they get, as any other one may."""
_Node = ast.expr | ast.Match


@lru_cache(maxsize=4096)
def read_otherwise(
    text: str, name: str, values: tuple[object, object], others: frozenset[str]
) -> tuple[int, str] | None:
    """Return the first line, and the code there, that goes another way if a setting has the second of two values.

    ``others`` are the names of the settings that decide with it.
    """
    tree = parsed(text)
    scopes = list(_scopes(tree)) if tree is not None else []
    named = {one.name: _names_in(one) for one in scopes if isinstance(one, Function)}
    for scope in scopes:
        own = _names_in(scope)
        if scope is not tree and not own.union(*(named[one] for one in own if one in named)).isdisjoint(others):
            continue
        variables = _variables(scope, name)
        for node in _own_nodes(scope):
            if _differs(node, name, variables, values):
                return node.lineno, ast.unparse(node)[:60]
    return None


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (one for one in walk(tree) if isinstance(one, Function))


def _own_nodes(scope: ast.AST) -> Iterator[_Node]:
    """Yield what may use a value in a function, or in a module, without what the functions in it have."""
    waiting: list[ast.AST] = [scope]
    while waiting:
        parts = [one for one in ast.iter_child_nodes(waiting.pop()) if not isinstance(one, Function)]
        waiting += parts
        yield from (one for one in parts if isinstance(one, (ast.expr, ast.Match)))


def _names_in(scope: ast.AST) -> set[str]:
    names = {one.attr for one in walk(scope) if isinstance(one, ast.Attribute)}
    names |= {one.id for one in walk(scope) if isinstance(one, ast.Name)}
    return names | {str(one.value) for one in walk(scope) if isinstance(one, ast.Constant)}


def _variables(scope: ast.AST, name: str) -> frozenset[str]:
    """Return the variables of a function that have the value of a setting."""
    return frozenset(
        target.id
        for node in walk(scope)
        if isinstance(node, ast.Assign) and _is_read(node.value, name, ())
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _is_read(node: ast.AST, name: str, variables: Collection[str]) -> bool:
    match node:
        case ast.Attribute(value=owner, attr=attribute, ctx=ast.Load()):
            return attribute == name and not _is_validated(owner)
        case (
            ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=attribute), *_])
            | ast.Call(func=ast.Attribute(value=owner, attr="get" | "pop"), args=[ast.Constant(value=attribute), *_])
            | ast.Subscript(value=owner, slice=ast.Constant(value=attribute), ctx=ast.Load())
        ):
            return attribute == name and not _is_validated(owner)
        case ast.Name(id=variable, ctx=ast.Load()):
            return variable in variables
    return False


def _is_validated(owner: ast.expr) -> bool:
    """Return whether an object is the parsed arguments, in which validation has put the new value already."""
    return last_name(owner).endswith("args")


def _differs(node: _Node, name: str, variables: Collection[str], values: tuple[object, object]) -> bool:
    """Return whether code that reads a setting may go another way with the second of two values."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = node.left, node.comparators[0]
        if not any(_is_read(one, name, variables) for one in (left, right)):
            return False
        other = literal_value(right if _is_read(left, name, variables) else left)
        return other is NOT_LITERAL or _answer(node.ops[0], values[0], other) != _answer(node.ops[0], values[1], other)
    every = (part for one in _looked_up(node) for part in (one, *_parts_of_text(one)))
    return any(_is_read(one, name, variables) for one in every)


def _looked_up(node: _Node) -> Sequence[ast.expr]:
    """Return the expressions whose values decide what an expression or a statement does."""
    match node:
        case ast.Match(subject=one) | ast.Subscript(slice=one):
            return (one,)
        case ast.Call(func=func, args=args, keywords=keywords) if last_name(func) not in _KEEPING:
            arguments = (*args, *(one.value for one in keywords))
            return [one for one in arguments if last_name(func) in _LOOKS_UP or not isinstance(one, ast.JoinedStr)]
    return ()


def _parts_of_text(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        yield from (one.value for one in node.values if isinstance(one, ast.FormattedValue))


def _answer(op: ast.cmpop, value: object, other: object) -> object:
    match op:
        case ast.Eq() | ast.Is():
            return value == other
        case ast.NotEq() | ast.IsNot():
            return value != other
        case ast.In() | ast.NotIn() if isinstance(other, (str, list, tuple, set, dict)):
            return value in other
    return None

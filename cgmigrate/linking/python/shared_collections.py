"""Collections that code may change by other names: those that it passes on, keeps or gives to functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.aliases import COLLECTION_CHANGES
from cgmigrate.proof.flow.world import SETTINGS

_COPIES = frozenset(("list", "tuple", "dict", "set", "frozenset", "sorted"))
"""Builtins that make a collection of the members of another one."""
_READS = _COPIES | frozenset(("len", "str", "repr", "bool", "any", "all", "min", "max", "sum", "enumerate", "zip"))
_READERS = _READS | frozenset(("reversed", "isinstance", "type", "print", "range"))
"""Builtins that leave a collection as it is, and keep it nowhere."""
_READ_FIELDS: dict[type[ast.AST], str] = {
    **dict.fromkeys(
        (ast.Subscript, ast.Attribute, ast.Starred, ast.Return, ast.FormattedValue, ast.AugAssign), "value"
    ),
    ast.For: "iter",
    ast.comprehension: "iter",
    ast.UnaryOp: "operand",
}
"""The parts of code that are only read, or copied."""
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


@lru_cache(maxsize=65536)
def passed_on_in(node: ast.AST) -> frozenset[str]:
    """Return the names of what code may know by another name afterwards: all that it uses otherwise than to read it."""
    read = {id(part) for one in walk(node) for part in _read_by(one)}
    inner = {id(part) for one in walk(node) if isinstance(one, _FUNCTIONS) for part in walk(one)}
    return frozenset(
        part.id
        for part in walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and (id(part) in inner or id(part) not in read)
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def collections_in(body: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that code uses for lists, dictionaries and sets."""
    return frozenset(name for one in body for node in walk(one) for name in _collections_of(node))


def _collections_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets, value=value) if _makes_collection(value):
            yield from (one.id for one in targets if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if _makes_collection(value):
            yield name
        case ast.NamedExpr(target=ast.Name(id=name), value=value) if _makes_collection(value):
            yield name
        case ast.Compare(ops=operators, comparators=values):
            pairs = zip(operators, values, strict=True)
            yield from (
                one.id for how, one in pairs if isinstance(how, (ast.In, ast.NotIn)) and isinstance(one, ast.Name)
            )
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in COLLECTION_CHANGES:
            yield name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name


def _makes_collection(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _COPIES
        case ast.BinOp(left=left, right=right):
            return _makes_collection(left) or _makes_collection(right)
    return isinstance(node, _DISPLAYS)


def _read_by(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what code reads, so that it has no other name afterwards."""
    match node:
        case ast.Compare(left=left, comparators=values):
            yield from (left, *values)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            yield from _tested(test)
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.keyword(arg=name, value=value) if name is None or name in SETTINGS:
            yield value
        case ast.Dict(keys=keys, values=values):
            yield from (value for key, value in zip(keys, values, strict=True) if key is None)
        case ast.Assign(targets=[ast.Attribute(attr=name)], value=value) if name in SETTINGS:
            yield value
        case ast.Call(func=function, args=arguments):
            yield function
            if isinstance(function, ast.Name) and function.id in _READERS:
                yield from arguments
        case _ if field := _READ_FIELDS.get(type(node)):
            yield from filter(None, [getattr(node, field)])


def _tested(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp):
        for one in node.values:
            yield from _tested(one)
    else:
        yield node

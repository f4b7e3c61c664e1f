"""The constants that can become a part of an expression's value, as far as one file shows.

A name has what any variable or parameter of this name gets anywhere in the file: functions are not distinguished. So
there can be constants that never get there, and none is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from cgmigrate.documents.python.nodes import walk

_BUILTINS = frozenset(
    (
        *("str", "list", "tuple", "dict", "set", "sorted", "reversed", "enumerate", "zip", "range", "len"),
        *("isinstance", "bool", "int", "float", "min", "max", "sum", "any", "all", "repr"),
    )
)
_METHODS = frozenset(
    (
        *("items", "values", "keys", "get", "copy", "join", "format", "strip", "lstrip", "rstrip", "lower", "upper"),
        *("replace", "split", "append", "extend"),
    )
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class UnknownValueError(Exception):
    """A value comes from outside of the file, or is made in a way that is not followed."""


@dataclass(frozen=True, slots=True)
class Reaching:
    """What may reach an expression; ``through`` are the functions whose parameters it comes through."""

    constants: frozenset[str | int | float | bool | None]
    through: frozenset[str]


def constants_reaching(expression: ast.expr, tree: ast.Module) -> Reaching:
    """Return the constants that may be a part of the value of an expression. Raises UnknownValueError."""
    return _Search(tree).of(expression)


@dataclass(slots=True)
class _Search:
    tree: ast.Module
    constants: set[str | int | float | bool | None] = field(default_factory=set)
    through: set[str] = field(default_factory=set)
    _bound: dict[str, list[ast.AST]] = field(default_factory=dict)
    _functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)

    def of(self, expression: ast.expr) -> Reaching:
        for node in walk(self.tree):
            if isinstance(node, _FUNCTIONS):
                self._functions[node.name] = node
            for name, value in _binding(node):
                self._bound.setdefault(name, []).append(value)
        todo, seen = [expression], set[str]()
        while todo:
            for node in walk(todo.pop()):
                if isinstance(node, ast.Constant):
                    if isinstance(node.value, (bytes, complex, type(...))):
                        raise UnknownValueError
                    self.constants.add(node.value)
                elif isinstance(node, ast.Name) and node.id not in seen:
                    seen.add(node.id)
                    todo += self._reaching_name(node.id)
                else:
                    self._check(node)
        return Reaching(frozenset(self.constants), frozenset(self.through))

    def _reaching_name(self, name: str) -> list[ast.expr]:
        if name in self._functions:
            return [one for one in walk(self._functions[name]) if isinstance(one, ast.expr)]
        values = [*self._bound.get(name, ()), *self._arguments(name)]
        if any(not isinstance(one, ast.expr) for one in values) or not (values or name in _BUILTINS):
            raise UnknownValueError
        return [one for one in values if isinstance(one, ast.expr)]

    def _check(self, node: ast.AST) -> None:
        """Raise UnknownValueError for a node that can have a value from elsewhere."""
        match node:
            case ast.Call(func=ast.Attribute(attr=method)) if method in _METHODS:
                return
            case ast.Call(func=ast.Name()) | ast.Attribute(attr="items" | "values" | "keys"):
                return
            case ast.Attribute(attr=method) if method in _METHODS:
                return
            case ast.Call() | ast.Attribute() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.Lambda():
                raise UnknownValueError

    def _arguments(self, name: str) -> Iterator[ast.AST]:
        """Yield what the calls of the file give to parameters of a name, and the defaults of these."""
        for function in self._functions.values():
            every = [*function.args.posonlyargs, *function.args.args]
            names = [one.arg for one in (*every, *function.args.kwonlyargs)]
            if any(one is not None and one.arg == name for one in (function.args.vararg, function.args.kwarg)):
                raise UnknownValueError
            if name not in names:
                continue
            self.through.add(function.name)
            at = names.index(name) if name in [one.arg for one in every] else None
            calls = [one for one in walk(self.tree) if isinstance(one, ast.Call) and _callee(one) == function.name]
            if not calls:
                raise UnknownValueError
            yield from chain(function.args.defaults, (one for one in function.args.kw_defaults if one is not None))
            for call in calls:
                yield from _arguments_for(call, name, at)


def _callee(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _arguments_for(call: ast.Call, name: str, at: int | None) -> Iterator[ast.AST]:
    """Yield what a call gives to a parameter; a method has its object before the others."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        raise UnknownValueError
    yield from (one.value for one in call.keywords if one.arg == name)
    positions = () if at is None else (at, at - 1) if isinstance(call.func, ast.Attribute) else (at,)
    yield from (call.args[one] for one in positions if 0 <= one < len(call.args))


def _binding(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a node binds, with what they get: an expression, or a node whose value is not known."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((name, value) for target in targets for name in _names(target))
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield from ((name, value) for name in _names(target))
        case ast.NamedExpr(target=target, value=value):
            yield from ((name, value) for name in _names(target))
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from ((name, value) for name in _names(target))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "update"), args=args):
            yield from ((name, one) for one in args)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from ((name, node) for name in _names(target))
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (((one.asname or one.name).partition(".")[0], node) for one in aliases)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, node
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from ((name, node) for name in names)


def _names(target: ast.AST) -> Iterator[str]:
    """Yield the variables of a target; one whose key or attribute is set gets a part of the value."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=base) | ast.Attribute(value=base) | ast.Starred(value=base):
            yield from _names(base)
        case ast.Tuple(elts=every) | ast.List(elts=every):
            yield from (name for one in every for name in _names(one))

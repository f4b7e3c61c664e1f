"""Texts that name settings, in whole or in part, and whether code passes such texts on."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.linking.python.aliases import COLLECTION_CHANGES
from cgmigrate.linking.python.leading_code import returns_value
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.world import SETTINGS

_SHORTEST = 4
"""The length of a text that counts as a part of the name of a setting."""
_COMMON = frozenset(("cuda", "full", "graph", "model", "enable", "external", "inference", "module", "modules"))
"""Words that are in such names, and in much other code."""
_ACCESSES = frozenset(("getattr", "hasattr", "setattr", "delattr"))
_MOST_STEPS = 6
"""How far the origin of an argument is followed."""


def is_part(text: object) -> bool:
    """Return whether a text is a part of the name of a setting, and no whole one."""
    if not isinstance(text, str) or len(text) < _SHORTEST or text.strip("_") in _COMMON or text in SETTINGS:
        return False
    return any(text in name for name in SETTINGS)


def names_setting(text: object) -> bool:
    """Return whether a text is the name of a setting, a path or an override with one, or a part of such a name.

    A flag is none: who calls a program gives its value.
    """
    if not isinstance(text, str) or text.startswith("-"):
        return False
    if is_part(text):
        return True
    return any(name in text for name in SETTINGS) and not any(map(str.isspace, text.strip()))


@lru_cache(maxsize=65536)
def texts_of(node: ast.AST) -> frozenset[str]:
    """Return the texts that name settings, as far as code may use them as values.

    The name in ``getattr(model, "cuda_graph_scope")`` is none: code reads it where it is used.
    """
    return frozenset(_texts(node))


def _texts(node: ast.AST) -> Iterator[str]:
    names = set[int]()
    executes = any(isinstance(part, ast.Name) and part.id in ("exec", "eval") for part in ast.walk(node))
    for part in ast.walk(node):
        match part:
            case ast.Call(func=ast.Name(id=function), args=[_, name, *_]) if function in _ACCESSES:
                names.add(id(name))
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                yield from (one.arg for one in keywords if one.arg and names_setting(one.arg))
            case ast.Expr(value=ast.Constant() as text):
                # A docstring.
                names.add(id(text))
            case ast.Constant(value=str() as text) if id(part) not in names:
                if names_setting(text) or (executes and any(name in text for name in SETTINGS)):
                    yield text


@lru_cache(maxsize=65536)
def gives_values(node: ast.AST) -> bool:
    """Return whether code gives values to those that use it: it returns some, or changes a collection."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    return returns_value(node) or any(map(_changes_collection, ast.walk(node)))


def _changes_collection(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(ctx=ast.Store()) | ast.AugAssign():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in COLLECTION_CHANGES or name == "add"
    return False


def passes_texts(user: AnyFunction, names: Collection[str]) -> bool:
    """Return whether code passes texts that it has, or gets, to functions with some names.

    It passes none where all arguments are other texts, numbers, or what is made of these. A function that it names, and
    does not call itself, may get any.
    """
    calls, named = _calls_in(user)
    if not any(name in calls for name in names) or not named.isdisjoint(names):
        return True
    origins = _Origins.of(user)
    return not all(origins.is_other(one) for name in names for one in calls.get(name, ()))


def passes_keywords(user: AnyFunction, names: Collection[str]) -> bool:
    """Return whether code calls functions with some names with a keyword argument that names a setting."""
    calls, _ = _calls_in(user)
    keywords = (keyword.arg for name in names for one in calls.get(name, ()) for keyword in one.keywords)
    return any(map(names_setting, filter(None, keywords)))


@lru_cache(maxsize=16384)
def _calls_in(node: AnyFunction) -> tuple[Mapping[str, Sequence[ast.Call]], frozenset[str]]:
    """Return the calls in code by the last name of what they call, and the names that it uses in another way."""
    calls: dict[str, list[ast.Call]] = {}
    called, named = set[int](), list[tuple[str, int]]()
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            calls.setdefault(_last_name(part.func), []).append(part)
            called.add(id(part.func))
        elif name := _last_name(part):
            named.append((name, id(part)))
    return calls, frozenset(name for name, one in named if one not in called)


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@dataclass(frozen=True, slots=True)
class _Origins:
    """Where the names in a function come from: ``once`` are those that one assignment binds, with its value."""

    bound: frozenset[str]
    once: dict[str, ast.expr] = field(default_factory=dict)

    @staticmethod
    @lru_cache(maxsize=16384)
    def of(node: AnyFunction) -> _Origins:
        every, values = list[str](), dict[str, ast.expr]()
        for part in ast.walk(node):
            match part:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                    every.append(name)
                case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                    every.append(name)
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                    | ast.withitem(context_expr=value, optional_vars=ast.Name(id=name))
                ):
                    values[name] = value
        return _Origins(frozenset(every), {name: one for name, one in values.items() if every.count(name) == 1})

    def is_other(self, node: ast.expr, depth: int = _MOST_STEPS) -> bool:
        """Return whether the value of an expression has no texts that name settings, as far as the code shows it."""
        match node:
            case ast.Constant(value=value):
                return not names_setting(value)
            case ast.Name(id=name):
                return self.is_other(self.once[name], depth - 1) if name in self.once and depth else self._is_free(name)
            case ast.Compare() | ast.UnaryOp():
                return True
        parts = _parts_of(node)
        return bool(parts) and all(self.is_other(one, depth) for one in parts)

    def _is_free(self, name: str) -> bool:
        return name not in self.bound


def _parts_of(node: ast.expr) -> Sequence[ast.expr]:
    """Return the expressions whose values may be part of that of another one; empty if that is not known."""
    match node:
        case ast.Attribute(value=value):
            return (value,)
        case ast.Call(func=function, args=args, keywords=keywords):
            names = [ast.Constant(one.arg) for one in keywords]
            return (function, *args, *names, *(one.value for one in keywords))
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return (left, right)
        case ast.BoolOp(values=values):
            return values
    return ()

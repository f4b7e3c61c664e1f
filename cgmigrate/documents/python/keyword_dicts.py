"""Dicts whose entries become keyword arguments of a class: ``settings = {…}``, ``GPTModelProvider(**settings)``.

Such a dict may be merged into others on the way, and changed by its methods. One at the top of a file is not followed:
other files may import it, and do anything with its entries.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.definitions import Definition, Definitions
from cgmigrate.documents.python.made_objects import class_of_megatron
from cgmigrate.documents.python.nodes import parents_in, walk
from cgmigrate.documents.python.source import dotted

_MOST_HELPERS = 3
"""How many functions may pass the keyword arguments on."""


def class_behind(name: str, settings: Collection[str], definitions: Definitions) -> str:
    """Return the class of Megatron that gets some keyword arguments of a function, by its full name.

    ``name`` is that of the function as the file writes it. Empty if the function has parameters of these names, if it
    passes them on to anything else, or if that is not known.
    """
    return _class_behind(name, settings, definitions, _MOST_HELPERS)


def _class_behind(name: str, settings: Collection[str], definitions: Definitions, depth: int) -> str:
    definition = definitions.of(name) if depth else None
    node = definition.node if definition is not None else None
    if definition is None or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.decorator_list:
        return ""
    arguments = node.args
    own = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    if arguments.kwarg is None or not own.isdisjoint(settings):
        return ""
    inner = Definitions(definition.module, definition.examined)
    names = _names_with(arguments.kwarg.arg, node)
    if _are_used_otherwise(names, settings, node):
        return ""
    classes = {_class_of(dotted(call.func), settings, definition, inner, depth) for call in _calls_with(names, node)}
    return classes.pop() if len(classes) == 1 else ""


def _class_of(name: str, settings: Collection[str], definition: Definition, inner: Definitions, depth: int) -> str:
    return class_of_megatron(definition.module.names, name) or _class_behind(name, settings, inner, depth - 1)


def _names_with(keywords: str, node: ast.AST) -> set[str]:
    """Return the names of mappings that have the keyword arguments of a function: ``merged = {**defaults, **kw}``."""
    names = {keywords}
    for part in walk(node):
        match part:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if _is_merged(value, names):
                names.add(target)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="update"), args=[value]):
                names |= {target} if _is_merged(value, names) else set()
            case ast.AugAssign(target=ast.Name(id=target), op=ast.BitOr(), value=value) if _is_merged(value, names):
                names.add(target)
    return names


def _are_used_otherwise(names: Collection[str], settings: Collection[str], node: ast.AST) -> bool:
    """Return whether code does anything with mappings but pass them on, merge them, and use their other entries."""
    allowed = {id(one) for part in walk(node) for one in _passed_in(part, settings)}
    loads = (one for one in walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return any(one.id in names and id(one) not in allowed for one in loads)


def _passed_in(node: ast.AST, settings: Collection[str]) -> Iterator[ast.AST]:
    """Yield the mappings that a node passes on, merges, or of which it uses an entry that is no setting."""
    match node:
        case ast.keyword(arg=None, value=value) | ast.Assign(targets=[ast.Name()], value=value):
            yield value
        case ast.Dict(keys=keys, values=values):
            yield from (value for key, value in zip(keys, values, strict=True) if key is None)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from (left, right)
        case ast.AugAssign(op=ast.BitOr(), value=value):
            yield value
        case ast.Call(func=ast.Name(id="dict"), args=[value]):
            yield value
        case ast.Call(func=ast.Attribute(value=owner, attr="update"), args=values):
            yield from (owner, *values)
        case ast.Call(
            func=ast.Attribute(value=owner, attr="get" | "pop" | "setdefault"), args=[ast.Constant() as key, *_]
        ):
            yield from [owner] if key.value not in settings else []
        case ast.Subscript(value=owner, slice=ast.Constant() as key):
            yield from [owner] if key.value not in settings else []


def _is_merged(value: ast.expr, names: Collection[str]) -> bool:
    """Return whether a mapping has all entries of one with a name."""
    match value:
        case ast.Name(id=name):
            return name in names
        case ast.Dict(keys=keys, values=values):
            unpacked = [one for key, one in zip(keys, values, strict=True) if key is None]
            return any(_is_merged(one, names) for one in unpacked)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_merged(left, names) or _is_merged(right, names)
        case ast.Call(func=ast.Name(id="dict"), args=arguments, keywords=keywords):
            unpacked = [one.value for one in keywords if one.arg is None]
            return any(_is_merged(one, names) for one in (*arguments, *unpacked))
    return False


def _calls_with(names: Collection[str], node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that get all entries of a mapping as keyword arguments, other than those that merge it."""
    for part in walk(node):
        if isinstance(part, ast.Call) and dotted(part.func) != "dict" and _gets_all(part, names):
            yield part


def _gets_all(call: ast.Call, names: Collection[str]) -> bool:
    return any(one.arg is None and _is_merged(one.value, names) for one in call.keywords)


_BY_KEY = frozenset(("pop", "setdefault", "get"))
"""Methods that use one entry of a dict."""
_UNKNOWN = ""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def class_with(node: ast.expr, settings: Collection[str], tree: ast.Module, definitions: Definitions) -> str:
    """Return the class of Megatron that gets the entries of a dict; empty if other code gets them, or nothing does."""
    users = _Users(frozenset(settings), tree, definitions)
    classes = set(users.of(node))
    return classes.pop() if len(classes) == 1 else ""


@dataclass(slots=True)
class _Users:
    """Follows a dict in one file to the calls that get its entries. Yields an empty name where that is not known."""

    settings: frozenset[str]
    tree: ast.Module
    definitions: Definitions
    _seen: set[int] = field(default_factory=set)

    def of(self, node: ast.AST) -> Iterator[str]:
        """Yield the classes that get the entries of an expression."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        above = self._parent(node)
        match above:
            case ast.keyword(arg=None):
                yield from self._of_call(self._parent(above))
            case ast.Dict(keys=keys, values=values) if any(
                key is None and value is node for key, value in zip(keys, values, strict=True)
            ):
                yield from self.of(above)
            case ast.BinOp(op=ast.BitOr()) | ast.IfExp():
                yield from self.of(above)
            case ast.Call(func=ast.Name(id="dict"), args=[one]) if one is node:
                yield from self.of(above)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                yield from self._of_name(name, above)
            case _:
                yield from self._of_use(above, node)

    def _of_use(self, above: ast.AST | None, node: ast.AST) -> Iterator[str]:
        """Yield the classes that get the entries of a dict by other uses of its name."""
        match above:
            case ast.Attribute(attr="copy") if (call := self._call_of(above)) is not None:
                yield from self.of(call)
            case ast.Attribute(attr="update") if self._call_of(above) is not None:
                return
            case ast.Attribute(attr=method) if method in _BY_KEY and self._is_of_others(self._call_of(above)):
                return
            case ast.Subscript(value=value, slice=key) if value is node and self._is_other(key):
                return
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=[one]) if one is node:
                yield from self._of_name(name, above)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.BitOr(), value=value) if value is node:
                yield from self._of_name(name, above)
            case ast.AugAssign(target=target, op=ast.BitOr()) if target is node:
                return
            case _:
                yield _UNKNOWN

    def _is_of_others(self, call: ast.Call | None) -> bool:
        return call is not None and bool(call.args) and self._is_other(call.args[0])

    def _is_other(self, key: ast.expr) -> bool:
        """Return whether a key is surely none of the settings."""
        return isinstance(key, ast.Constant) and key.value not in self.settings

    def _call_of(self, function: ast.Attribute) -> ast.Call | None:
        call = self._parent(function)
        return call if isinstance(call, ast.Call) and call.func is function else None

    def _of_call(self, call: ast.AST | None) -> Iterator[str]:
        if not isinstance(call, ast.Call):
            yield _UNKNOWN
        elif dotted(call.func) == "dict":
            yield from self.of(call)
        else:
            name = dotted(call.func)
            known = class_of_megatron(self.definitions.module.names, name)
            yield known or class_behind(name, self.settings, self.definitions)

    def _of_name(self, name: str, statement: ast.AST) -> Iterator[str]:
        """Yield the classes that get the entries of a dict that has a name in a function."""
        scope = self._parent(statement)
        while scope is not None and not isinstance(scope, _FUNCTIONS):
            scope = self._parent(scope)
        uses = [one for one in walk(scope) if isinstance(one, ast.Name) and one.id == name] if scope else []
        if sum(isinstance(one.ctx, ast.Store) and not self._is_merged_into(one) for one in uses) != 1:
            yield _UNKNOWN
            return
        for one in uses:
            if not isinstance(one.ctx, ast.Store) or self._is_merged_into(one):
                yield from self.of(one)

    def _parent(self, node: ast.AST) -> ast.AST | None:
        return _parents_in(self.tree).get(node)

    def _is_merged_into(self, name: ast.Name) -> bool:
        return isinstance(self._parent(name), ast.AugAssign)


_parents_in = lru_cache(maxsize=8)(parents_in)

"""Dicts whose entries become keyword arguments of a class: ``settings = {…}``, ``GPTModelProvider(**settings)``.

Such a dict may be merged into others on the way, and changed by its methods. One at the top of a file is not followed:
other files may import it, and do anything with its entries.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.definitions import Definitions
from cgmigrate.documents.python.keyword_helpers import class_behind
from cgmigrate.documents.python.made_objects import class_of_megatron
from cgmigrate.documents.python.nodes import parents_in, walk
from cgmigrate.documents.python.source import dotted

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

"""Values beside the settings of a site in code: of the same object, and of the configuration that the object is in.

A value is known if the code writes it in a straight line: in the call or dict that makes the object, or in a statement
that surely runs if the site runs. If code that is not read may set the object after that (a function that gets it, a
second name for it, a branch or a loop), the value is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.argument_values import value_in_words
from cgmigrate.documents.python.class_origins import owner_of
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.site_nodes import Form, Place
from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.documents.python.statement_order import Event, FunctionEvents, events_of
from cgmigrate.documents.python.values import plain_value
from cgmigrate.megatron.settings import Missing

_WRAPPERS = ("functools.partial", "nemo_run.Config", "nemo_run.Partial", "fiddle.Config", "fiddle.Partial")
_READERS = ("megatron.core.", "megatron.training.")
"""Packages whose functions read a configuration, and set what they set by the rules of their release."""
_MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class _Object:
    """An object: the expression that makes it, or the path by which code names it (``cfg.model``)."""

    node: ast.expr | None = None
    path: str = ""


_NOWHERE = _Object()


@dataclass(slots=True)
class Surroundings:
    """Reads the values around the sites of a file."""

    source: Source
    names: Names
    _events: dict[int, FunctionEvents] = field(default_factory=dict)

    def value(self, place: Place, section: Sequence[str], keys: Sequence[str]) -> object:
        """Return the value at ``keys`` of the configuration in which the object of a place is at ``section``.

        The value is plain data, ``Undecided`` or ``Missing``.
        """
        node = place.items[0].node
        if place.form in (Form.FLAGS, Form.OVERRIDES):
            return value_in_words(self.source.parent(node), self.source, place.prefix, section, keys)
        function = self.source.function_of(node) or self.source.tree
        if id(function) not in self._events:
            self._events[id(function)] = events_of(function)
        statement = node if isinstance(node, ast.stmt) else self.source.statement_of(node)
        reader = _Reader(self.source, self.names, self._events[id(function)], statement)
        base = reader.object_of(place)
        for name in reversed(section):
            base = reader.outer(base, name)
        return reader.value(base, tuple(keys))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values around one statement of a function."""

    source: Source
    names: Names
    function: FunctionEvents
    statement: ast.stmt | None

    # --- objects --------------------------------------------------------------------------------

    def object_of(self, place: Place) -> _Object:
        """Return the object that a place sets."""
        if place.form is Form.ASSIGNMENTS:
            return _Object(path=self._original(place.object))
        made = self.source.parent(place.items[0].node)
        return _Object(made) if isinstance(made, ast.expr) else _NOWHERE

    def _original(self, path: str) -> str:
        """Return the path of an object by its first name: ``cfg.model`` for ``m`` after ``m = cfg.model``."""
        for _ in range(_MAX_DEPTH):
            first, dot, rest = path.partition(".")
            values = self.function.values_of(first)
            other = dotted(values[0]) if len(values) == 1 and values[0] is not None else ""
            if not other:
                break
            path = other + dot + rest
        return path

    def outer(self, inner: _Object, name: str) -> _Object:
        """Return the object that has another one as its attribute, argument or entry ``name``."""
        if inner.node is not None:
            return self._around(inner.node, name)
        path, _, last = inner.path.rpartition(".")
        if path:
            return _Object(path=path) if last == name else _NOWHERE
        holders = [
            (call, keyword.arg)
            for call in self.function.calls
            for keyword in call.keywords
            if dotted(keyword.value) == inner.path and _is_class(call)
        ]
        if len(holders) == 1 and holders[0][1] == name:
            return _Object(holders[0][0])
        return _NOWHERE

    def _around(self, node: ast.expr, name: str) -> _Object:
        match self.source.parent(node):
            case ast.keyword(arg=str() as argument) as keyword if argument == name:
                call = self.source.parent(keyword)
                return _Object(call) if isinstance(call, ast.Call) else _NOWHERE
            case ast.Dict(keys=keys, values=values) as outer:
                key = next(key for key, value in zip(keys, values, strict=True) if value is node)
                return _Object(outer) if isinstance(key, ast.Constant) and key.value == name else _NOWHERE
            case ast.Assign(targets=[target]) if dotted(target):
                return self.outer(_Object(path=self._original(dotted(target))), name)
        return _NOWHERE

    def _path_of(self, node: ast.expr) -> str:
        """Return the path by which code names what an expression makes, empty if it has none."""
        match self.source.parent(node):
            case ast.Assign(targets=[target]):
                return self._original(dotted(target))
            case ast.keyword(arg=str() as name) as keyword:
                call = self.source.parent(keyword)
                path = self._path_of(call) if isinstance(call, ast.Call) and _is_class(call) else ""
                return f"{path}.{name}" if path else ""
        return ""

    # --- values ---------------------------------------------------------------------------------

    def value(self, base: _Object, keys: tuple[str, ...]) -> object:
        """Return the value at ``keys`` of an object."""
        if base.node is not None and (path := self._path_of(base.node)):
            return self._at_path(path, keys)
        if base.node is not None:
            return self._in_expression(base.node, keys)
        return self._at_path(base.path, keys) if base.path else Missing.UNKNOWN

    def _at_path(self, path: str, keys: tuple[str, ...], depth: int = 0) -> object:
        """Return the value at ``keys`` of the object at a path: what the last write before the end gives it."""
        target = ".".join((path, *keys))
        for event in reversed(self.function.events):
            changed = self._original(event.path)
            if not (changed == target or target.startswith(changed + ".")) or self._changes_nothing(event, target):
                continue
            if event.value is None or not self._surely_runs(event):
                break
            rest = target[len(changed) + 1 :]
            return self._in_expression(event.value, tuple(filter(None, rest.split("."))), depth + 1)
        return Missing.UNKNOWN

    def _changes_nothing(self, event: Event, target: str) -> bool:
        """Whether a use of an object leaves what is at ``target``: a read of it, a second name, Megatron's code."""
        if not event.escapes:
            return False
        if event.alias and len(self.function.values_of(event.alias)) == 1:
            return True
        is_read = self._original(event.path) == target
        return is_read or (bool(event.callee) and self.names.resolve(event.callee).startswith(_READERS))

    def _surely_runs(self, event: Event) -> bool:
        """Whether a write runs whenever the site runs."""
        if self.statement is None or event.suites[-1] not in self.function.suites.get(id(self.statement), ()):
            return False
        return not any(self.statement.lineno < line < event.line for line in self.function.exits)

    def _in_expression(self, node: ast.expr, keys: tuple[str, ...], depth: int = 0) -> object:
        """Return the value at ``keys`` of what an expression makes."""
        value: object = Missing.UNKNOWN
        if depth > _MAX_DEPTH:
            return value
        match node:
            case _ if not keys:
                value = plain_value(node, self.names)
            case ast.Call():
                value = self._in_call(node, keys, depth)
            case ast.Dict():
                value = self._in_dict(node, keys, depth)
            case ast.Constant(value=None):
                value = Missing.ABSENT
            case _ if path := dotted(node):
                value = self._at_path(self._original(path), keys, depth)
        return value

    def _in_call(self, node: ast.Call, keys: tuple[str, ...], depth: int) -> object:
        for keyword in node.keywords:
            if keyword.arg == keys[0]:
                return self._in_expression(keyword.value, keys[1:], depth + 1)
        name = dotted(node.func)
        full, spread = owner_of(self.names, name), any(keyword.arg is None for keyword in node.keywords)
        if full in _WRAPPERS or name == "dict":
            return Missing.UNKNOWN if spread else Missing.ABSENT
        own_class = name.partition(".")[0] in self.names.classes
        if spread or node.args or own_class or not _is_class(node):
            return Missing.UNKNOWN
        return Missing.ABSENT

    def _in_dict(self, node: ast.Dict, keys: tuple[str, ...], depth: int) -> object:
        for key, value in zip(reversed(node.keys), reversed(node.values), strict=True):
            if key is None:
                return Missing.UNKNOWN
            if isinstance(key, ast.Constant) and key.value == keys[0]:
                return self._in_expression(value, keys[1:], depth + 1)
        match self.source.parent(node):
            case ast.keyword(arg=None) as keyword:
                call = self.source.parent(keyword)
                return self._beside_spread(call, node, keys, depth) if isinstance(call, ast.Call) else Missing.UNKNOWN
        return Missing.ABSENT

    def _beside_spread(self, call: ast.Call, node: ast.Dict, keys: tuple[str, ...], depth: int) -> object:
        """Return the value in a call beside a dict that is spread into it."""
        others = [keyword for keyword in call.keywords if keyword.value is not node]
        rest = ast.Call(func=call.func, args=call.args, keywords=others)
        return self._in_call(rest, keys, depth + 1)


def _is_class(call: ast.Call) -> bool:
    """Whether a call seems to make an object of a class."""
    return dotted(call.func).rpartition(".")[2][:1].isupper()

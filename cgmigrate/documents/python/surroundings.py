"""Values beside the settings of a site in code: of the same object, and of the configuration that the object is in.

A value is known if the code writes it in a straight line: in the call or dict that makes the object, or in a statement
that surely runs if the site runs. If code that is not read may set the object after that (a function that gets it, a
second name for it, a branch or a loop), the value is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.argument_lists import value_in_words
from cgmigrate.documents.python.class_origins import owner_of
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.site_nodes import SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.statement_order import Event, FunctionEvents, events_of
from cgmigrate.documents.python.values import plain_value
from cgmigrate.megatron.layer_patterns import list_expression
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
class PythonSurroundings:
    """Reads the values around the sites of a file."""

    source: PythonSource
    names: Names
    _events: dict[int, FunctionEvents] = field(default_factory=dict)
    _objects: dict[tuple[int, tuple[str, ...]], tuple[_SurroundingsReader, _Object]] = field(default_factory=dict)
    """The configurations that were found, by place and section: each rule reads other settings of them."""

    def value(self, place: SiteNodes, section: Sequence[str], keys: Sequence[str]) -> object:
        """Return the value at ``keys`` of the configuration in which the object of a place is at ``section``.

        The value is plain data, ``Undecided`` or ``Missing``.
        """
        if place.form in (SiteForm.FLAGS, SiteForm.OVERRIDES):
            arguments = self.source.parent(place.items[0].node)
            return value_in_words(arguments, self.source, place.prefix, section, keys)
        name = (id(place), tuple(section))
        if name not in self._objects:
            reader = self._reader_at(place.items[0].node)
            self._objects[name] = (reader, reader.configuration_of(place, section))
        reader, configuration = self._objects[name]
        return reader.value(configuration, tuple(keys))

    def _reader_at(self, node: ast.AST) -> _SurroundingsReader:
        function = self.source.function_of(node) or self.source.tree
        if id(function) not in self._events:
            self._events[id(function)] = events_of(function)
        statement = node if isinstance(node, ast.stmt) else self.source.statement_of(node)
        return _SurroundingsReader(self.source, self.names, self._events[id(function)], statement)


@dataclass(frozen=True, slots=True)
class _SurroundingsReader:
    """Reads values around one statement of a function."""

    source: PythonSource
    names: Names
    function: FunctionEvents
    statement: ast.stmt | None

    # --- objects --------------------------------------------------------------------------------

    def configuration_of(self, place: SiteNodes, section: Sequence[str]) -> _Object:
        """Return the configuration that has the object of a place at ``section``."""
        base = self.object_of(place)
        for name in reversed(section):
            base = self.outer(base, name)
        return base

    def object_of(self, place: SiteNodes) -> _Object:
        """Return the object that a place sets."""
        if place.form is SiteForm.ASSIGNMENTS:
            return _Object(path=self.function.original(place.object))
        made = self.source.parent(place.items[0].node)
        return _Object(made) if isinstance(made, ast.expr) else _NOWHERE

    def outer(self, inner: _Object, name: str) -> _Object:
        """Return the object that has another one as its attribute, argument or entry ``name``."""
        if inner.node is not None:
            return self._around(inner.node, name)
        path, _, last = inner.path.rpartition(".")
        if path:
            return _Object(path=path) if last == name else _NOWHERE
        return self._holder(inner.path, name)

    def _holder(self, path: str, name: str) -> _Object:
        """Return the one object that gets the object with a name as its part ``name``."""
        uses = self.function.uses_of(path)
        around = self.function.suites.get(id(self.statement), ())
        holders = [
            call
            for call, suites in self.function.calls
            if suites[-1] in around and _is_class(call)
            for keyword in call.keywords
            if dotted(keyword.value) == path and keyword.arg == name
        ]
        is_one = len(uses) == len(holders) == len(self.function.bindings_of(path)) == 1
        return _Object(holders[0]) if is_one else _NOWHERE

    def _around(self, node: ast.expr, name: str) -> _Object:
        match self.source.parent(node):
            case ast.keyword(arg=str() as argument) as keyword if argument == name:
                call = self.source.parent(keyword)
                return _Object(call) if isinstance(call, ast.Call) else _NOWHERE
            case ast.Dict(keys=keys, values=values) as outer:
                key = next(key for key, value in zip(keys, values, strict=True) if value is node)
                return _Object(outer) if isinstance(key, ast.Constant) and key.value == name else _NOWHERE
            case ast.Assign(targets=[target]) if dotted(target):
                return self.outer(_Object(path=self.function.original(dotted(target))), name)
        return _NOWHERE

    def _path_of(self, node: ast.expr) -> str:
        """Return the path by which code names what an expression makes, empty if it has none."""
        if (event := self.function.made_by(node)) is not None:
            return self.function.original(event.path)
        match self.source.parent(node):
            case ast.keyword(arg=str() as name) as keyword:
                call = self.source.parent(keyword)
                path = self._path_of(call) if isinstance(call, ast.Call) and _is_class(call) else ""
                return f"{path}.{name}" if path else ""
        return ""

    # --- values ---------------------------------------------------------------------------------

    def value(self, base: _Object, keys: tuple[str, ...]) -> object:
        """Return the value at ``keys`` of an object."""
        if self.statement is None or id(self.statement) not in self.function.suites:
            # The body of a class: its names are read elsewhere.
            return Missing.UNKNOWN
        line = self.statement.lineno
        if base.node is None:
            return self._at_path(base.path, keys, line) if base.path else Missing.UNKNOWN
        if path := self._path_of(base.node):
            return self._at_path(path, keys, max(line, base.node.lineno))
        return Missing.UNKNOWN if self._reaches_other_code(base.node) else self._in_expression(base.node, keys)

    def _reaches_other_code(self, node: ast.expr) -> bool:
        """Whether code that is not read gets what an expression makes."""
        return any(
            not _is_class(call) and dotted(call.func) != "dict" and not self._is_megatrons(dotted(call.func))
            for call in self.function.calls_that_get(node)
        )

    def _is_megatrons(self, function: str) -> bool:
        return self.names.resolve(function).startswith(_READERS)

    def _at_path(self, path: str, keys: tuple[str, ...], line: int, as_part: bool = False, depth: int = 0) -> object:
        """Return the value at ``keys`` of the object that is at a path on a line: what the last write gives it.

        ``as_part`` says that the object is a part of another one, which is not followed as an escape.
        """
        target = ".".join((path, *keys))
        binding = self._binding(path)
        if (binding is not None and binding.line > line) or self._is_shared(target, as_part):
            return Missing.UNKNOWN
        loop = self.function.loop_around(binding) if binding else None
        for event in reversed(self.function.events_at(target)):
            changed = self.function.original(event.path)
            if event.escapes and (not event.callee or event.as_part or self._is_harmless(event, changed, target)):
                continue
            if event.value is None or not self._surely_runs(event) or (loop is not None and loop not in event.suites):
                break
            rest = target[len(changed) + 1 :]
            return self._in_expression(event.value, tuple(filter(None, rest.split("."))), event.line, depth + 1)
        return Missing.UNKNOWN

    def _binding(self, path: str) -> Event | None:
        """Return the last statement that binds a path, or what it begins with."""
        return next((event for event in reversed(self.function.events_at(path)) if not event.escapes), None)

    def _is_shared(self, target: str, as_part: bool) -> bool:
        """Whether other code or a part of another object may change what is at a path at any time."""
        for event in self.function.events_at(target.rpartition(".")[0]):
            if not event.escapes or (event.callee and not event.as_part):
                continue
            is_alias = event.alias and self.function.original(event.alias) != event.alias
            uses = self.function.uses_of(event.path)
            if not is_alias and not (as_part and event.as_part and len(uses) == 1):
                return True
        return False

    def _is_harmless(self, event: Event, changed: str, target: str) -> bool:
        """Whether a call that gets an object leaves what is at ``target``: it gets the value, or is Megatron's."""
        return changed == target or self._is_megatrons(event.callee)

    def _surely_runs(self, event: Event) -> bool:
        """Whether a write runs whenever the site runs."""
        if self.statement is None or event.suites[-1] not in self.function.suites.get(id(self.statement), ()):
            return False
        return not any(self.statement.lineno < line < event.line for line in self.function.exits)

    def _in_expression(self, node: ast.expr, keys: tuple[str, ...], line: int = 0, depth: int = 0) -> object:
        """Return the value at ``keys`` of what an expression makes."""
        value: object = Missing.UNKNOWN
        if depth > _MAX_DEPTH:
            return value
        match node:
            case ast.BinOp() if not keys and (items := list_expression(node)) is not None:
                value = items
            case _ if not keys:
                value = plain_value(node, self.names)
            case ast.Call():
                value = self._in_call(node, keys, depth)
            case ast.Dict():
                value = self._in_dict(node, keys, depth)
            case ast.Constant(value=None):
                value = Missing.ABSENT
            case _ if path := dotted(node):
                value = self._at_path(self.function.original(path), keys, line or node.lineno, True, depth)
        return value

    def _in_call(self, node: ast.Call, keys: tuple[str, ...], depth: int) -> object:
        for keyword in node.keywords:
            if keyword.arg == keys[0]:
                return self._in_expression(keyword.value, keys[1:], depth=depth + 1)
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
                return self._in_expression(value, keys[1:], depth=depth + 1)
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

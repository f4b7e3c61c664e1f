"""Follows the names of the attributes that a function sets back to the texts that these are made of.

A text may come from what the function uses, from its callers, or from code that gives something to an attribute or a
variable of a module that has the name that the function reads: a registry that another module fills.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.leading_code import OF_COLLECTIONS, FunctionFacts, facts_of
from cgmigrate.proof.flow.modules import Import, Module
from cgmigrate.linking.python.name_flows import Flows, parameters_of, parts_of, results_of
from cgmigrate.linking.python.name_places import Place, Places
from cgmigrate.linking.python.name_texts import (
    attributes_read,
    last_name,
    names_defined_in,
    names_setting,
    reads_names,
    texts_of,
)
from cgmigrate.linking.python.names_set import names_set
from cgmigrate.linking.python.references import References
from cgmigrate.proof.flow.world import SETTINGS

_MOST_STEPS = 8
_MOST_PLACES_IN_ALL = 200
"""How far a name is followed, and to how many places."""
_MOST_READS = 4
"""How far an object is followed of which code reads the names of attributes."""
_MOST_PLACES = 40
"""An attribute that more places set is one of many classes: what one of them keeps in it says nothing of others."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Expressions in whose values a text may be. ``through`` are the functions that it goes through to the setter."""

    place: Place
    seeds: Sequence[ast.expr]
    through: tuple[FunctionFacts, ...]
    depth: int = _MOST_STEPS
    asks_callers: bool = True
    is_reader: bool = False
    """Whether the code that gets the values may use the names of their attributes as texts."""

    @property
    def key(self) -> object:
        """What is the same where nothing else is to be result."""
        seeds = tuple(id(one) if hasattr(one, "lineno") else ast.dump(one) for one in self.seeds)
        return (self.place.node, seeds, self.asks_callers, self.is_reader)


@dataclass
class NameSearch:
    """Finds the texts that functions may use as names."""

    places: Places

    @property
    def references(self) -> References:
        """What the code of the project uses."""
        return self.places.references

    def find(self, setter: FunctionFacts) -> tuple[frozenset[str], tuple[FunctionFacts, ...]]:
        """Return texts that a function may use as names, and the functions that they go through; empty if none may."""
        module = self.references.modules.read(setter.path)
        assert module is not None
        if texts := texts_of(setter.node):
            return texts, (setter,)
        waiting = [_Step(Place(module, setter), names_set(setter.node), (setter,))]
        known = {waiting[0].key}
        for one in waiting:
            texts, behind = self._behind(one)
            if texts:
                return texts, one.through
            for other in behind:
                if len(known) == _MOST_PLACES_IN_ALL:
                    break
                if other.depth and other.key not in known:
                    known.add(other.key)
                    waiting.append(other)
        return frozenset(), ()

    def _behind(self, step: _Step) -> tuple[frozenset[str], Iterator[_Step]]:
        """Return the texts in what makes some values, and the values of other places that they are made of."""
        code, names = Flows.of(step.place.node).behind(step.seeds)
        block = ast.Module([ast.Expr(ast.Tuple(code)), *_imports_in(step.place)], [])
        is_reader = step.is_reader or reads_names(block)
        texts = texts_of(block) | (names_defined_in(block) if is_reader else frozenset())
        if is_reader:
            texts |= self._names_of_modules(names, step.place) | _names_of_owner(names, step.place)
        return texts, chain(
            self._of_code(block, step, is_reader),
            self._of_names(block, names, step),
            self._of_callers(block, names, step, is_reader),
        )

    def _of_code(self, block: ast.AST, step: _Step, is_reader: bool) -> Iterator[_Step]:
        """Yield what the code of the project gives that some code uses."""
        called = {one.attr for one in walk(block) if isinstance(one, ast.Attribute)}
        for node, module in self.references.of(block, step.place.module).code:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    for one in facts_of(module):
                        if one.node is node:
                            yield self._next(step, Place(module, one), _results(one, is_reader), is_reader)
                case ast.ClassDef():
                    yield self._next(step, Place(module), _of_class(node, is_reader), is_reader)
                    for one in facts_of(module):
                        if one.inside is node and one.node.name in called:
                            yield self._next(step, Place(module, one), _results(one, is_reader), is_reader)
                case ast.expr():
                    yield self._next(step, Place(module), (node,), is_reader)

    def _of_names(self, block: ast.AST, names: frozenset[str], step: _Step) -> Iterator[_Step]:
        """Yield what code gives to the attributes and the variables of modules that some code reads."""
        called = {id(one.func) for one in walk(block) if isinstance(one, ast.Call)}
        attributes = {
            one.attr
            for one in walk(block)
            if isinstance(one, ast.Attribute)
            and not one.attr.startswith("__")
            and not (id(one) in called and _is_of_collections(one.attr))
        }
        bindings = step.place.module.bindings
        variables = {_original(one, step.place.module) for one in names if one in bindings}
        read = attributes_read(block)
        for name in sorted(attributes | variables):
            places = self.places.values_of(name)
            for place, seeds in places if len(places) <= _MOST_PLACES else ():
                yield self._next(step, place, seeds, name in read, asks_callers=True)

    def _of_callers(self, block: ast.AST, names: frozenset[str], step: _Step, is_reader: bool) -> Iterator[_Step]:
        """Yield the arguments that callers of a function give to the parameters that it needs."""
        function = step.place.function
        if function is None:
            return
        if function.node.name in ("__setattr__", "__delattr__"):
            # Statements show the names that these get, or functions that are followed themselves.
            return
        own = set(parameters_of(function.node)) & self._variables_in(block) - {"self", "cls"}
        is_open = bool(Flows.of(function.node).inner & names)
        defaults = [*function.node.args.defaults, *filter(None, function.node.args.kw_defaults)]
        if own and defaults:
            yield self._next(step, Place(step.place.module), defaults, is_reader)
        if not step.asks_callers or not (own or is_open):
            return
        for place, called in self.places.users_of(function):
            seeds = _arguments(place, called, function, None if is_open else own)
            yield self._next(step, place, seeds, is_reader, asks_callers=True)

    def _variables_in(self, block: ast.AST) -> set[str]:
        """Return the variables whose own values some code uses, and not only attributes that code gives to objects."""
        objects = {
            id(one.value)
            for one in walk(block)
            if isinstance(one, ast.Attribute) and not _is_of_collections(one.attr) and self.places.values_of(one.attr)
        }
        return {one.id for one in walk(block) if isinstance(one, ast.Name) and id(one) not in objects}

    def _next(
        self,
        step: _Step,
        place: Place,
        seeds: Sequence[ast.expr],
        is_reader: bool,
        *,
        asks_callers: bool = False,
    ) -> _Step:
        is_reader = is_reader and step.depth > _MOST_STEPS - _MOST_READS
        through = (place.function, *step.through) if place.function and asks_callers else step.through
        return _Step(place, seeds, through, step.depth - 1, asks_callers, is_reader)

    def _names_of_modules(self, names: Iterable[str], place: Place) -> frozenset[str]:
        """Return the names of settings at the top of the modules that code has as values: ``vars(defaults)``."""
        modules = (self.references.module_named(name, place.module) for name in names)
        return frozenset(bound for one in modules if one for bound in one.bindings if names_setting(bound))


def _is_of_collections(name: str) -> bool:
    return name in OF_COLLECTIONS or any(hasattr(one, name) for one in (dict, list, set, str))


def _original(name: str, module: Module) -> str:
    match module.bindings.get(name):
        case Import(name=imported) if imported:
            return imported
    return name


def _results(function: FunctionFacts, is_reader: bool) -> Sequence[ast.expr]:
    results = results_of(function.node)
    return (*results, ast.Constant(function.node.name)) if is_reader and function.node.name in SETTINGS else results


def _of_class(node: ast.ClassDef, is_reader: bool) -> Sequence[ast.expr]:
    """Return the values of the attributes of a class, and the names of these if code may read them."""
    values = [*node.bases]
    for statement in node.body:
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            values += (one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr))
    names = names_defined_in(node) if is_reader else ()
    return (*values, *map(ast.Constant, names))


def _names_of_owner(names: frozenset[str], place: Place) -> frozenset[str]:
    """Return the names of settings that the class of a method defines if the method may read them."""
    function = place.function
    return names_defined_in(function.inside) if function and function.inside and "self" in names else frozenset()


def _imports_in(place: Place) -> Iterator[ast.stmt]:
    if place.function is not None:
        yield from (one for one in walk(place.node) if isinstance(one, (ast.Import, ast.ImportFrom)))


def _arguments(
    place: Place, names: Collection[str], function: FunctionFacts, parameters: set[str] | None
) -> Sequence[ast.expr]:
    """Return what code may pass to some parameters of a function that has some names; None stands for any."""
    parts = [one for one in parts_of(place.node) if last_name(one) in names]
    calls = [one for one in parts_of(place.node) if isinstance(one, ast.Call)]
    own = {id(one.func): one for one in calls}
    result = list[ast.expr]()
    for part in parts:
        if parameters is None or id(part) not in own:
            around = [one for one in calls if any(inner is part for inner in walk(one))]
            result += around or _every(place)
        else:
            result += _passed(own[id(part)], function, parameters)
    return result


def _every(place: Place) -> Sequence[ast.expr]:
    """Return all expressions of a function, and its name: it may be decorated."""
    every = Flows.of(place.node).every
    return (*every, ast.Constant(place.function.node.name)) if place.function else every


def _passed(call: ast.Call, function: FunctionFacts, parameters: set[str]) -> Iterator[ast.expr]:
    """Yield the arguments of a call that some parameters of a function may get."""
    arguments = function.node.args
    positions = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    indexes = {positions.index(one) for one in parameters if one in positions}
    if function.inside is not None:
        # The object is no argument, unless the call is one of the class.
        indexes |= {one - 1 for one in indexes}
    is_open = arguments.vararg is not None and arguments.vararg.arg in parameters
    for index, one in enumerate(call.args):
        if isinstance(one, ast.Starred) or index in indexes or (is_open and index >= len(positions) - 1):
            yield one
    takes_all = arguments.kwarg is not None and arguments.kwarg.arg in parameters
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in parameters or takes_all:
            yield keyword.value
        if keyword.arg and takes_all:
            yield ast.Constant(keyword.arg)

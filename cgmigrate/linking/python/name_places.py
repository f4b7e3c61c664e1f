"""The code of a project by the names in it: what it gives to attributes and variables of modules, and who uses what."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.leading_code import FunctionFacts, facts_of, used_by
from cgmigrate.proof.flow.modules import Module, is_test
from cgmigrate.linking.python.name_flows import assigned, parts_of, results_of
from cgmigrate.linking.python.name_texts import last_name
from cgmigrate.linking.python.references import References


@dataclass(frozen=True, slots=True)
class Place:
    """A function, or what a module has outside its functions."""

    module: Module
    function: FunctionFacts | None = None

    @property
    def node(self) -> ast.AST:
        """Its code."""
        return self.function.node if self.function else self.module.tree


@dataclass
class Places:
    """Finds the places of a project that name something."""

    files_with: FilesWith
    references: References
    _values: dict[str, list[tuple[Place, Sequence[ast.expr]]]] = field(default_factory=dict)
    _users: dict[str, list[tuple[Place, frozenset[str]]]] = field(default_factory=dict)
    _made: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What is made with something, by its name."""

    def values_of(self, name: str) -> list[tuple[Place, Sequence[ast.expr]]]:
        """Return what code gives to attributes, or variables of modules, that have a name."""
        if name not in self._values:
            self._values[name] = [
                (place, seeds)
                for place in self._places_with(name)
                if (seeds := [*_values_set(place, _spelled(name, place.module))] or _method_named(place, name))
            ] + [*self._values_of_makers(name)]
        return self._values[name]

    def _values_of_makers(self, name: str) -> Iterator[tuple[Place, Sequence[ast.expr]]]:
        """Yield the arguments of calls of the classes that declare an attribute: a dataclass keeps them."""
        for module in dict.fromkeys(place.module for place in self._places_with(name)):
            for node in parts_of(module.tree):
                if isinstance(node, ast.ClassDef) and _declares(node, name):
                    for place, names in self._naming(node.name):
                        calls = (one for one in parts_of(place.node) if isinstance(one, ast.Call))
                        yield place, [inner for one in calls if last_name(one.func) in names for inner in one.args]

    def _places_with(self, name: str) -> Iterator[Place]:
        for path in self.files_with([name]):
            module = None if is_test(path) else self.references.modules.read(path)
            if module is not None:
                yield Place(module)
                yield from (Place(module, one) for one in facts_of(module))

    def users_of(self, function: FunctionFacts) -> list[tuple[Place, frozenset[str]]]:
        """Return the places that use a function, each with the names by which it does."""
        special = function.inside if _is_special(function) else None
        called = special.name if special else function.node.name
        result = list[tuple[Place, frozenset[str]]]()
        for name in self._bound_to(called):
            for place, names in self._naming(name):
                user = place.function
                if user is None or name != called or self._uses(user, {*function.spelled, special}):
                    result.append((place, names))
        if special and function.node.name == "__init__":
            inside = {special.name, *self._bound_to(special.name)}
            result += [(one, names) for one, names in self._naming("__init__") if _has_base(one, inside)]
        return result

    def _uses(self, user: FunctionFacts, spelled: set[object]) -> bool:
        return not used_by(user, self.references).isdisjoint(spelled)

    def _naming(self, name: str) -> list[tuple[Place, frozenset[str]]]:
        """Return the places that name something, each with its names for it."""
        if name not in self._users:
            self._users[name] = [
                (one, names)
                for one in self._places_with(name)
                if not _last_names(one.node).isdisjoint(names := _spelled(name, one.module))
            ]
        return self._users[name]

    def _bound_to(self, name: str) -> tuple[str, ...]:
        """Return a name, and those of the subclasses and the variables of modules that are made with it."""
        if name not in self._made:
            made = [name]
            for one in made:
                for place, names in self._naming(one):
                    if place.function is None:
                        made += (other for other in _made_with(place.module, names) if other not in made)
            self._made[name] = tuple(made)
        return self._made[name]


def _is_special(function: FunctionFacts) -> bool:
    return function.inside is not None and function.node.name.startswith("__")


def _spelled(name: str, module: Module) -> frozenset[str]:
    """Return the names that a module has for what has a name in another one."""
    return module.names_for(name) | {name}


@lru_cache(maxsize=16384)
def _last_names(node: ast.AST) -> frozenset[str]:
    return frozenset(map(last_name, parts_of(node)))


def _has_base(place: Place, names: Collection[str]) -> bool:
    """Return whether code is in a class that is made from one of some classes."""
    inside = place.function.inside if place.function else None
    return inside is not None and any(last_name(one) in names for one in inside.bases)


def _made_with(module: Module, names: Collection[str]) -> Iterator[str]:
    """Yield the names at the top of a module for what is made with something: a subclass, an object, a list."""
    for name, bound in module.bindings.items():
        made = bound.bases if isinstance(bound, ast.ClassDef) else [bound]
        if any(last_name(part) in names for one in made if isinstance(one, ast.expr) for part in walk(one)):
            yield name


def _values_set(place: Place, names: Collection[str]) -> Iterator[ast.expr]:
    """Yield what code gives to attributes that have some names, or to variables of modules."""
    known = _values_by_name(place.node)
    return (value for name in sorted(names) for value in known.get(name, ()))


@lru_cache(maxsize=16384)
def _values_by_name(node: ast.AST) -> Mapping[str, Sequence[ast.expr]]:
    """Return what code gives to attributes, and to variables that are not its own, by their names."""
    own = frozenset[str]() if isinstance(node, ast.Module) else _bound_in(node)
    result: dict[str, list[ast.expr]] = {}
    for part in parts_of(node):
        for target, value in assigned(part):
            if isinstance(target, ast.Attribute) or (isinstance(target, ast.Name) and target.id not in own):
                result.setdefault(last_name(target), []).append(value)
        match part:
            case ast.Call(func=function, keywords=keywords) if last_name(function)[:1].isupper():
                # A class keeps what it gets.
                for one in keywords:
                    result.setdefault(one.arg or "", []).append(one.value)
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str() as name), value]):
                result.setdefault(name, []).append(value)
    return result


def _bound_in(node: ast.AST) -> frozenset[str]:
    parts = [*walk(node)]
    bound = {one.id for one in parts if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    bound |= {one.arg for one in parts if isinstance(one, ast.arg)}
    return frozenset(bound.difference(*(one.names for one in parts if isinstance(one, ast.Global))))


def _declares(node: ast.ClassDef, name: str) -> bool:
    return any(
        isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id == name
        for one in node.body
    )


def _method_named(place: Place, name: str) -> Sequence[ast.expr]:
    function = place.function
    return results_of(function.node) if function and function.inside and function.node.name == name else ()

"""Names of dictionaries in code of tests that only sets their entries on an object, one by one.

Such code is `for key, value in overrides.items(): setattr(config.model, key, value)`, also in a helper that gets the
dictionary. Then its keys are names of attributes, and nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cgmigrate.documents.python.deprecation_tests import reason_of
from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.arguments import EXPECTS
from cgmigrate.linking.python.bound_names import binders
from cgmigrate.linking.python.modules import Module, is_test
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References

Place = tuple[str, int]
"""A file and a line."""
_SEES = EXPECTS | {"assertWarns", "assertWarnsRegex", "assertLogs", "warns", "deprecated_call", "catch_warnings"}
_SEES |= {"caplog", "recwarn", "capsys", "capfd", "suppress"}
_MOST_CALLS = 4
"""How many helpers pass a dictionary on."""


class OtherUseError(Exception):
    """Code uses a dictionary, or the object that gets its entries, in another way as well."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name of a function whose value is a dictionary, or one that has it under a key."""

    name: str
    function: AnyFunction
    module: Module
    binder: ast.AST
    """What binds the name: the function, for a parameter, or a loop."""
    is_nested: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class SetEntries:
    """Follows the names of a dictionary through functions.

    ``calls`` gets the places of the calls of `setattr`, ``functions`` the functions with their modules, and ``objects``
    the expressions of the objects, each with its function.
    """

    references: References
    calls: set[Place] = field(default_factory=set)
    functions: dict[AnyFunction, Module] = field(default_factory=dict)
    objects: list[tuple[AnyFunction, ast.expr]] = field(default_factory=list)

    def add(self, other: SetEntries) -> None:
        """Add what follows a dictionary in another test."""
        self.calls.update(other.calls)
        self.functions.update(other.functions)
        self.objects.extend(other.objects)

    def follow(self, named: Named) -> None:
        """Follow a name. Raises OtherUseError."""
        if not is_test(named.module.path) or named.depth > _MOST_CALLS:
            raise OtherUseError
        if binders(named.name, named.function) != [named.binder] or _expects(named.function):
            raise OtherUseError
        if named.function in self.functions and named.binder is named.function:
            # Each call of a helper may make another object.
            raise OtherUseError
        self.functions[named.function] = named.module
        known = {id(one) for part in walk(named.function) for one in self._known_in(part, named)}
        if not _uses(named.name, named.function) <= known:
            raise OtherUseError

    def _known_in(self, part: ast.AST, named: Named) -> Iterator[ast.AST]:
        """Yield the uses of a name in one node that are known."""
        match part:
            case ast.If(test=test):
                yield from _tested_in(test)
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=value)]), iter=items):
                if (own := _items_of(items)) is not None and own.id == named.name:
                    yield own
                    self._follow_loop(part, key, value, named)
            case ast.Call(func=ast.Name() as called, args=arguments, keywords=keywords):
                for at, one in enumerate(arguments):
                    if isinstance(one, ast.Starred):
                        break
                    yield from self._passed(called, one, at, named)
                for keyword in keywords:
                    if keyword.arg:
                        yield from self._passed(called, keyword.value, keyword.arg, named)

    def _passed(self, called: ast.Name, value: ast.expr, at: int | str, named: Named) -> Iterator[ast.AST]:
        """Yield an argument that is the name, after following the parameter that gets it."""
        if not isinstance(value, ast.Name) or value.id != named.name:
            return
        if (helper := helper_of(called, named.function, named.module, self.references)) is not None:
            function, module = helper
            parameter = parameter_of(function, at)
            self.follow(Named(parameter, function, module, function, named.is_nested, named.depth + 1))
            yield value

    def _follow_loop(self, loop: ast.For, key: str, value: str, named: Named) -> None:
        """Follow the key and the value of an entry in a loop."""
        inside = [node for statement in loop.body for node in walk(statement)]
        objects = [] if named.is_nested else list(_objects_in(inside, key, value))
        known = {id(one) for part in inside for one in _named_in_error(part)}
        for part in inside:
            match part:
                case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Name(), ast.Name()]) if owner in objects:
                    known.update(map(id, part.args[1:]))
                    self.calls.add((named.module.path, part.lineno))
                case ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Name() as one]):
                    # Only the object itself has the new attribute as well.
                    if named.is_nested or any(ast.dump(owner) == ast.dump(other) for other in objects):
                        known.add(id(one))
                case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Name() as one]) if named.is_nested:
                    known.add(id(one))
        self.objects.extend((named.function, one) for one in objects)
        _check_in_loop(key, loop, named.function, known)
        if named.is_nested:
            self.follow(replace(named, name=value, binder=loop, is_nested=False))
        else:
            _check_in_loop(value, loop, named.function, known)


def helper_of(
    called: ast.Name, function: AnyFunction, module: Module, references: References
) -> tuple[ast.FunctionDef, Module] | None:
    """Return the function that a name in a function is, with its module; None if it may be anything else."""
    if binders(called.id, function):
        return None
    match references.of(called, module).code:
        case [(ast.FunctionDef(decorator_list=[]) as helper, its_module)]:
            return (helper, its_module) if its_module.bindings.get(helper.name) is helper else None
    return None


def parameter_of(function: ast.FunctionDef, at: int | str) -> str:
    """Return the name of a parameter by its position or name. Raises OtherUseError if the function has none."""
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    if isinstance(at, int) and at < len(names):
        return names[at]
    if isinstance(at, str) and at in (*names, *(one.arg for one in arguments.kwonlyargs)):
        return at
    raise OtherUseError


def _objects_in(nodes: list[ast.AST], key: str, value: str) -> Iterator[ast.expr]:
    """Yield the objects on which code of a loop sets an entry."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Name(id=name), ast.Name(id=new)]):
                if (name, new) == (key, value):
                    yield owner


def _named_in_error(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the names that an error gets, or shows in its text."""
    match node:
        case ast.Raise(exc=ast.Call(func=ast.Name(), args=arguments)):
            yield from arguments
            yield from (one.value for one in walk(node) if isinstance(one, ast.FormattedValue))


def _expects(function: AnyFunction) -> bool:
    """Return whether a function sees errors, warnings or logs, or is about deprecated names."""
    if reason_of(function):
        return True
    for part in walk(function):
        match part:
            case ast.ExceptHandler():
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) if name in _SEES:
                return True
    return False


def _check_in_loop(name: str, loop: ast.For, function: AnyFunction, known: set[int]) -> None:
    """Raise OtherUseError if code uses a name of a loop in another way; other loops may bind it again."""
    every = binders(name, function)
    if not all(isinstance(one, ast.For) for one in every):
        raise OtherUseError
    again = (one for one in every if isinstance(one, ast.For) and one is not loop)
    others = {id(node) for one in again for statement in one.body for node in walk(statement)}
    if not _uses(name, function) <= known | others:
        raise OtherUseError


def _uses(name: str, function: AnyFunction) -> set[int]:
    return {
        id(one)
        for one in walk(function)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    }


def _tested_in(test: ast.expr) -> Iterator[ast.AST]:
    """Yield the name in a condition that only asks whether there is something."""
    match test:
        case ast.Name():
            yield test
        case ast.Compare(left=ast.Name() as left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant()]):
            yield left


def _items_of(call: ast.expr) -> ast.Name | None:
    """Return the name whose `items` are called, None for other code."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name() as named, attr="items"), args=[], keywords=[]):
            return named
    return None

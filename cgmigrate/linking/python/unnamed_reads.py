"""Tests that see a setting without its name: they compare, list or print an object whole, also in a helper.

Only objects count that a test makes with code that leads to changes: ``summary(recipe())``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.function_calls import parameters
from cgmigrate.proof.flow.modules import Module
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.test_reads import reads_computed

_READ_ALL = frozenset(("asdict", "astuple", "vars", "fields", "getmembers", "dumps", "pformat", "deepdiff", "DeepDiff"))
_AS_TEXT = frozenset(("str", "repr", "print", "format"))
_MOST_CALLS = 3
"""How many helpers may pass the object on."""
_NAMES = (ast.Name, ast.Attribute)
_SETS_UP = ("setUp", "setup", "setup_method", "setUpClass", "setup_class")


@dataclass(frozen=True, slots=True)
class UnnamedReads:
    """Decides for each test. ``leading`` are the functions whose results may have settings that change, by their names.

    ``holders`` are the attributes that lead to objects with settings (``model`` in ``cfg.model.cuda_graph_scope``).
    """

    references: References
    leading: Collection[str]
    holders: Collection[str]
    _known: dict[tuple[AnyFunction, frozenset[str], int], bool] = field(default_factory=dict)
    _of_classes: dict[ast.ClassDef, frozenset[str]] = field(default_factory=dict)
    """The names that tests of a class have for objects that it makes."""

    def seen(self, test: AnyFunction, module: Module, *, by_helpers: bool) -> list[str]:
        """Return the leading functions in whose objects a test may see settings that it does not name.

        It does so itself, or helpers do that it calls.
        """
        if not self._sees(test, module, by_helpers):
            return []
        used = (part for part in walk(module.tree) if isinstance(part, _NAMES))
        every = sorted({one.id if isinstance(one, ast.Name) else one.attr for one in used} & {*self.leading})
        alone = [
            name
            for name in every
            if replace(self, leading={name}, _known={}, _of_classes={})._sees(test, module, by_helpers)
        ]
        return alone or every

    def _sees(self, test: AnyFunction, module: Module, by_helpers: bool) -> bool:
        made = self._made_in(test, module)
        if not by_helpers:
            return self._reads(test, module, made, 0)
        calls = [part for part in walk(test) if isinstance(part, ast.Call)]
        return any(self._helper_reads(one, module, made, _MOST_CALLS) or self._lends(one, module) for one in calls)

    def _lends(self, call: ast.Call, module: Module) -> bool:
        """Return whether a call gives code that leads to changes to a function that may use all that it sets."""
        values = (*call.args, *(one.value for one in call.keywords))
        names = {one.id if isinstance(one, ast.Name) else one.attr for one in values if isinstance(one, _NAMES)}
        if names.isdisjoint(self.leading):
            return False
        return any(reads_computed(function) for function, _ in self._called(call, module))

    # --- which objects ----------------------------------------------------------------------------

    def _made_in(self, test: AnyFunction, module: Module) -> frozenset[str]:
        """Return the names that a test has for objects of code that leads to changes; its own have ``self.``."""
        own_class = _classes_around(module.tree).get(test)
        made = {one.name for one in _fixtures(test, module, own_class) if self._uses_leading(one)}
        if own_class is not None:
            if own_class not in self._of_classes:
                self._of_classes[own_class] = frozenset(self._made_in_class(own_class))
            made |= self._of_classes[own_class]
        for target, value in _bound(test):
            if self._makes(value, frozenset(made)):
                made.add(_named(target))
        return frozenset(made - {""})

    def _made_in_class(self, own_class: ast.ClassDef) -> Iterator[str]:
        """Yield the names of tests of a class for what it sets up, or keeps: ``recipe = staticmethod(start)``."""
        for one in own_class.body:
            if isinstance(one, ast.FunctionDef):
                is_set_up = one.name in _SETS_UP or (bool(one.decorator_list) and not one.name.startswith("test"))
                if is_set_up and self._uses_leading(one):
                    yield from (name for target, _ in _bound(one) if (name := _named(target)).startswith("self."))
            elif any(isinstance(part, ast.Name) and part.id in self.leading for part in walk(one)):
                yield from (f"self.{_named(target)}" for target, _ in _assigned(one))

    def _uses_leading(self, function: AnyFunction) -> bool:
        return any(self._makes(part, frozenset()) for part in walk(function) if isinstance(part, ast.Call))

    def _makes(self, node: ast.AST, made: frozenset[str]) -> bool:
        """Return whether an expression is an object with settings, or leads to one: ``recipe().model``."""
        if isinstance(node, ast.expr) and _named(node) in made:
            return True
        match node:
            case ast.Attribute(value=owner, attr=name):
                return name in self.holders and self._makes(owner, made)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in self.leading or _named(node.func) in made
        return False

    # --- what reads them --------------------------------------------------------------------------

    def _reads(self, function: AnyFunction, module: Module, made: frozenset[str], depth: int) -> bool:
        """Return whether a function may use all attributes of some objects."""
        key = (function, made, depth)
        if key not in self._known:
            self._known[key] = False
            self._known[key] = any(self._reads_in(part, module, made, depth) for part in walk(function))
        return self._known[key]

    def _reads_in(self, node: ast.AST, module: Module, made: frozenset[str], depth: int) -> bool:
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                return self._compares(left, right, made)
            case ast.Attribute(value=owner, attr="__dict__") | ast.FormattedValue(value=owner):
                return self._makes(owner, made)
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name, *_]):
                return not isinstance(name, ast.Constant) and self._makes(owner, made)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
                return self._is_passed_to_reader(node, name, arguments, made) or self._helper_reads(
                    node, module, made, depth
                )
        return False

    def _compares(self, left: ast.expr, right: ast.expr, made: frozenset[str]) -> bool:
        """Return whether a comparison is one of an object that is made with something that may be one."""
        sides = ((left, right), (right, left))
        return any(
            self._makes(one, made) and isinstance(other, (ast.Call, ast.Name, ast.Attribute)) for one, other in sides
        )

    def _is_passed_to_reader(self, call: ast.Call, name: str, arguments: list[ast.expr], made: frozenset[str]) -> bool:
        if name in _READ_ALL or name in _AS_TEXT:
            return any(self._makes(one, made) for one in arguments)
        is_assertion = name in ("assertEqual", "assertNotEqual", "assertDictEqual", "assert_equal")
        return is_assertion and len(call.args) > 1 and self._compares(call.args[0], call.args[1], made)

    def _helper_reads(self, call: ast.Call, module: Module, made: frozenset[str], depth: int) -> bool:
        """Return whether a function of the project that gets such an object may use all of its attributes."""
        if not depth:
            return False
        own = any(one.startswith("self.") for one in made) and _is_method_of_self(call)
        values = (*call.args, *(one.value for one in call.keywords))
        if not own and not any(self._makes(one, made) for one in values):
            return False
        for function, its_module in self._called(call, module):
            passed = frozenset(name for name, value in _passed(call, function) if self._makes(value, made))
            if own:
                passed |= {one for one in made if one.startswith("self.")}
            inner = passed | self._made_from(function, passed)
            if passed and self._reads(function, its_module, inner, depth - 1):
                return True
        return False

    def _made_from(self, function: AnyFunction, made: frozenset[str]) -> frozenset[str]:
        """Return the names that a helper gives to the objects that it gets: ``target = getattr(target, part)``."""
        names = set(made)
        for target, value in _bound(function):
            if self._makes(value, frozenset(names)) and _named(target):
                names.add(_named(target))
        return frozenset(names)

    def _called(self, call: ast.Call, module: Module) -> Iterator[tuple[AnyFunction, Module]]:
        """Yield the functions of the project that a call may call: by its name, or as a method of a base class."""
        match call.func:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                if (own := _classes_around(module.tree).get(call)) is not None:
                    yield from self._methods(own, name, module)
            case ast.Name() | ast.Attribute():
                for node, its_module in self.references.of(call.func, module).code:
                    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        yield node, its_module

    def _methods(self, node: ast.ClassDef, name: str, module: Module) -> Iterator[tuple[AnyFunction, Module]]:
        yield from ((one, module) for one in node.body if isinstance(one, ast.FunctionDef) and one.name == name)
        for base in node.bases:
            for inner, its_module in self.references.of(base, module).code:
                if isinstance(inner, ast.ClassDef):
                    yield from self._methods(inner, name, its_module)


def _named(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return f"self.{name}"
    return ""


@lru_cache(maxsize=64)
def _classes_around(tree: ast.Module) -> Mapping[ast.AST, ast.ClassDef]:
    """Return the class that each call and method of a module is in."""
    return {
        part: one
        for one in walk(tree)
        if isinstance(one, ast.ClassDef)
        for part in walk(one)
        if isinstance(part, (ast.Call, ast.FunctionDef, ast.AsyncFunctionDef))
    }


def _fixtures(test: AnyFunction, module: Module, own_class: ast.ClassDef | None) -> Iterator[ast.FunctionDef]:
    """Yield the functions of the file of a test that may be the fixtures that its parameters name."""
    names = set(parameters(test))
    for one in (*module.tree.body, *(own_class.body if own_class else ())):
        if isinstance(one, ast.FunctionDef) and one.name in names and one.decorator_list:
            yield one


def _is_method_of_self(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="self")):
            return True
    return False


def _bound(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for part in walk(function):
        yield from _assigned(part)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((one, value) for one in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.For(target=target, iter=ast.Tuple(elts=items) | ast.List(elts=items)):
            yield from ((target, one) for one in items)


def _passed(call: ast.Call, function: AnyFunction) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function that a call passes something to."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    yield from zip(names, call.args, strict=False)
    if function.args.vararg is not None:
        yield from ((function.args.vararg.arg, one) for one in call.args[len(names) :])
    yield from ((one.arg, one.value) for one in call.keywords if one.arg)

"""Which changes code of a project may see that is not followed: above all tests, and functions by their names."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cgmigrate.documents.python.nodes import lines_of, walk
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.change_places import ChangePlaces
from cgmigrate.linking.python.evaluation import ReadsSettingsError, ReplacesCodeError
from cgmigrate.linking.python.leading_code import FunctionFacts, facts_of
from cgmigrate.proof.flow.modules import IMPORTS_BY_NAME, Module, Modules, is_test
from cgmigrate.linking.python.name_texts import last_name, texts_of
from cgmigrate.linking.python.pieces import AnyFunction, Unit, functions_of
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.relevance import Relevance
from cgmigrate.linking.python.returned_objects import may_return_object, returns_numbers
from cgmigrate.linking.python.rounds import Name, Place
from cgmigrate.linking.python.test_data import DataSearch, Seen, classes_with_data, using
from cgmigrate.linking.python.test_reach import ReachSearch
from cgmigrate.linking.python.test_reads import (
    WATCHING,
    asks_text,
    has_recorder,
    reads_all,
    reads_computed,
    reads_settings,
)
from cgmigrate.linking.python.unnamed_reads import UnnamedReads
from cgmigrate.linking.python.values import CannotFollowError


@dataclass(frozen=True)
class SeenChanges:
    """The changes that code may see. ``files`` are those that may use what changes."""

    places: ChangePlaces
    relevance: Relevance
    files: Sequence[str]
    files_with: FilesWith
    _users: dict[str, list[FunctionFacts]] = field(default_factory=dict)
    _seeing: dict[str, bool] = field(default_factory=dict)
    """Whether tests of a file may get an object of code that changes, as far as that was evaluated."""
    _tests: dict[Place, frozenset[Name]] = field(default_factory=dict)
    """The changes that tests may see, by the place of the test."""

    @property
    def _modules(self) -> Modules:
        return self.places.modules

    @property
    def _references(self) -> References:
        return self.places.references

    @cached_property
    def _reach(self) -> ReachSearch:
        return ReachSearch(self._references, self._named, lambda lines: self.places.in_lines(*lines))

    @cached_property
    def _every(self) -> frozenset[Name]:
        return frozenset(one.name for one in self.places.changes)

    def by_function(self, unit: Unit) -> frozenset[Name]:
        """Return the changes in the code that a function uses."""
        assert unit.scope is not None
        reach = self._reach.of_function(unit.scope, unit.module)
        return reach.changes if reach.is_known else self._every

    def by_test(self, unit: Unit) -> frozenset[Name]:
        """Return the changes that a test may see: its own, and those in the code that it uses."""
        key = (unit.module.path, unit.scope.lineno if unit.scope else 0)
        if key not in self._tests:
            reach = self._reach.of(unit.scope, unit.module)
            every = reach.changes if reach.is_known else self._every
            own = lines_of(unit.scope) if unit.scope else unit.lines
            self._tests[key] = frozenset(every | self.places.in_lines(unit.module.path, *own))
        return self._tests[key]

    def by_part_of_test(self, unit: Unit, error: CannotFollowError) -> frozenset[Name]:
        """Return the changes that a part of a test may see which is not followed."""
        replaces = isinstance(error, ReplacesCodeError)
        is_read = isinstance(error, ReadsSettingsError)
        if is_read or reads_settings(unit.nodes, unit.scope, unit.module, replaces=replaces) or self._asks_own(unit):
            return self.by_test(unit)
        if unit.scope is not None and self._makes_names(unit.scope, unit.module):
            return self._reach.of_module(unit.module).changes
        is_seen = unit.scope is not None and unit.scope.name.startswith("test")
        return self._without_names(unit.scope, unit.module, by_helpers=False) if is_seen and unit.scope else frozenset()

    def _asks_own(self, unit: Unit) -> bool:
        """Return whether a part calls code that asks for settings, with an object whose settings the test changes."""
        if unit.scope is None or not self.places.in_lines(unit.module.path, *lines_of(unit.scope)):
            return False
        loads = frozenset[str]().union(*(self.relevance.facts(node).loads for node in unit.nodes))
        return not loads.isdisjoint(self.relevance.asking)

    def by_whole(self, unit: Unit) -> frozenset[Name]:
        """Return the changes that a test sees which its parts do not show: it sees objects whole."""
        assert unit.scope is not None
        if has_recorder(unit.scope, unit.module):
            return self.by_test(unit)
        return self._reach.of(unit.scope, unit.module).changes if reads_all(unit.scope) else frozenset()

    def may_be_seen(self, unit: Unit) -> bool:
        """Return whether a test changes, or may get an object of code that does, also through names of other files."""
        if self.places.of(unit) or self._may_see_changes(unit.module):
            return True
        return bool(self._reach.of(unit.scope, unit.module).changes)

    def by_helpers(self) -> dict[Name, str]:
        """Return the changes that helpers of tests see, each with the reason to withhold it: no helper is evaluated."""
        result: dict[Name, str] = {}
        files = filter(is_test, self.files_with(sorted(self._unnamed.leading)))
        for test, module in _tests_in(files, self._modules):
            seen = self._without_names(test, module, by_helpers=True)
            for name in sorted(seen | self.places.in_lines(module.path, *lines_of(test)) if seen else seen):
                place = f"the test at {module.path}:{test.lineno}"
                result.setdefault(name, f"{place} calls code that compares or lists an object whole")
        return result

    def by_parts_of_names(self) -> dict[Name, str]:
        """Return the changes that tests may see which make the names of settings of parts, each with the reason."""
        result: dict[Name, str] = {}
        stems = {os.path.basename(one.path).removesuffix(".py") for one in self.places.changes}
        files = filter(is_test, self.files_with(sorted({*self._unnamed.leading, *stems})))
        for test, module in _tests_in(files, self._modules):
            is_evaluated = module.path in self.files and self.relevance.is_relevant(test)
            if (
                asks_text(test)
                or self._looks_up_both(test, module)
                or (not is_evaluated and self._makes_names(test, module))
            ):
                reason = f"the test at {module.path}:{test.lineno} reads attributes by names that it computes"
                changes = self._reach.of_module(module).changes
                result |= dict.fromkeys(changes | self.places.in_lines(module.path, *lines_of(test)), reason)
        return result

    def _makes_names(self, test: AnyFunction, module: Module) -> bool:
        """Return whether a test reads attributes by names that it computes, and has a text with a part of a setting's.

        The texts may be those of variables of modules.
        """
        code = [test, *(one for one, _ in self._references.of(test, module).code if isinstance(one, ast.expr))]
        return any(map(reads_computed, code)) and any(map(texts_of, code))

    def _looks_up_both(self, test: AnyFunction, module: Module) -> bool:
        """Return whether a test gets functions of a module, and attributes of objects, by names that it computes."""
        if not reads_computed(test) or not self._references.looks_up(test, module):
            return False
        calls = (one for one in walk(test) if isinstance(one, ast.Call) and last_name(one.func) == "getattr")
        return any(
            len(one.args) > 1
            and not isinstance(one.args[1], ast.Constant)
            and not (isinstance(one.args[0], ast.Name) and self._references.is_module(one.args[0].id, test, module))
            for one in calls
        )

    def in_data(self, seeds: Iterable[str]) -> Seen:
        """Return what settings show that tests have as data, in some files."""
        files = list(filter(is_test, seeds))
        seen = Seen()
        search = DataSearch(self._references, self._reach, self._named)
        search.add(_tests_in(using(files, self.files_with), self._modules), seen)
        search.add((one for path in files for one in classes_with_data(self._modules.read(path))), seen)
        return seen

    def may_return_object(self, node: AnyFunction, module: Module) -> bool:
        """Return whether a function may return an object with settings that it did not get."""
        functions = {
            one.name: one
            for one, _ in self._references.of(node, module).code
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        bound = {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        return may_return_object(node, self.relevance, lambda name: None if name in bound else functions.get(name))

    # --- by names ---------------------------------------------------------------------------------

    def _named(self, name: str) -> Sequence[FunctionFacts]:
        """Return the functions with a name; that of a method begins with a dot."""
        if not self._users:
            for path in self.files:
                for one in facts_of(self._modules.read(path)):
                    for spelled in (one.name, *([one.as_property] if one.is_property else [])):
                        self._users.setdefault(spelled, []).append(one)
        return self._users.get(name, ())

    def _may_see_changes(self, module: Module) -> bool:
        """Return whether a test may get an object of code that changes: it imports it, or by names that it computes."""
        if module.path not in self._seeing:
            self._seeing[module.path] = self._sees_changes(module)
        return self._seeing[module.path]

    def _sees_changes(self, module: Module) -> bool:
        if _imports_by_name(module):
            return True
        if any(self.places.of(one) for one in _helpers(module)):
            return True
        if any(map(self._may_see_changes, self._references.conftests(module))):
            return True
        changed = {one.path for one in self.places.changes} - {module.path}
        folders = {folder for path in changed for folder in _folders_of(path)}
        return any(
            path in changed or (path.endswith("__init__.py") and path.removesuffix("/__init__.py") in folders)
            for path in self._modules.all_imported(module)
        )

    @cached_property
    def _unnamed(self) -> UnnamedReads:
        leading = filter(self._may_make_object, self.places.leading(self.files))
        return UnnamedReads(self._references, frozenset(leading), self.relevance.holders)

    def _may_make_object(self, name: str) -> bool:
        """Return whether what a function returns may be an object, or a method with this name."""
        functions = (*self._named(name), *self._named(f".{name}"))
        return not functions or not all(returns_numbers(one.node) for one in functions)

    def _without_names(self, test: AnyFunction, module: Module, *, by_helpers: bool) -> frozenset[Name]:
        """Return the changes in objects of which a test sees settings that it does not name."""
        changes = set[Name]()
        for name in self._unnamed.seen(test, module, by_helpers=by_helpers):
            for one in (*self._named(name), *self._named(f".{name}")):
                if (its_module := self._modules.read(one.path)) is not None:
                    changes |= self._reach.of_function(one.node, its_module).changes
        return frozenset(changes & self._reach.of(test, module).changes if changes else changes)


def watching(
    names: Sequence[str], files: Iterable[str], places: ChangePlaces, relevance: Relevance, files_with: FilesWith
) -> list[str]:
    """Return the files of tests with some names that may see settings which they do not name."""
    users = {path for path in files_with(names) if is_test(path)}
    unnamed = UnnamedReads(places.references, places.leading(files), relevance.holders)
    seeing = {
        module.path for test, module in _tests_in(users, places.modules) if unnamed.seen(test, module, by_helpers=False)
    }
    return sorted(seeing | (users & set(files_with(WATCHING))))


def _tests_in(files: Iterable[str], modules: Modules) -> Iterator[tuple[AnyFunction, Module]]:
    for path in sorted(files):
        if (module := modules.read(path)) is not None:
            yield from ((one.node, module) for one in facts_of(module) if one.node.name.startswith("test"))


def _helpers(module: Module) -> Iterator[Unit]:
    """Yield the functions of a module of tests that its tests may call."""
    for name, node, _ in functions_of(module):
        if not node.name.startswith("test"):
            yield Unit(name, module, node)


def _imports_by_name(module: Module) -> bool:
    return any(word in module.text for word in IMPORTS_BY_NAME) and any(map(_is_import, walk(module.tree)))


def _is_import(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in IMPORTS_BY_NAME
    return False


def _folders_of(path: str) -> Iterator[str]:
    while (folder := path.rpartition("/")[0]) and folder != path:
        yield folder
        path = folder

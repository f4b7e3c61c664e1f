"""Code that may get the parameters of a test without its knowledge: fixtures, hooks of pytest, frames, other names."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import class_of, walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.changed_names import is_changed, is_replaced_by_tests
from cgmigrate.linking.python.modules import IMPORTS_BY_NAME, Module, is_test
from cgmigrate.linking.python.parametrised import names_in
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References

_BUILTINS = ("setattr", "getattr", "hasattr", "isinstance")
_REFLECTING = frozenset(("globals", "locals", "eval", "exec", "vars", "compile", "__import__", "pytestmark"))
_REFLECTING |= {"pytest_plugins", "pytest_generate_tests", "pytest_make_parametrize_id", "__init_subclass__"}
"""Names of code that gets names, and of hooks that get what tests have."""
_ATTRIBUTES = frozenset(("_getframe", "currentframe", "f_locals", "f_globals", "stack", "get_objects", "getmembers"))
_ATTRIBUTES |= {"funcargs", "callspec", "iter_markers", "own_markers", "pytestmark", "getfixturevalue", "_request"}
_ATTRIBUTES |= {"__dict__", "__globals__", "__subclasses__", "import_module", "params"}
_FRAMES = frozenset(("_getframe", "currentframe", "getouterframes", "f_locals", "f_globals", "funcargs", "callspec"))
"""Names of code that gets the local names of its callers."""
_OF_ITEMS = frozenset(("module", "cls", "obj", "function", "instance", "keywords", "node", "_pyfuncitem", "param"))
"""Attributes of what pytest gives to hooks and fixtures, by which they get at the test."""
_ITEMS = frozenset(("item", "items", "request", "metafunc", "node", "collector"))
_SET_UP = ("setup_method", "teardown_method", "setup_function", "teardown_function")
_OF_HOOKS = ("callspec", "funcargs", "iter_markers", "own_markers")
_LISTS = ("listdir", "glob", "rglob", "iterdir", "scandir", "walk", "iter_modules", "walk_packages")


@dataclass(frozen=True, slots=True)
class TestDataReaders:
    """Decides for the tests of one module."""

    module: Module
    references: References
    files_with: FilesWith

    def may_read(self, tests: Iterable[ast.FunctionDef], functions: Collection[AnyFunction], names: set[str]) -> bool:
        """Return whether code may read tables of some names, or parameters of tests; ``functions`` get these, too."""
        tests = list(tests)
        every = {*names, *(one.name for one in functions), *(one.name for one in tests)}
        modules = [self.module, *self.references.conftests(self.module)]
        around = dict.fromkeys((*modules, *self._imported(modules)))
        return (
            any(map(self._reflects, modules))
            or any(_reads_frames(one, names) or self._sets(one, every) for one in around)
            or self._is_seen_by_plugins()
            or any(map(self._is_wrapped, tests))
            or any(self._takes(function, tests) for one in modules for function in _functions(one))
            or any(is_replaced_by_tests(name, self.references.modules) for name in (*every, *_BUILTINS))
            or any(is_changed(name, self.module, self.references.modules, in_place=False) for name in every)
            or self._is_loaded_by_name()
        )

    def _imported(self, modules: Iterable[Module]) -> Iterator[Module]:
        """Yield the modules of tests that some modules import."""
        for path in (path for one in modules for path in self.references.modules.all_imported(one)):
            if is_test(path) and (module := self.references.modules.read(path)) is not None:
                yield module

    def _is_seen_by_plugins(self) -> bool:
        """Return whether a hook of pytest, in any file, gets the parameters of tests."""
        for path in self.files_with(_OF_HOOKS):
            module = self.references.modules.read(path)
            if module is None or "def pytest_" in module.text:
                return True
        return False

    def _reflects(self, module: Module) -> bool:
        """Return whether code of a module may get names that it does not spell."""
        for part in walk(module.tree):
            match part:
                case ast.Name(id=name) | ast.alias(name=name) if name in _REFLECTING:
                    return True
                case ast.FunctionDef(name=name) if name in _REFLECTING or (name in _SET_UP and len(part.args.args) > 1):
                    return True
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in _ITEMS and name in _OF_ITEMS:
                    return True
                case ast.Attribute(value=ast.Name(id="sys"), attr="modules") if not _is_only_for_file(module, part):
                    return True
                case ast.Attribute(attr=name) if name in _ATTRIBUTES:
                    return True
        return False

    def _sets(self, module: Module, names: set[str]) -> bool:
        """Return whether code sets an attribute with one of some names: `util.apply = strict`."""
        return any(
            isinstance(part, ast.Attribute) and part.attr in names and isinstance(part.ctx, (ast.Store, ast.Del))
            for part in walk(module.tree)
        )

    def _is_wrapped(self, test: ast.FunctionDef) -> bool:
        """Return whether anything but pytest may call a test: decorators, its class, or another name."""
        own = class_of(test, self.module.tree)
        decorators = [*test.decorator_list, *(own.decorator_list if own is not None else ())]
        if not all(map(_is_mark, decorators)):
            return True
        if own is None:
            return self.module.bindings.get(test.name) is not test
        spelled = [one for one in walk(own) if isinstance(one, ast.Name) and one.id == test.name]
        twice = sum(isinstance(one, ast.FunctionDef) and one.name == test.name for one in own.body) > 1
        return bool(own.bases or own.keywords or spelled) or twice or own not in self.module.tree.body

    def _takes(self, function: AnyFunction, tests: Iterable[ast.FunctionDef]) -> bool:
        """Return whether a fixture gets a parameter of tests, by its name."""
        if not any("fixture" in dotted(_called(one)) for one in function.decorator_list):
            return False
        own = {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
        parameters = {one.arg for test in tests for one in (*test.args.args, *test.args.kwonlyargs)}
        return not own.isdisjoint(_parametrised(tests) & parameters)

    def _is_loaded_by_name(self) -> bool:
        """Return whether a test beside or above the module imports files that it lists."""
        folder = os.path.dirname(self.module.path)
        for path in self.files_with(IMPORTS_BY_NAME):
            if is_test(path) and os.path.commonpath([folder, path]) in (folder, os.path.dirname(path)):
                module = self.references.modules.read(path)
                if module is None or (any(map(_imports, walk(module.tree))) and any(map(_lists, walk(module.tree)))):
                    return True
        return False


def _reads_frames(module: Module, names: set[str]) -> bool:
    """Return whether code that a test imports may get local names of its callers, or has the name of a table."""
    for part in walk(module.tree):
        match part:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name) if name in _FRAMES:
                return True
            case ast.Attribute(attr=name) | ast.Constant(value=str() as name) if name in names:
                return True
    return False


def _imports(node: ast.AST) -> bool:
    """Return whether code imports a module by a name that it computes."""
    match node:
        case ast.Call(func=function, args=[name, *_]) if dotted(function).rpartition(".")[2] in IMPORTS_BY_NAME:
            return not isinstance(name, ast.Constant)
    return False


def _lists(node: ast.AST) -> bool:
    """Return whether code lists files or modules."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _LISTS
    return False


def _functions(module: Module) -> Iterator[AnyFunction]:
    return (one for one in walk(module.tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _is_only_for_file(module: Module, node: ast.Attribute) -> bool:
    """Return whether code only asks for the file of a module: `sys.modules[name].__file__`."""
    for part in walk(module.tree):
        match part:
            case ast.Attribute(value=ast.Subscript(value=modules), attr="__file__") if modules is node:
                return True
    return False


def _is_mark(decorator: ast.expr) -> bool:
    return dotted(_called(decorator)).startswith("pytest.mark.")


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _parametrised(tests: Iterable[ast.FunctionDef]) -> set[str]:
    """Return the parameters that tables give to tests."""
    result = set[str]()
    for test in tests:
        for decorator in test.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args:
                # Another decorator, or one that pytest refuses, has no names.
                with suppress(ValueError):
                    result.update(names_in(decorator.args[0]))
    return result

"""Settings that tests have as data: in tables of parameters, in fixtures, in classes and in other files of tests.

What tests do with data is rarely followed. Most set it on what a recipe returns. So code that does this is written and
proved, for each function of the project that a test uses. Tests that read attributes by names that they compute may
compare what the data says instead.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import yaml

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import is_literal
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.leading_code import FunctionFacts, facts_of, returns_value
from cgmigrate.linking.python.leading_results import statements_with
from cgmigrate.proof.flow.modules import Module, is_test
from cgmigrate.linking.python.pieces import AnyFunction, Unit
from cgmigrate.linking.python.references import Code, References
from cgmigrate.linking.python.rounds import Name
from cgmigrate.linking.python.test_reach import ReachSearch, around
from cgmigrate.linking.python.test_reads import OF_OBJECTS, key_of_data, reads_computed
from cgmigrate.proof.flow.world import SETTINGS
from cgmigrate.megatron.settings import DEPRECATED

_MOST_UNITS = 512


@dataclass(frozen=True, slots=True)
class Data:
    """Settings that a test has in one dictionary, call or list: their values by their names, in their order."""

    node: ast.expr
    module: Module
    settings: tuple[tuple[str, ast.expr], ...]

    @property
    def place(self) -> str:
        """The file and line."""
        return f"{self.module.path}:{self.node.lineno}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names for the values that are not known."""
        return tuple(f"value_{at}" for at, (_, value) in enumerate(self.settings) if not is_literal(value))

    @property
    def text(self) -> str:
        """The statements that set them on an object."""
        values = (ast.unparse(one) if is_literal(one) else f"value_{at}" for at, (_, one) in enumerate(self.settings))
        return "".join(f"    target.{name} = {value}\n" for (name, _), value in zip(self.settings, values, strict=True))


@dataclass(slots=True)
class Seen:
    """What data of tests shows: the changes that are not proved, each with the reason, and code to prove."""

    withheld: dict[Name, str] = field(default_factory=dict)
    units: dict[tuple[AnyFunction, str], Unit | None] = field(default_factory=dict)
    """The code, by the function that it calls and what it sets; None if it cannot be written."""


@dataclass(frozen=True, slots=True)
class DataSearch:
    """Finds data of tests.

    ``named`` returns the functions of the project with a name.
    """

    references: References
    reach: ReachSearch
    named: Callable[[str], Iterable[FunctionFacts]]

    def add(self, tests: Iterable[tuple[ast.ClassDef | AnyFunction, Module]], seen: Seen) -> None:
        """Add what the data of some tests shows; of a class, its methods and those of its bases are the tests."""
        for test, module in tests:
            pieces = self._pieces(test, module)
            own = None if isinstance(test, ast.ClassDef) else test
            every = [one for node, its_module in pieces if node is not own for one in data_in(node, its_module)]
            if every:
                self._add(pieces, every, seen)

    def _add(self, pieces: list[Code], every: list[Data], seen: Seen) -> None:
        functions = self._functions(pieces)
        if reason := _reason(pieces, every):
            for name in sorted(frozenset[Name]().union(*functions.values())):
                seen.withheld.setdefault(name, reason)
            return
        for function, changes in functions.items():
            for data in every:
                key = (function.node, data.text)
                if not data.settings or not changes or key in seen.units:
                    continue
                unit = seen.units[key] = self._set_on(function, data, len(seen.units))
                if unit is None:
                    reason = f"what a test does with `{function.name.lstrip('.')}` and {data.place} is not followed"
                    seen.withheld |= dict.fromkeys(changes - seen.withheld.keys(), reason)

    def _pieces(self, test: ast.ClassDef | AnyFunction, module: Module) -> list[Code]:
        """Return the code of tests that a test uses, also by the names of methods and fixtures of its file."""
        waiting: list[Code] = [(test, module)]
        if not isinstance(test, ast.ClassDef):
            waiting += ((one, module) for one in around(test, module))
        known: dict[ast.AST, Module] = {}
        while waiting:
            node, its_module = waiting.pop()
            if node in known or not is_test(its_module.path):
                continue
            known[node] = its_module
            uses = self.references.of(node, its_module)
            names = set(uses.names)
            waiting += uses.code
            waiting += ((one.node, its_module) for one in facts_of(its_module) if one.name in names)
            again = _bound_again(names, its_module)
            waiting += ((one, its_module) for one in statements_with(again, its_module))
        return list(known.items())

    def _functions(self, pieces: Iterable[Code]) -> dict[FunctionFacts, frozenset[Name]]:
        """Return the functions of the project that code of tests names and that return objects.

        Each has the changes that it leads to. Methods count only of classes that the code names as well.
        """
        named: dict[AnyFunction, FunctionFacts] = {}
        code, names = self._used(pieces)
        for module in dict.fromkeys(code.values()):
            named |= {one.node: one for one in facts_of(module) if one.node in code or one.inside in code}
        named |= {one.node: one for name in sorted(names) for one in self.named(name)}
        functions = [
            one
            for one in named.values()
            if one.node in code or (one.name in names and (one.inside is None or one.inside in code))
        ]
        return {one: self._changes(one) for one in functions if not is_test(one.path)}

    def _used(self, pieces: Iterable[Code]) -> tuple[dict[ast.AST, Module], set[str]]:
        """Return the code of the project that code of tests uses, also in tables of the project, and names."""
        code: dict[ast.AST, Module] = {}
        names = set[str]()
        waiting = list(pieces)
        while waiting:
            uses = self.references.of(*waiting.pop())
            names |= {name.removeprefix("=") for name in uses.names}
            new = {node: module for node, module in uses.code if not is_test(module.path) and node not in code}
            code |= new
            waiting += ((node, module) for node, module in new.items() if isinstance(node, ast.expr))
        return code, names

    def _changes(self, function: FunctionFacts) -> frozenset[Name]:
        module = self.references.modules.read(function.path)
        if module is None or not returns_value(function.node):
            return frozenset()
        return self.reach.of_function(function.node, module).changes

    def _set_on(self, function: FunctionFacts, data: Data, number: int) -> Unit | None:
        """Return code that calls a function and sets data on what it returns, in a module beside it.

        Returns None if such code cannot be written.
        """
        folder, name = os.path.split(function.path)
        stem = name.removesuffix(".py")
        owner = function.inside or function.node
        module = self.references.modules.read(function.path)
        is_at_top = module is not None and module.bindings.get(owner.name) is owner
        if not is_at_top or not stem.isidentifier() or number >= _MOST_UNITS:
            return None
        arguments = _required(function.node)
        text = _TEXT.format(
            module=stem,
            imported=owner.name,
            called=f"{owner.name}{function.name}" if function.inside else function.name,
            parameters=", ".join((*arguments, *data.parameters)),
            arguments=", ".join(arguments.values()),
            settings=data.text,
        )
        module = self.references.modules.add(os.path.join(folder, f"test_with_data_{number}.py"), text)
        node = module.tree.body[-1]
        assert isinstance(node, ast.FunctionDef)
        return Unit(f"{function.node.name}#1", module, node, shown_at=data.place)


_TEXT = """
from .{module} import {imported}
def test_with_data({parameters}):
    result = {called}({arguments})
    target = result.model if hasattr(result, "model") else result
{settings}    return result
"""


def _reason(pieces: Iterable[Code], every: Sequence[Data]) -> str:
    """Return why changes are withheld of which tests have data, empty if it is known what they do with it."""
    for node, module in pieces:
        place = f"{module.path}:{getattr(node, 'lineno', 1)}"
        if reads_computed(node):
            return f"the code at {place} may compare what {every[0].place} says"
        if any(not one.settings for one in every) and any(map(_sets_computed, walk(node))):
            return f"the code at {place} may set what {every[0].place} names"
    return ""


def using(files: Iterable[str], files_with: FilesWith) -> set[str]:
    """Return some files of tests, and those that may use them: they have their names, also through others.

    All files in the folder of a ``conftest.py``, and below it, may use its fixtures.
    """
    known, new = set[str](), set(files)
    while new:
        known |= new
        stems = {os.path.basename(one).removesuffix(".py") for one in new}
        shared = tuple(os.path.dirname(one) + "/" for one in new if os.path.basename(one) == "conftest.py")
        users = {*files_with(sorted(stems - {"__init__", "conftest"}))}
        if shared:
            users |= {one for one in files_with(["def"]) if one.startswith(shared)}
        new = {one for one in users if is_test(one)} - known
    return known


def classes_with_data(module: Module | None) -> Iterator[tuple[ast.ClassDef, Module]]:
    """Yield the classes of a module that have data of their own for the tests of their bases."""
    if module is None:
        return
    for one in module.tree.body:
        if isinstance(one, ast.ClassDef) and one.bases and any(data_in(one, module)):
            yield one, module


def data_in(node: ast.AST, module: Module) -> Iterator[Data]:
    """Yield what in code has a deprecated setting as a text or keyword: dictionaries, pairs, overrides and calls.

    A text alone has no settings: code may do anything with it.
    """
    known = set[int]()
    for part in walk(node):
        match part:
            case ast.Call(func=ast.Name(id=name), args=[_, key, *_]) if name in OF_OBJECTS:
                # It is evaluated.
                known.add(id(key))
            case ast.Constant(value=str() as text) if id(part) not in known and _name_in(text) in DEPRECATED:
                yield Data(part, module, ())
            case ast.expr():
                settings = tuple(_settings_in(part, module))
                if any(name in DEPRECATED for name, _ in settings):
                    known.update(id(one) for child in ast.iter_child_nodes(part) for one in (child, *_elements(child)))
                    yield Data(part, module, settings)


def _settings_in(node: ast.AST, module: Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the settings that the elements of a node say, with their values."""
    pairs: Iterable[tuple[str, ast.expr]] = ()
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = [(key_of_data(_constant(key, module)), value) for key, value in zip(keys, values, strict=True)]
        case ast.Call(keywords=keywords):
            pairs = [(one.arg or "", one.value) for one in keywords]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            pairs = [pair for one in elements for pair in (*_pair_in(one, module), *_override_in(one))]
    yield from ((name, value) for name, value in pairs if name in SETTINGS)


def _pair_in(node: ast.expr, module: Module) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Tuple(elts=[key, value]) | ast.List(elts=[key, value]):
            yield key_of_data(_constant(key, module)), value


def _override_in(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the setting of a text such as ``model.cuda_graph_scope=[attn]``."""
    match node:
        case ast.Constant(value=str() as text) if "=" in text and _name_in(text) in SETTINGS:
            try:
                yield _name_in(text), ast.parse(repr(yaml.safe_load(text.partition("=")[2])), mode="eval").body
            except (yaml.YAMLError, SyntaxError, ValueError, RecursionError):
                return


def _name_in(text: str) -> str:
    """Return the attribute that a text names, alone, at the end of a path, or in an override."""
    return text.partition("=")[0].rpartition(".")[2]


def _elements(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.Tuple, ast.List)):
        yield from node.elts


def _constant(node: ast.expr | None, module: Module) -> ast.expr | None:
    """Return what a name is bound to at the top of a module."""
    return bound if isinstance(node, ast.Name) and isinstance(bound := module.bindings.get(node.id), ast.expr) else node


def _sets_computed(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[*_, key, _]) if "setattr" in name:
            return not isinstance(key, ast.Constant)
        case ast.Call(func=ast.Name(id="replace") | ast.Attribute(attr="replace"), keywords=keywords):
            return any(one.arg is None for one in keywords)
    return False


def _bound_again(names: set[str], module: Module) -> set[str]:
    """Return the names of a module that it binds more than once."""
    return {name for name in names if name in module.bindings and module.bindings[name] is None}


def _required(node: AnyFunction) -> dict[str, str]:
    """Return the parameters of a function that have no default, and how each is passed on under its name."""
    positional = [*node.args.posonlyargs, *node.args.args]
    required = positional[: len(positional) - len(node.args.defaults)]
    if required and required[0].arg == "cls":
        del required[0]
    defaults = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    by_name = [one.arg for one, default in defaults if default is None]
    return {one.arg: one.arg for one in required} | {one: f"{one}={one}" for one in by_name}

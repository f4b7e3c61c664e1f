"""What a test of the project may use: the names in it, in its fixtures, and in the helpers of tests that it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.leading_code import returns_value, words_of
from cgmigrate.linking.python.modules import LOOKUPS, Import, Module, Modules, is_test
from cgmigrate.linking.python.pieces import AnyFunction

_FAKES = ("monkeypatch", "mock", "Mock", "patch", "Fake", "fake", "Dummy", "Stub")


@dataclass(frozen=True, slots=True)
class Reach:
    """The names that a test may use; ``is_known`` is false if it uses some that it computes."""

    words: frozenset[str]
    is_known: bool


@dataclass(slots=True)
class _Search:
    modules: Modules
    words: set[str] = field(default_factory=set)
    is_known: bool = True
    _seen: set[int] = field(default_factory=set)

    def add(self, node: ast.AST, module: Module, *, is_called: bool = False) -> None:
        """Add the names in code, and in what these are bound to in modules of tests."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        own = {*words_of(node), *_texts(node)}
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # The parameters of a test are fixtures.
            own |= {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
            is_called = is_called or returns_value(node)
        elif isinstance(node, ast.expr):
            is_called = True
        if is_called and any(map(_computes, ast.walk(node))):
            self.is_known = False
        self.words |= own
        for name in sorted(own):
            self._add_bound(name, module)

    def _add_bound(self, name: str, module: Module) -> None:
        match module.bindings.get(name):
            case Import(module=source, name=imported) if imported:
                self.words.add(imported)
                inner = self.modules.imported(source, module)
                if inner is not None and is_test(inner.path):
                    self._add_bound(imported, inner)
            case ast.FunctionDef() | ast.ClassDef() | ast.expr() as node:
                self.add(node, module)


def reach_of(scope: AnyFunction | None, module: Module, modules: Modules) -> Reach:
    """Return what a test may use; None is code at the top of its module.

    A helper gets what all tests of its module may use, and one of another module what any test may use.
    """
    search = _Search(modules)
    if scope is None or not scope.name.startswith("test"):
        search.add(module.tree, module)
        is_alone = module.path.rpartition("/")[2].startswith("test_")
        return Reach(frozenset(search.words), search.is_known and is_alone)
    search.add(scope, module, is_called=True)
    for statement in _around(scope, module):
        search.add(statement, module)
    return Reach(frozenset(search.words), search.is_known)


def _around(scope: AnyFunction, module: Module) -> Iterator[ast.stmt]:
    """Yield the fixtures that are used without their names: those of the class, and the automatic ones."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef) and any(one is scope for one in node.body):
            yield from (
                one
                for one in node.body
                if not (isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name.startswith("test"))
            )
        elif isinstance(node, ast.FunctionDef) and any("autouse" in ast.unparse(one) for one in node.decorator_list):
            yield node


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from (word for word in part.value.split(".") if word.isidentifier())


def _computes(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]):
            return not isinstance(name, ast.Constant)
        case ast.Call(func=function, args=[ast.Constant(), *_]) if dotted(function).rpartition(".")[2] in LOOKUPS:
            return False
        case ast.Call(func=function):
            return dotted(function).rpartition(".")[2] in LOOKUPS
    return False


def may_have_fakes(module: Module) -> bool:
    """Return whether tests of a module may give code an object that only has the attributes that code sets."""
    return any(word in module.text for word in _FAKES)

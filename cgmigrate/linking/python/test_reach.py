"""What code of the project may use: the changes that names, imports, fixtures and texts lead to."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.leading_code import FunctionFacts, returns_value
from cgmigrate.proof.flow.modules import Module, is_test
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.rounds import Name

_FAKES = ("monkeypatch", "mock", "Mock", "patch", "Fake", "fake", "Dummy", "Stub")
_HOOKS = frozenset(("setup_module", "setup_function", "setUpModule", "pytest_generate_tests", "pytest_configure"))
_Piece = tuple[ast.AST, Module] | str
"""Code and its module, or a name that any code may have."""
Lines = tuple[str, int, int]
"""A file, and the first and last line of code in it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The changes in code that a test may use; ``is_known`` is false if it uses code by names that it computes."""

    changes: frozenset[Name]
    is_known: bool


@dataclass(slots=True)
class _Reached:
    """What a piece of code leads to: changes as the bits of a number, and whether it uses code by computed names."""

    changes: int = 0
    computes: bool = False


@dataclass(frozen=True, slots=True)
class ReachSearch:
    """Finds the changes that code leads to. What each piece of code leads to is computed once.

    ``named`` returns the functions of the project with a name, those of classes with a dot. ``changes_in`` returns the
    changes in some lines.
    """

    references: References
    named: Callable[[str], Iterable[FunctionFacts]]
    changes_in: Callable[[Lines], Iterable[Name]]
    _reached: dict[object, _Reached] = field(default_factory=dict)
    _numbers: dict[Name, int] = field(default_factory=dict)

    def of(self, scope: AnyFunction | None, module: Module) -> Reach:
        """Return what a test may use; None is code at the top of its module.

        A helper gets what all tests of its module may use, and one of another module what any test may use.
        """
        if scope is not None and scope.name.startswith("test"):
            reach = self._from(scope, [(scope, module), *((one, module) for one in around(scope, module))])
            of_hooks = self._from(None, [(one, of) for of in self.references.conftests(module) for one in hooks(of)])
            return Reach(reach.changes | of_hooks.changes, reach.is_known)
        reach = self._from(None, [(module.tree, module)])
        is_known = reach.is_known and module.path.rpartition("/")[2].startswith("test_")
        return Reach(reach.changes, is_known)

    def of_module(self, module: Module) -> Reach:
        """Return what any test of a module may use, also by fixtures, hooks and classes of other files of tests."""
        every = [module, *self.references.conftests(module), *self._deriving(module)]
        return self._from(None, [(one.tree, one) for one in dict.fromkeys(every)])

    def _deriving(self, module: Module) -> Iterator[Module]:
        """Yield the modules of tests that may have classes derived from those of a module."""
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                yield from self.references.modules.tests_with(node.name)

    def of_function(self, scope: AnyFunction, module: Module) -> Reach:
        """Return what a function may use that is no test."""
        return self._from(scope, [(scope, module)])

    def _from(self, called: AnyFunction | None, pieces: Sequence[_Piece]) -> Reach:
        changes, is_known = 0, True
        for piece in pieces:
            reached = self._of_piece(piece)
            changes |= reached.changes
            is_known = is_known and not reached.computes
            if not isinstance(piece, str) and piece[0] is called and is_test(piece[1].path):
                is_known = is_known and not self.references.of(*piece).computes
        return Reach(frozenset(name for name, number in self._numbers.items() if changes >> number & 1), is_known)

    def _of_piece(self, first: _Piece) -> _Reached:
        """Return what a piece leads to. Pieces that lead to each other lead to the same (Tarjan's algorithm)."""
        if (known := self._reached.get(_key(first))) is not None:
            return known
        order: dict[object, int] = {}
        low: dict[object, int] = {}
        waiting: list[object] = []
        open_pieces: list[tuple[object, Iterator[_Piece], _Reached]] = []

        def enter(piece: _Piece) -> None:
            key = _key(piece)
            order[key] = low[key] = len(order)
            waiting.append(key)
            open_pieces.append((key, iter(self._used(piece)), self._own(piece)))

        enter(first)
        while open_pieces:
            key, used, reached = open_pieces[-1]
            for piece in used:
                other = _key(piece)
                if (known := self._reached.get(other)) is not None:
                    _add(reached, known)
                elif other in order:
                    low[key] = min(low[key], order[other])
                else:
                    enter(piece)
                    break
            else:
                open_pieces.pop()
                if low[key] == order[key]:
                    while (member := waiting.pop()) is not key:
                        self._reached[member] = reached
                    self._reached[key] = reached
                if open_pieces:
                    above, _, of_above = open_pieces[-1]
                    low[above] = min(low[above], low[key])
                    _add(of_above, reached)
        return self._reached[_key(first)]

    def _own(self, piece: _Piece) -> _Reached:
        """Return what a piece shows itself."""
        reached = _Reached()
        if isinstance(piece, str):
            return reached
        node, module = piece
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in self.changes_in((module.path, node.lineno, node.end_lineno or node.lineno)):
                reached.changes |= 1 << self._numbers.setdefault(name, len(self._numbers))
        reached.computes = self.references.of(node, module).computes and _is_executed(node, module)
        return reached

    def _used(self, piece: _Piece) -> Iterator[_Piece]:
        """Yield what a piece uses."""
        if isinstance(piece, str):
            for one in self.named(piece.removeprefix("=")):
                if (module := self.references.modules.read(one.path)) is not None:
                    yield one.node, module
            return
        uses = self.references.of(*piece)
        yield from uses.code
        yield from uses.names


def _key(piece: _Piece) -> object:
    return piece if isinstance(piece, str) else piece[0]


def _add(reached: _Reached, more: _Reached) -> None:
    reached.changes |= more.changes
    reached.computes = reached.computes or more.computes


def _is_executed(node: ast.AST, module: Module) -> bool:
    """Return whether names that code of tests computes count: it is no helper that only does something."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return is_test(module.path) and returns_value(node)
    return is_test(module.path) and isinstance(node, ast.expr)


def around(scope: AnyFunction, module: Module) -> Iterator[ast.AST]:
    """Yield what is used without its name: the fixtures of the class and of its bases, and the automatic ones."""
    for node in _classes_of(module).get(scope, ()):
        yield from (*node.bases, *node.decorator_list)
        yield from (
            one
            for one in node.body
            if not (isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name.startswith("test"))
        )
    yield from hooks(module)


@lru_cache(maxsize=1024)
def _classes_of(module: Module) -> Mapping[ast.AST, Sequence[ast.ClassDef]]:
    """Return the classes that have the functions of a module in their bodies."""
    result: dict[ast.AST, list[ast.ClassDef]] = {}
    for node in walk(module.tree):
        if isinstance(node, ast.ClassDef):
            for one in node.body:
                result.setdefault(one, []).append(node)
    return result


@lru_cache(maxsize=1024)
def hooks(module: Module) -> Sequence[ast.AST]:
    """Return the functions of a module that give tests something which do not name them."""
    result = []
    for node in walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            marks = " ".join(map(ast.unparse, node.decorator_list))
            if node.name in _HOOKS or "autouse" in marks or ("fixture" in marks and "name=" in marks):
                result.append(node)
    return result


def may_have_fakes(module: Module) -> bool:
    """Return whether tests of a module may give code an object that only has the attributes that code sets."""
    return any(word in module.text for word in _FAKES)

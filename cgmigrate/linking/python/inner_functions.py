"""Functions that other functions define, and lambdas: other code may call them, wherever it gets them from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Inner:
    """A function in another one, or a lambda as a function of its own.

    ``around`` are the functions around it, from the outermost to that which defines it; none at the top of a module.
    """

    name: str
    node: _Function
    around: tuple[_Function, ...]
    is_kept: bool
    """Whether code may get it, rather than only call it where it is defined."""


@lru_cache(maxsize=4096)
def inner_functions(name: str, outer: _Function) -> tuple[Inner, ...]:
    """Return the functions in a function, at any depth; their names begin with its own."""
    return tuple(_Search(name).below(outer, (outer,)))


@lru_cache(maxsize=1024)
def lambdas_at_top(tree: ast.Module) -> tuple[Inner, ...]:
    """Return the lambdas outside of all functions, in default arguments and decorators too."""
    return tuple(_Search("(top)").lambdas(tree))


@dataclass(slots=True)
class _Search:
    """Names what it finds by numbers, from the first on."""

    prefix: str
    seen: dict[str, int] = field(default_factory=dict)

    def below(self, outer: _Function, around: tuple[_Function, ...]) -> Iterator[Inner]:
        """Yield the functions in a function."""
        called = _only_called(outer)
        for node, in_class in _defined_in(outer):
            if isinstance(node, ast.Lambda):
                yield from self._lambda(node, around)
                continue
            is_kept = in_class or bool(node.decorator_list) or node.name not in called
            yield Inner(self._named(node.name), node, around, is_kept)
            yield from self.below(node, (*around, node))

    def lambdas(self, tree: ast.Module) -> Iterator[Inner]:
        """Yield the lambdas outside of all functions."""
        for node in _outside_functions(tree):
            if isinstance(node, ast.Lambda):
                yield from self._lambda(node, ())

    def _lambda(self, node: ast.Lambda, around: tuple[_Function, ...]) -> Iterator[Inner]:
        function = as_function(node)
        yield Inner(self._named("lambda"), function, around, is_kept=True)
        yield from self.below(function, (*around, function))

    def _named(self, name: str) -> str:
        self.seen[name] = self.seen.get(name, 0) + 1
        return f"{self.prefix}:{name}#{self.seen[name]}"


@lru_cache(maxsize=65536)
def as_function(node: ast.Lambda) -> ast.FunctionDef:
    """Return a function that does what a lambda does."""
    made = empty_function()
    made.name, made.args = "lambda", node.args
    made.body = [ast.copy_location(ast.Return(node.body), node.body)]
    return ast.copy_location(made, node)


def empty_function() -> ast.FunctionDef:
    """Return a function without parameters and statements."""
    made = ast.parse("def top(): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.body = []
    return made


def _defined_in(outer: _Function) -> Iterator[tuple[_Function | ast.Lambda, bool]]:
    """Yield the functions that a function itself defines, and whether each is a method of a class."""
    waiting: list[tuple[ast.AST, bool]] = [(one, False) for one in reversed(outer.body)]
    while waiting:
        node, in_class = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, in_class
            below: list[ast.AST] = [*node.decorator_list, node.args]
        elif isinstance(node, ast.Lambda):
            yield node, in_class
            below = [node.args]
        else:
            below = [*ast.iter_child_nodes(node)]
        in_class = in_class or isinstance(node, ast.ClassDef)
        waiting += ((one, in_class) for one in reversed(below))


def _outside_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the code that is executed outside of all functions, and lambdas, without what is in these."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += [node.args, *reversed(node.decorator_list)]
        elif isinstance(node, ast.Lambda):
            waiting.append(node.args)
        else:
            waiting += reversed([*ast.iter_child_nodes(node)])


def _only_called(outer: _Function) -> frozenset[str]:
    """Return the names of which a function does nothing but call them, in code that is in no inner function."""
    inside = {id(part) for node, _ in _defined_in(outer) for part in walk(node)}
    called = {id(part.func) for part in walk(outer) if isinstance(part, ast.Call) and id(part) not in inside}
    loads = [part for part in walk(outer) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    return frozenset(part.id for part in loads) - {part.id for part in loads if id(part) not in called}

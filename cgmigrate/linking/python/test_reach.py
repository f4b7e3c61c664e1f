"""What a test of the project may use: functions, as far as names, imports, fixtures and texts lead to them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from cgmigrate.linking.python.leading_code import FunctionFacts, returns_value
from cgmigrate.linking.python.modules import Module, is_test
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References

_FAKES = ("monkeypatch", "mock", "Mock", "patch", "Fake", "fake", "Dummy", "Stub")
_Code = tuple[ast.AST, Module, bool]
"""Code, its module, and whether it is surely executed."""
Lines = tuple[str, int, int]
"""A file, and the first and last line of code in it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The code that a test may use; ``is_known`` is false if it uses some by names that it computes."""

    code: frozenset[Lines]
    is_known: bool


@dataclass(frozen=True, slots=True)
class ReachSearch:
    """Finds what tests use. ``named`` returns the functions of the project with a name, those of classes with a dot."""

    references: References
    named: Callable[[str], Iterable[FunctionFacts]]

    def of(self, scope: AnyFunction | None, module: Module) -> Reach:
        """Return what a test may use; None is code at the top of its module.

        A helper gets what all tests of its module may use, and one of another module what any test may use.
        """
        if scope is not None and scope.name.startswith("test"):
            return self._from([(scope, module, True), *((one, module, False) for one in _around(scope, module))])
        reach = self._from([(module.tree, module, False)])
        return replace(reach, is_known=reach.is_known and module.path.rpartition("/")[2].startswith("test_"))

    def of_function(self, scope: AnyFunction, module: Module) -> Reach:
        """Return what a function may use that is no test."""
        return self._from([(scope, module, True)])

    def _from(self, waiting: list[_Code]) -> Reach:
        is_known, code, seen = True, set[Lines](), set[object]()
        while waiting and is_known:
            one = waiting.pop()
            if one[0] in seen:
                continue
            seen.add(one[0])
            if isinstance(one[0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                code.add((one[1].path, one[0].lineno, one[0].end_lineno or one[0].lineno))
            uses = self.references.of(one[0], one[1])
            is_known = not (uses.computes and _is_executed(*one))
            waiting += ((node, module, False) for node, module in uses.code)
            for name in uses.names:
                if name not in seen:
                    seen.add(name)
                    waiting += self._named(name)
        return Reach(frozenset(code), is_known)

    def _named(self, name: str) -> Iterator[_Code]:
        for one in self.named(name.removeprefix("=")):
            if (module := self.references.modules.read(one.path)) is not None:
                yield one.node, module, False


def _is_executed(node: ast.AST, module: Module, is_called: bool) -> bool:
    """Return whether names that code of tests computes count: it is no helper that only does something."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        is_called = is_called or returns_value(node)
    return is_test(module.path) and (is_called or isinstance(node, ast.expr))


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


def may_have_fakes(module: Module) -> bool:
    """Return whether tests of a module may give code an object that only has the attributes that code sets."""
    return any(word in module.text for word in _FAKES)

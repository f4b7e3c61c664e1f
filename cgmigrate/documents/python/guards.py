"""Conditions that call a function: it may test which release is installed, and the branches are written for two."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OF_VALUES = frozenset(
    (
        "get",
        "startswith",
        "endswith",
        "keys",
        "items",
        "values",
        "lower",
        "upper",
        "strip",
        "split",
        "exists",
        "is_file",
    )
)
"""Methods of plain values, which know nothing of releases."""


@dataclass(slots=True)
class Guards:
    """Finds such conditions; what one list of statements holds is read once."""

    _suites: dict[int, tuple[dict[int, int], list[tuple[int, ast.Call]]]] = field(default_factory=dict)

    def above(self, node: ast.AST, ancestors: Iterator[ast.AST]) -> str:
        """Why a condition around a node, or one that leaves the function before it, may test the release."""
        for above in ancestors:
            test = above.test if isinstance(above, (ast.If, ast.While, ast.IfExp)) else None
            call = _asking_call(test) if test is not None and test is not node else None
            if call := call or self._earlier(node, above):
                shown = ast.unparse(call.func)[:60]
                return f"it depends on `{shown}(...)` (line {call.lineno}), which may test the installed release"
            node = above
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
        return ""

    def _earlier(self, node: ast.AST, above: ast.AST) -> ast.Call | None:
        """``if supports(config): ...; return`` before a statement: the statement is the other branch."""
        for suite in (getattr(above, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(suite, list):
                continue
            if id(suite) not in self._suites:
                self._suites[id(suite)] = _read(suite)
            places, leaving = self._suites[id(suite)]
            if id(node) in places and leaving and leaving[0][0] < places[id(node)]:
                return leaving[0][1]
        return None


def _read(suite: list[ast.stmt]) -> tuple[dict[int, int], list[tuple[int, ast.Call]]]:
    """Where each statement of a suite is, and which of them leave it under a condition that calls a function."""
    places = {id(statement): at for at, statement in enumerate(suite)}
    leaving = [
        (at, call)
        for at, statement in enumerate(suite)
        if isinstance(statement, ast.If)
        and isinstance(statement.body[-1], _LEAVES)
        and (call := _asking_call(statement.test))
    ]
    return places, leaving


def _asking_call(test: ast.expr) -> ast.Call | None:
    """The call in a condition that is neither a builtin's nor a method of plain values."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            builtin = isinstance(node.func, ast.Name) and hasattr(builtins, name)
            if not builtin and name not in _OF_VALUES:
                return node
    return None

"""Strings that people read: docstrings, messages of errors, what code prints or logs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from cgmigrate.documents.python.source import dotted

_OUTPUT_FUNCTIONS = frozenset(
    (
        *("print", "print_rank_0", "warn", "warning", "warn_once", "warning_once"),
        *("info", "debug", "error", "exception", "log"),
    )
)


def is_for_people(ancestors: Iterable[ast.AST]) -> bool:
    """Whether a string is a statement of its own, or part of one that raises, prints or logs.

    ``ancestors`` are the nodes around it, the nearest first.
    """
    for number, around in enumerate(ancestors):
        if isinstance(around, ast.stmt):
            return isinstance(around, (ast.Raise, ast.Assert)) or (number == 0 and isinstance(around, ast.Expr))
        if isinstance(around, ast.Call) and is_output(around):
            return True
    return False


def is_output(call: ast.Call) -> bool:
    """Return whether a call prints or logs, or makes an error or a warning."""
    last = dotted(call.func).rpartition(".")[2]
    return last in _OUTPUT_FUNCTIONS or last.endswith(("Error", "Warning"))

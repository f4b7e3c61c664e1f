"""Tests of the deprecation itself: what they give a deprecated setting is what they test, so it stays."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.sites import TESTS_OLD
from cgmigrate.text.remembered import remembered

_ABOUT_OLD = re.compile(r"deprecat|legacy|backwards?[ _-]?compat|compatibility", re.IGNORECASE)
_WARNS = ("pytest.warns", "pytest.deprecated_call")


def deprecation_test_around(node: ast.AST, source: PythonSource) -> str:
    """Return why the test around a node is about deprecated settings, empty if there is no such test."""
    for above in source.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)) and above.name.startswith("test"):
            reason = reason_of(above)
            return f"`{above.name}` {TESTS_OLD} ({reason})" if reason else ""
    return ""


@lru_cache(maxsize=1024)
def reason_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return how a test shows that it is about deprecated settings, empty if it does not."""
    if _ABOUT_OLD.search(function.name):
        return "its name is about a deprecation"
    if _ABOUT_OLD.search(ast.get_docstring(function) or ""):
        return "its docstring is about a deprecation"
    for part in walk(function):
        match part:
            case ast.Call(func=called) if dotted(called) in _WARNS:
                return f"it expects a warning on line {part.lineno}"
            case ast.Compare(left=ast.Constant(value=str() as text)) if "deprecat" in text:
                return f"it looks for a message about a deprecation on line {part.lineno}"
            case ast.keyword(arg="match", value=ast.Constant(value=str() as text)) if _ABOUT_OLD.search(text):
                return f"it expects a message about a deprecation on line {part.lineno}"
    return ""


# --- expected errors ------------------------------------------------------------------------------

_EXPECTING = ("raises", "assertRaises", "assertRaisesRegex")


def expects_error(source: PythonSource, node: ast.AST) -> bool:
    """Return whether the function around a node has a `with pytest.raises(...)`, or one of unittest's."""
    function = source.function_of(node) if "aises" in source.text else None
    return function is not None and _is_expecting(source, function)


@remembered
def _is_expecting(_source: PythonSource, function: ast.AST) -> bool:
    return any(map(_expects, walk(function)))


def _expects(node: ast.AST) -> bool:
    if not isinstance(node, ast.With | ast.AsyncWith):
        return False
    calls = (item.context_expr for item in node.items)
    return any(isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _EXPECTING for call in calls)

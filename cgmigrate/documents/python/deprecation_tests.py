"""Tests of the deprecation itself: what they give a deprecated setting is what they test, so it stays."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
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


# --- code for both names --------------------------------------------------------------------------

_ASKS = ("getattr", "hasattr", "setattr")


def asks_for_both(node: ast.AST, source: PythonSource) -> bool:
    """Return whether a use of an old name is one that is tolerant of its absence, beside one of the new name."""
    read = _name_and_object(node, source.parent(node))
    if read is None or _fails_without_value(node, source):
        return False
    name, owner = read
    setting = source.catalogue.get(name)
    around = source.function_of(node) or source.tree
    if setting is None or not setting.replaced_by:
        return False
    others = list(_names_read(around, ast.dump(owner)))
    is_checked = any(how == "hasattr" and other == name for how, other in others)
    is_checked = is_checked or _is_without(setting.replaced_by, ast.dump(owner), node, source)
    return (is_checked or _has_default(source.parent(node))) and any(
        other == setting.replaced_by[0] for _, other in others
    )


def _is_without(newer: Sequence[str], owner: str, node: ast.AST, source: PythonSource) -> bool:
    """Return whether code runs only where `hasattr` has shown that the object has no newer name."""
    below = node
    for above in source.ancestors(node):
        if isinstance(above, (ast.If, ast.IfExp)) and not isinstance(above.test, ast.UnaryOp):
            branch = above.orelse if isinstance(above.orelse, list) else [above.orelse]
            names = (name for how, name in _names_read(above.test, owner) if how == "hasattr")
            if below in branch and any(name in newer for name in names):
                return True
        below = above
    return False


def _name_and_object(node: ast.AST, above: ast.AST | None) -> tuple[str, ast.expr] | None:
    """Return the name that code asks for, and the object: ``x.name`` or ``getattr(x, "name", …)``."""
    match node, above:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr=name)]), _:
            return name, owner
        case ast.Attribute(value=owner, attr=name), _:
            return name, owner
        case ast.Constant(value=str() as name), ast.Call(func=ast.Name(id=how), args=[owner, second, *_]):
            return (name, owner) if how in _ASKS and second is node else None
    return None


def _names_read(around: ast.AST, owner: str) -> Iterator[tuple[str, str]]:
    """Yield each name that code asks an object for, and how: a function such as ``hasattr``, empty for an attribute."""
    for part in walk(around):
        match part:
            case ast.Attribute(value=value, attr=name) if ast.dump(value) == owner:
                yield "", name
            case ast.Call(func=ast.Name(id=how), args=[value, ast.Constant(value=str() as name), *_]):
                if how in _ASKS and ast.dump(value) == owner:
                    yield how, name


def _has_default(call: ast.AST | None) -> bool:
    return isinstance(call, ast.Call) and len(call.args) > 2 and getattr(call.func, "id", "") == "getattr"


def _fails_without_value(node: ast.AST, source: PythonSource) -> bool:
    """Return whether the code around fails if the value is None, as that of an old scope is: `in`, a subscript."""
    result = source.parent(node) if isinstance(node, ast.Constant) else node
    if result is None:
        return False
    match source.parent(result):
        case ast.Compare(ops=ops):
            return any(isinstance(op, (ast.In, ast.NotIn)) for op in ops)
        case ast.Subscript() | ast.Attribute() | ast.For() | ast.comprehension() | ast.Starred():
            return True
    return False

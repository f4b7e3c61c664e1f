"""Functions whose code shows all that they do: they set attributes, decide what, log, and call nothing else.

One that names no setting needs no evaluation where nothing uses its result. What calls other code does: that may give
an object another class, or keep it in a list.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk

_PLAIN = (
    *(ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.Return, ast.Raise, ast.Assert, ast.Pass),
    *(ast.Constant, ast.Name, ast.Attribute, ast.List, ast.Tuple, ast.Dict, ast.Subscript, ast.Slice, ast.IfExp),
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr, ast.FormattedValue, ast.keyword, ast.Call),
    *(ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context),
)
_ASKS = frozenset(("isinstance", "hasattr", "getattr", "len", "str", "int", "float", "bool", "min", "max", "print"))
"""Builtins that leave what they get as it is."""
_LOGS = frozenset(("logger", "logging", "log", "warnings"))
_SAYS = frozenset(("debug", "info", "warning", "warn", "error", "exception", "critical"))
"""Names of loggers, and their methods."""


@lru_cache(maxsize=4096)
def is_plain_code(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a function only sets attributes, and calls nothing but what asks, logs, or makes an object."""
    if isinstance(node, ast.Lambda) or node.decorator_list:
        return False
    return all(_is_plain(part) for statement in node.body for part in walk(statement))


def _is_plain(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) if name.startswith("__"):
            return False
        case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Name(ctx=ast.Del()) | ast.Attribute(ctx=ast.Del()):
            return False
        case ast.Call():
            return _is_harmless(node)
    return isinstance(node, _PLAIN)


def _is_harmless(call: ast.Call) -> bool:
    """Return whether a call asks or logs, or makes an object of nothing but literals."""
    match call.func:
        case ast.Name(id=name) if name in _ASKS:
            return True
        case ast.Name(id=name) if name[:1].isupper():
            values = (*call.args, *(one.value for one in call.keywords))
            return not any(isinstance(part, ast.Name) for value in values for part in walk(value))
        case ast.Attribute(value=ast.Name(id=name), attr=method):
            return name in _LOGS and method in _SAYS
    return False

"""Functions that expect an error: a test that a configuration is refused writes it on purpose."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.text.remembered import remembered

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

"""Functions that expect an error: a test that a configuration is refused writes it on purpose."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource, dotted

_EXPECTING = ("raises", "assertRaises", "assertRaisesRegex")


@dataclass(slots=True)
class ExpectedErrors:
    """Decides whether code around a node expects an error; each function is read once."""

    source: PythonSource
    _expecting: dict[int, bool] = field(default_factory=dict)

    def around(self, node: ast.AST) -> bool:
        """Whether the function around a node has a `with pytest.raises(...)`, or one of unittest's."""
        if "aises" not in self.source.text:
            return False
        function = self.source.function_of(node)
        if function is None:
            return False
        if id(function) not in self._expecting:
            self._expecting[id(function)] = any(map(_expects, walk(function)))
        return self._expecting[id(function)]


def _expects(node: ast.AST) -> bool:
    if not isinstance(node, ast.With | ast.AsyncWith):
        return False
    calls = (item.context_expr for item in node.items)
    return any(isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _EXPECTING for call in calls)

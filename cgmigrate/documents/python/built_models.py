"""Configurations of models that are already built, for instance changed for inference; they are not validated again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.site_nodes import SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted

_MODEL = re.compile(r"(?:.*[._])?model(?:_chunk|s?\[\d+\])?\.config")
_MODEL_FUNCTIONS = ("get_model_config", "unwrap_model")


@dataclass(slots=True)
class BuiltModels:
    """Decides whether an object is such a configuration; the assignments of a function are read once."""

    source: PythonSource
    _assigned: dict[int, dict[str, list[tuple[int, ast.expr]]]] = field(default_factory=dict)

    def owns(self, place: SiteNodes) -> bool:
        """Whether the settings of a place are those of a model that is built."""
        node = place.items[0].node
        if _is_config_of_model(place.object):
            return True
        first, line = place.object.partition(".")[0], getattr(node, "lineno", 0)
        function = next((above for above in self.source.ancestors(node) if _is_function(above)), None)
        if function is None or first != place.object:
            return False
        if id(function) not in self._assigned:
            assigned = self._assigned[id(function)] = {}
            for name, at, value in _assignments(function):
                assigned.setdefault(name, []).append((at, value))
        before = [value for at, value in self._assigned[id(function)].get(first, ()) if at < line]
        return bool(before) and _returns_config(before[-1])


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def _assignments(function: ast.AST) -> Iterator[tuple[str, int, ast.expr]]:
    nodes = [node for node in walk(function) if isinstance(node, ast.Assign)]
    for node in sorted(nodes, key=lambda node: node.lineno):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.lineno, node.value


def _returns_config(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return dotted(value.func).rpartition(".")[2] == "get_model_config"
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Call):
        return value.attr == "config" and dotted(value.value.func).rpartition(".")[2] in _MODEL_FUNCTIONS
    return _is_config_of_model(dotted(value))


def _is_config_of_model(path: str) -> bool:
    return bool(_MODEL.fullmatch(path))

"""Configurations of models that are already built, for instance changed for inference; they are not validated again."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.site_nodes import SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.text.remembered import remembered

_MODEL = re.compile(r"(?:.*[._])?model(?:_chunk|s?\[\d+\])?\.config")
_MODEL_FUNCTIONS = ("get_model_config", "unwrap_model")


def is_of_built_model(source: PythonSource, place: SiteNodes) -> bool:
    """Return whether the settings of a place are those of a model that is built."""
    node = place.items[0].node
    if _is_config_of_model(place.object):
        return True
    first, line = place.object.partition(".")[0], getattr(node, "lineno", 0)
    function = source.function_of(node)
    if function is None or first != place.object:
        return False
    before = [value for at, value in _assignments(source, function).get(first, ()) if at < line]
    return bool(before) and _returns_config(before[-1])


@remembered
def _assignments(_source: PythonSource, function: ast.AST) -> Mapping[str, Sequence[tuple[int, ast.expr]]]:
    """Return what a function assigns to each name, with the lines."""
    assigned: defaultdict[str, list[tuple[int, ast.expr]]] = defaultdict(list)
    nodes = [node for node in walk(function) if isinstance(node, ast.Assign)]
    for node in sorted(nodes, key=lambda node: node.lineno):
        for target in node.targets:
            if isinstance(target, ast.Name):
                assigned[target.id].append((node.lineno, node.value))
    return assigned


def _returns_config(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return dotted(value.func).rpartition(".")[2] == "get_model_config"
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Call):
        return value.attr == "config" and dotted(value.value.func).rpartition(".")[2] in _MODEL_FUNCTIONS
    return _is_config_of_model(dotted(value))


def _is_config_of_model(path: str) -> bool:
    return bool(_MODEL.fullmatch(path))

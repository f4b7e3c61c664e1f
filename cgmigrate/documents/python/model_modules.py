"""The configuration of a module of a model: megatron-core has built it, so that the old scope is None since 0.18."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.source import PythonSource, dotted

_LIBRARIES = "megatron.core."
_OTHERS = ("Config", "Provider", "Container", "Mixin")
_MOST_BASES = 8


def is_config_of_module(node: ast.expr, source: PythonSource, names: Names) -> bool:
    """Return whether an expression is ``self.config`` in a class that derives from a module of megatron-core."""
    if dotted(node) != "self.config":
        return False
    around = next((above for above in source.ancestors(node) if isinstance(above, ast.ClassDef)), None)
    return around is not None and _is_module(around, source, names, _MOST_BASES)


def _is_module(node: ast.ClassDef, source: PythonSource, names: Names, depth: int) -> bool:
    return depth > 0 and any(_is_base(dotted(base), source, names, depth) for base in node.bases)


def _is_base(name: str, source: PythonSource, names: Names, depth: int) -> bool:
    if full := names.imported(name):
        return full.startswith(_LIBRARIES) and not full.endswith(_OTHERS)
    own = [one for one in source.tree.body if isinstance(one, ast.ClassDef) and one.name == name]
    return len(own) == 1 and _is_module(own[0], source, names, depth - 1)

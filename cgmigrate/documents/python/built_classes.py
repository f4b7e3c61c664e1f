"""Classes of configurations that megatron-core validates when it makes them: then both forms of settings become one."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.definitions import Definitions
from cgmigrate.documents.python.source import dotted

_MAX_BASES = 8
_CONSTRUCTION = frozenset(("__init__", "__new__", "__post_init__", "__setattr__"))


def is_built_by(name: str, definitions: Definitions, depth: int = _MAX_BASES) -> bool:
    """Return whether a name is megatron-core's TransformerConfig, or a class that is derived from it and made like it.

    A class that defers its validation, as those of Megatron-Bridge do, is not: its objects are changed and built later.
    """
    full = definitions.module.names.imported(name)
    if full.startswith("megatron.core."):
        return full.endswith("TransformerConfig")
    definition = definitions.of(name) if depth else None
    if definition is None or not isinstance(definition.node, ast.ClassDef) or not _is_plain(definition.node):
        return False
    inner = Definitions(definition.module, definition.examined)
    return all(is_built_by(dotted(base), inner, depth - 1) for base in definition.node.bases)


def _is_plain(node: ast.ClassDef) -> bool:
    """Return whether a class has bases and makes its objects as they do."""
    defined = {one.name for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    decorators = {dotted(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list}
    made = any(word.arg == "init" for one in node.decorator_list if isinstance(one, ast.Call) for word in one.keywords)
    plain = not defined & _CONSTRUCTION and decorators <= {"dataclass", "dataclasses.dataclass"} and not made
    return bool(node.bases) and not node.keywords and plain

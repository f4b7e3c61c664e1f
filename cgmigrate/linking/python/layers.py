"""Classes of layers. Their configuration was validated, so that both forms of the settings have become one.

A release of megatron-core rewrites the settings when a configuration is built. A layer gets it after that: what it
reads is the same before and after a migration that captures the same graphs.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.proof.flow.modules import Import, Module, Modules
from cgmigrate.megatron.settings import DEPRECATED, FIELDS

_LIBRARIES = ("torch.nn.", "megatron.core.", "transformer_engine.")
_CONFIGURATIONS = ("Config", "Provider", "Container")


def is_layer(node: ast.ClassDef, module: Module, modules: Modules, depth: int = 8) -> bool:
    """Return whether a class derives from a module of torch, megatron-core or Transformer Engine."""
    return depth > 0 and any(_is_layer(dotted(base), module, modules, depth) for base in node.bases)


@lru_cache(maxsize=16384)
def copies_built(node: ast.FunctionDef | ast.AsyncFunctionDef, module: Module, modules: Modules) -> bool:
    """Return whether a function copies settings into a configuration that it builds from megatron-core's own class.

    It does so for a part of a model, such as its vision tower, when the model is built: it gets what was validated.
    """
    made = {
        target.id
        for part in walk(node)
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call)
        for target in part.targets
        if isinstance(target, ast.Name) and _is_built(dotted(part.value.func), module, modules)
    }
    uses = [part for part in walk(node) if isinstance(part, ast.Attribute) and part.attr in DEPRECATED]
    copies = [part for part in walk(node) if isinstance(part, ast.Assign) and _is_copy(part, made)]
    copied = {id(one) for part in copies for one in (*part.targets, part.value)}
    return bool(copies) and all(id(one) in copied for one in uses)


def _is_copy(node: ast.Assign, made: set[str]) -> bool:
    match node:
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Name(id=target), attr=name)],
            value=ast.Attribute(value=ast.Name(id=source), attr=other),
        ):
            return name == other and name in FIELDS and target in made and source not in made
    return False


def _is_built(name: str, module: Module, modules: Modules, depth: int = 8) -> bool:
    """Return whether a class derives from megatron-core's configurations, which are validated when they are made."""
    first, _, rest = name.partition(".")
    match module.bindings.get(first):
        case Import(module=source, name=imported):
            full = ".".join(filter(None, (source, imported, rest)))
            if full.startswith("megatron.core.") and full.endswith("TransformerConfig"):
                return True
            inner = modules.imported(source, module) if imported and depth else None
            return inner is not None and _is_built(imported, inner, modules, depth - 1)
        case ast.ClassDef(bases=bases, body=body) if not rest and depth and not any(map(_constructs, body)):
            return any(_is_built(dotted(base), module, modules, depth - 1) for base in bases)
    return False


def _constructs(node: ast.stmt) -> bool:
    """Return whether a statement of a class defines how its objects are made: they may be validated later, or never."""
    return isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__new__", "__post_init__")


def _is_layer(name: str, module: Module, modules: Modules, depth: int) -> bool:
    first, _, rest = name.partition(".")
    match module.bindings.get(first):
        case Import(module=source, name=imported):
            full = ".".join(filter(None, (source, imported, rest)))
            if full.startswith(_LIBRARIES):
                return not full.endswith(_CONFIGURATIONS)
            inner = modules.imported(source, module)
            return inner is not None and bool(imported) and _is_layer(imported, inner, modules, depth - 1)
        case ast.ClassDef() as node if not rest:
            return is_layer(node, module, modules, depth - 1)
    return False

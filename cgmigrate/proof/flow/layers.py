"""Classes of layers, which get validated configurations, and modules that are written for several releases.

A release of megatron-core rewrites the settings when a configuration is built. A layer gets it after that: what it
reads is the same before and after a migration that captures the same graphs.
"""

from __future__ import annotations

import ast

from cgmigrate.documents.python.source import dotted
from cgmigrate.proof.flow.modules import Import, Module, Modules
from cgmigrate.proof.flow.world import is_enumeration

_LIBRARIES = ("torch.nn.", "megatron.core.", "transformer_engine.")
_CONFIGURATIONS = ("Config", "Provider", "Container")


def is_layer(node: ast.ClassDef, module: Module, modules: Modules, depth: int = 8) -> bool:
    """Return whether a class derives from a module of torch, megatron-core or Transformer Engine."""
    return depth > 0 and any(_is_layer(dotted(base), module, modules, depth) for base in node.bases)


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


def is_shim(module: Module) -> bool:
    """Return whether a module imports a class of values of settings only where the release has it."""
    every = (one for one in module.bindings.values() if isinstance(one, Import) and one.otherwise is not None)
    return any(is_enumeration(f"{one.module}.{one.name}") for one in every)

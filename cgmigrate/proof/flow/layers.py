"""Classes of layers. Their configuration was validated, so that both forms of the settings have become one.

A release of megatron-core rewrites the settings when a configuration is built. A layer gets it after that: what it
reads is the same before and after a migration that captures the same graphs.
"""

from __future__ import annotations

import ast

from cgmigrate.documents.python.source import dotted
from cgmigrate.proof.flow.modules import Import, Module, Modules

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

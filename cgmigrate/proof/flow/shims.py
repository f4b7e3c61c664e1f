"""Modules of a project that are written for several releases of megatron-core."""

from __future__ import annotations

from cgmigrate.proof.flow.modules import Import, Module
from cgmigrate.proof.flow.world import is_enumeration


def is_shim(module: Module) -> bool:
    """Return whether a module imports a class of values of settings only where the release has it."""
    return any(
        isinstance(one, Import) and one.otherwise is not None and is_enumeration(f"{one.module}.{one.name}")
        for one in module.bindings.values()
    )

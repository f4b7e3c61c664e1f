"""The graphs that a run captures with validated settings, by family of releases."""

from __future__ import annotations

from cgmigrate.megatron.releases import IMPL_SINCE, LAST_OLD, SCOPE_LIST_SINCE, Release
from cgmigrate.megatron.settings import LAYER_MODULES, SCOPE
from cgmigrate.megatron.types import (
    WHOLE,
    Backend,
    Blocks,
    Capture,
    Iteration,
    Layers,
    RejectedError,
    ResolvedConfiguration,
)
from cgmigrate.megatron.validation import both_booleans


def capture(configuration: ResolvedConfiguration, release: Release) -> Capture:
    """Return what a run of ``release`` captures. Raises RejectedError if building the model fails."""
    if release < SCOPE_LIST_SINCE:
        return _until_0_15(configuration, release)
    if release <= LAST_OLD:
        return _from_0_16_to_0_17(configuration, release)
    return _since_0_18(configuration)


# --- 0.12 to 0.15 ---------------------------------------------------------------------------------


def _until_0_15(configuration: ResolvedConfiguration, release: Release) -> Capture:
    match _backend_until_0_15(configuration, release):
        case Backend.TRANSFORMER_ENGINE:
            return _transformer_engine_until_0_15(configuration.scope)
        case Backend.LOCAL:
            return _local_until_0_15(configuration.scope, release)
        case None:
            return Capture()


def _backend_until_0_15(configuration: ResolvedConfiguration, release: Release) -> Backend | None:
    if release >= IMPL_SINCE:
        return {"local": Backend.LOCAL, "transformer_engine": Backend.TRANSFORMER_ENGINE}.get(configuration.impl)
    if configuration.enable and configuration.external:
        raise both_booleans(stage="capture")
    if configuration.external:
        return Backend.TRANSFORMER_ENGINE
    return Backend.LOCAL if configuration.enable else None


def _transformer_engine_until_0_15(scope: object) -> Capture:
    if scope not in ("full", "attn"):
        message = f"--cuda-graph-scope should be full or attn, got {scope}."
        raise RejectedError("unknown-module", f"AssertionError: {message}", (SCOPE,), stage="capture")
    return Capture(training=Layers(Backend.TRANSFORMER_ENGINE, frozenset({"attn"}) if scope == "attn" else WHOLE))


def _local_until_0_15(scope: object, release: Release) -> Capture:
    layers = Layers(Backend.LOCAL)
    if scope != "full_iteration" or release < Release(0, 14):
        # All other scopes are ignored: whole layers, in training and in inference.
        return Capture(training=layers, inference=layers)
    if release < IMPL_SINCE:
        return Capture(training=Iteration())
    return Capture(training=Iteration(nested=layers), inference=Blocks())


# --- 0.16 and 0.17 --------------------------------------------------------------------------------


def _from_0_16_to_0_17(configuration: ResolvedConfiguration, release: Release) -> Capture:
    if configuration.impl == "none":
        return Capture()
    parts = frozenset(configuration.modules) & frozenset(LAYER_MODULES)
    if configuration.impl == "transformer_engine":
        # The scope full_iteration_inference alone is not empty, but names no part of a layer.
        no_parts = configuration.modules and not parts
        return Capture(training=None if no_parts else Layers(Backend.TRANSFORMER_ENGINE, parts))
    return (_local_0_16 if release < Release(0, 17) else _local_0_17)(configuration, parts)


def _local_0_16(configuration: ResolvedConfiguration, parts: frozenset[str]) -> Capture:
    layers = Layers(Backend.LOCAL, parts)
    if "full_iteration" in configuration.modules:
        return Capture(training=Iteration(nested=layers if parts else None), inference=Blocks())
    return Capture(training=layers, inference=layers)


def _local_0_17(configuration: ResolvedConfiguration, parts: frozenset[str]) -> Capture:
    if "full_iteration" in configuration.modules:
        return Capture(training=Iteration())
    return _local_layers(parts, inference_block="full_iteration_inference" in configuration.modules)


# --- 0.18 and later -------------------------------------------------------------------------------


def _since_0_18(configuration: ResolvedConfiguration) -> Capture:
    parts = frozenset(configuration.modules)
    match configuration.impl:
        case "full_iteration":
            return Capture(training=Iteration())
        case "transformer_engine":
            return Capture(training=Layers(Backend.TRANSFORMER_ENGINE, parts))
        case "local":
            return _local_layers(parts, inference_block=configuration.inference == "block")
        case _:
            return Capture()


def _local_layers(parts: frozenset[str], *, inference_block: bool) -> Capture:
    """Return the capture of the local implementation since 0.17; ``inference_block`` selects block graphs."""
    layers = Layers(Backend.LOCAL, parts)
    if inference_block:
        return Capture(training=layers if parts else None, inference=Blocks())
    # In inference, layers have graphs only if they are captured as a whole.
    return Capture(training=layers, inference=None if parts else layers)

"""megatron-core's validation of the settings: ``TransformerConfig.__post_init__`` and ``validate_args``.

Each function makes the checks of one stage in the order of megatron-core, since the first failed check decides the
message. All raise RejectedError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cgmigrate.megatron.releases import IMPL_SINCE, LAST_OLD, SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import (
    ENABLE,
    EXTERNAL,
    IMPL,
    IMPLEMENTATIONS,
    INFERENCE,
    INFERENCE_SCOPES,
    LAYER_MODULES,
    MODULES,
    SCOPE,
    Settings,
    split_names,
)
from cgmigrate.megatron.types import RejectedError, ResolvedConfiguration

_FULL_ITERATIONS = ("full_iteration", "full_iteration_inference")
"""Values of the scope that are not parts of a layer; 0.18 deprecates them."""


def validate(settings: Settings, release: Release, *, from_command_line: bool = False) -> ResolvedConfiguration:
    """Return the settings as validation leaves them.

    ``from_command_line`` adds the checks of ``validate_args``. Raises RejectedError.
    """
    if release < IMPL_SINCE:
        return _validate_until_0_14(settings, release, from_command_line)
    impl, booleans = _resolve_booleans(settings)
    if release < SCOPE_LIST_SINCE:
        _check_impl(impl, release)
        return replace(booleans, impl=str(impl), scope=settings.get(SCOPE, "full"))
    if release <= LAST_OLD:
        return _validate_0_16_to_0_17(settings, impl, booleans, release)
    return _validate_since_0_18(settings, impl, booleans, release, from_command_line)


def _validate_until_0_14(settings: Settings, release: Release, from_command_line: bool) -> ResolvedConfiguration:
    enable, external = bool(settings.get(ENABLE)), bool(settings.get(EXTERNAL))
    # Only the command line of 0.14 checks this; otherwise the layers do (graphs.py).
    if from_command_line and enable and external and release >= Release(0, 14):
        raise both_booleans()
    return ResolvedConfiguration(scope=settings.get(SCOPE, "full"), enable=enable, external=external)


def both_booleans(stage: str = "config") -> RejectedError:
    """Return the error for ``enable_cuda_graph`` with ``external_cuda_graph``, both true."""
    message = f"{ENABLE} and {EXTERNAL} cannot be enabled at the same time."
    return RejectedError("both-booleans", f"AssertionError: {message}", (ENABLE, EXTERNAL), stage)


def _resolve_booleans(settings: Settings) -> tuple[object, ResolvedConfiguration]:
    """Return the implementation that the settings select, and a configuration that has the booleans only."""
    enable, external = bool(settings.get(ENABLE)), bool(settings.get(EXTERNAL))
    impl = settings.get(IMPL, "none")
    if (enable or external) and impl != "none":
        message = f"Do not use {ENABLE} or {EXTERNAL} with {IMPL}."
        raise RejectedError("boolean-with-impl", f"AssertionError: {message}", (ENABLE if enable else EXTERNAL, IMPL))
    if enable and external:
        raise both_booleans()
    if enable or external:
        impl = "local" if enable else "transformer_engine"
    return impl, ResolvedConfiguration(enable=enable, external=external)


def implementations(release: Release) -> list[str]:
    """Return the values of ``cuda_graph_impl`` in a release."""
    return [one for one in IMPLEMENTATIONS if one != "full_iteration" or release >= SPLIT_IN]


def _check_impl(impl: object, release: Release) -> None:
    if impl not in implementations(release):
        raise RejectedError("bad-impl", f"AssertionError: Invalid cuda graph implementation: {impl}", (IMPL,))


# --- 0.16 and 0.17 --------------------------------------------------------------------------------


def _validate_0_16_to_0_17(
    settings: Settings, impl: object, booleans: ResolvedConfiguration, release: Release
) -> ResolvedConfiguration:
    raw = settings.get(SCOPE, "full")
    names = split_names(raw)
    if names is None:
        message = f"{SCOPE} must be a string that can be converted to a list of CudaGraphScope, got {raw}."
        raise RejectedError("bad-value", f"AssertionError: {message}", (SCOPE,))
    known = {*LAYER_MODULES, *(_FULL_ITERATIONS if release >= Release(0, 17) else _FULL_ITERATIONS[:1])}
    modules = _modules(names, known, SCOPE)
    if impl == "none":
        return replace(booleans, modules=modules)
    _check_impl(impl, release)
    if impl == "local":
        modules = _with_both_moe_parts(modules)
    elif "full_iteration" in modules:
        message = f"To use full iteration cuda graph, please use {IMPL}=local instead of {IMPL}={impl}."
        raise RejectedError("full-iteration-impl", f"AssertionError: {message}", (SCOPE,))
    _check_moe_parts(modules, SCOPE, SCOPE)
    return replace(booleans, impl=str(impl), modules=modules)


# --- 0.18 and later -------------------------------------------------------------------------------


def _validate_since_0_18(
    settings: Settings, impl: object, booleans: ResolvedConfiguration, release: Release, from_command_line: bool
) -> ResolvedConfiguration:
    names, field = _modules_or_scope(settings, from_command_line)
    modules = tuple(name for name in names if name not in _FULL_ITERATIONS)
    deprecated = [name for name in names if name in _FULL_ITERATIONS]
    inference = settings.get(INFERENCE)
    if deprecated:
        impl, inference = _migrate_deprecated(deprecated, impl, inference, field)
    _check_impl(impl, release)
    inference_scope = _inference_scope(inference, impl)
    if impl == "full_iteration" and modules:
        message = f'{MODULES} must be empty when {IMPL}="full_iteration".'
        raise RejectedError("modules-with-full-iteration", f"AssertionError: {message}", (field, IMPL))
    if impl == "local":
        modules = _with_both_moe_parts(modules)
    if impl in ("local", "transformer_engine"):
        _check_moe_parts(modules, MODULES, field)
    return replace(booleans, impl=str(impl), modules=modules, inference=inference_scope)


def _modules_or_scope(settings: Settings, from_command_line: bool) -> tuple[tuple[str, ...], str]:
    """Return the names in the modules, or in the deprecated scope, and the field that has them."""
    raw, field = settings.get(MODULES, [] if from_command_line else "full"), MODULES
    if settings.get(SCOPE) is not None:
        # The command line counts any word as modules, "full" too.
        if raw not in (([],) if from_command_line else ("full", None, [])):
            message = f"{SCOPE} and {MODULES} cannot be set together."
            raise RejectedError("scope-with-modules", f"AssertionError: {message}", (SCOPE, MODULES))
        raw, field = settings[SCOPE], SCOPE
    # Since 0.18 an empty string is an empty list; before, it was the unknown name ''.
    names = [] if raw == "" else split_names(raw)
    if names is None:
        message = f"{MODULES} values must be strings or CudaGraphModule enums, got {raw!r}."
        raise RejectedError("bad-value", f"AssertionError: {message}", (field,))
    return _modules(names, {*LAYER_MODULES, *_FULL_ITERATIONS}, field), field


def _migrate_deprecated(
    deprecated: Sequence[str], impl: object, inference: object, field: str
) -> tuple[object, object]:
    """Return the implementation and inference scope to which 0.18 converts the deprecated names in the scope."""
    if len(set(deprecated)) > 1:
        message = f"{MODULES} cannot contain multiple deprecated values at the same time: {list(deprecated)}."
        raise RejectedError("both-full-iterations", f"AssertionError: {message}", (field,))
    if isinstance(inference, str) and inference not in INFERENCE_SCOPES:
        raise RejectedError("bad-value", f"KeyError: {inference!r}", (INFERENCE,))
    name = deprecated[0]
    training = name == "full_iteration"
    if impl not in (("none", "local", "full_iteration") if training else ("none", "local")):
        message = f"{MODULES}='{name}' cannot be combined with {IMPL}={impl!r}."
        raise RejectedError("full-iteration-impl", f"AssertionError: {message}", (field, IMPL))
    if inference not in (None, "none" if training else "block"):
        message = f"{MODULES}='{name}' cannot be combined with {INFERENCE}={inference!r}."
        raise RejectedError("full-iteration-inference", f"AssertionError: {message}", (field, INFERENCE))
    if training:
        return "full_iteration", inference
    return impl, inference if impl == "none" else "block"


def _inference_scope(inference: object, impl: object) -> str:
    """Return the inference scope, or the default of the implementation."""
    if inference is None:
        inference = "layer" if impl == "local" else "none"
    if not isinstance(inference, str):
        message = f"{INFERENCE} must be a string or InferenceCudaGraphScope enum, got {inference!r}."
        raise RejectedError("bad-value", f"AssertionError: {message}", (INFERENCE,))
    if inference not in INFERENCE_SCOPES:
        raise RejectedError("bad-value", f"KeyError: {inference!r}", (INFERENCE,))
    if inference not in (("layer", "block") if impl == "local" else ("none",)):
        message = f"Invalid inference CUDA graph scope {inference!r} for {IMPL}={impl!r}."
        raise RejectedError("inference-for-impl", f"AssertionError: {message}", (INFERENCE, IMPL))
    return inference


# --- modules, in all releases since 0.16 ----------------------------------------------------------


def _modules(names: Sequence[str], known: set[str], field: str) -> tuple[str, ...]:
    """Return the names that a scope or modules value selects; none for ``full``, which is the whole layer."""
    if "full" in names:
        if list(names) == ["full"]:
            return ()
        message = "full scope cannot be used with other scopes."
        raise RejectedError("full-with-others", f"AssertionError: {message}", (field,))
    for name in names:
        if name not in known:
            raise RejectedError("unknown-module", f"KeyError: {name!r}", (field,))
    return tuple(names)


def _with_both_moe_parts(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Add the router or preprocess if only the other is selected: the local implementation captures both as one."""
    parts = ("moe_router", "moe_preprocess")
    if not set(parts) & set(modules):
        return modules
    return modules + tuple(part for part in parts if part not in modules)


def _check_moe_parts(modules: Sequence[str], name: str, field: str) -> None:
    if "moe" in modules and "moe_router" in modules:
        message = f"{name} must not contain both moe and moe_router."
        raise RejectedError("moe-with-router", f"AssertionError: {message}", (field,))
    if "moe_preprocess" in modules and "moe_router" not in modules:
        message = "moe_preprocess cuda graph is only supported with moe_router cuda graph."
        raise RejectedError("preprocess-without-router", f"AssertionError: {message}", (field,))

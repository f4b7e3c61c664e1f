"""What a configuration captures: one pure function for every megatron-core release.

``capture_of(settings, release, reader)`` is the centre of the program: two
configurations behave the same when their captures are equal, and a rewrite is sound
when the capture before, read by the source release, equals the capture after, read by
the target release.

It works in two steps, as megatron-core does. ``resolved_configuration`` is what validation makes
of the settings (``TransformerConfig.__post_init__``, ``validate_args``, Megatron-Bridge's
``validate_cuda_graph_configuration``); ``capture_of`` is what the run then captures
(``GraphableMegatronModule``, ``TransformerBlock``, ``FullCudaGraphWrapper``).

Sources: megatron-core 0.12.3, 0.13.1, 0.14.0, 0.15.3, 0.16.1, 0.17.1, 0.18.2, 0.19.2 and
Megatron-Bridge 0.3.1 to 0.6.2, read; all but the first two megatron-core ones also
executed. ``tests/megatron/test_capture.py`` compares this page with those executions row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cgmigrate.megatron.bridge import _guard_of_bridge
from cgmigrate.megatron.command_line import _parse_command_line
from cgmigrate.megatron.releases import IMPL_SINCE, LAST_OLD, SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import (
    ENABLE,
    EXTERNAL,
    FIELDS,
    FLAGS,
    IMPL,
    INFERENCE,
    INFERENCE_SCOPES,
    LAYER_MODULES,
    MODULES,
    SCOPE,
    Settings,
    Undecided,
)
from cgmigrate.megatron.types import (
    WHOLE,
    Backend,
    Blocks,
    Capture,
    Iteration,
    Layers,
    Reader,
    Rejected,
    ResolvedConfiguration,
    _names,
)


def capture_of(settings: Settings, release: Release, reader: Reader) -> Capture | Rejected:
    """Return what ``settings`` capture when ``release`` reads them through ``reader``.

    ``settings`` maps field names to values as YAML or Python gives them; a field that is not
    written is absent. Raises ValueError for an ``Undecided`` value: nobody can know.
    """
    effective = resolved_configuration(settings, release, reader)
    return effective if isinstance(effective, Rejected) else capture_of_resolved(effective, release)


def capture_of_resolved(effective: ResolvedConfiguration, release: Release) -> Capture | Rejected:
    """Return what a run of ``release`` captures under settings that its validation has accepted.

    ``effective`` may come from ``resolved_configuration`` or from the release itself (``cgmigrate.verify.effective``).
    """
    if release < SCOPE_LIST_SINCE:
        return _capture_until_0_15(effective, release)
    if release <= LAST_OLD:
        return _capture_0_16_to_0_17(effective, release)
    return _capture_since_0_18(effective)


def resolved_configuration(settings: Settings, release: Release, reader: Reader) -> ResolvedConfiguration | Rejected:
    """Return the settings as ``reader`` of ``release`` keeps them, or why it refuses them."""
    for name in FIELDS:
        if isinstance(value := settings.get(name), Undecided):
            raise ValueError(f"{name} is undecided: {value.reason}")
    if unknown := _unknown_field(settings, release, reader):
        return unknown
    given = validation_input(settings, release, reader)
    if isinstance(given, Rejected):
        return given
    return _validate(given, release, flags=reader is Reader.COMMAND_LINE)


def validation_input(settings: Settings, release: Release, reader: Reader) -> Settings | Rejected:
    """Return the settings as ``reader`` hands them to megatron-core's validation, or why it refuses them first."""
    if reader is Reader.COMMAND_LINE:
        return _parse_command_line(settings, release)
    if reader is Reader.NEMO_RL and IMPL not in settings:
        settings = {name: value for name, value in settings.items() if name != INFERENCE}
    if reader.validates_as_bridge and release > SPLIT_IN:
        return _guard_of_bridge(settings)
    return settings


# --- validation ---------------------------------------------------------------------------


def _unknown_field(settings: Settings, release: Release, reader: Reader) -> Rejected | None:
    unknown: list[str] = [IMPL] if release < IMPL_SINCE else []
    if release < SPLIT_IN:
        unknown += [MODULES, INFERENCE]
    for name in unknown:
        if name not in settings:
            continue
        if reader is Reader.COMMAND_LINE:
            return Rejected("unknown-field", f"error: unrecognized arguments: {FLAGS[name]}", (name,))
        message = f"TransformerConfig.__init__() got an unexpected keyword argument '{name}'"
        return Rejected("unknown-field", f"TypeError: {message}", (name,))
    return None


def _validate(settings: Settings, release: Release, flags: bool = False) -> ResolvedConfiguration | Rejected:
    """``TransformerConfig.__post_init__``; with ``flags`` the checks that ``validate_args`` adds."""
    enable, external = bool(settings.get(ENABLE)), bool(settings.get(EXTERNAL))
    if release < IMPL_SINCE:
        # 0.14's command line checks this; the config leaves it to the layers (_capture_until_0_15).
        if flags and enable and external and release >= Release(0, 14):
            return _both_booleans()
        return ResolvedConfiguration(scope=settings.get(SCOPE, "full"), enable=enable, external=external)

    impl = settings.get(IMPL, "none")
    if (enable or external) and impl != "none":
        boolean = ENABLE if enable else EXTERNAL
        message = f"Do not use {ENABLE} or {EXTERNAL} with {IMPL}."
        return Rejected("boolean-with-impl", f"AssertionError: {message}", (boolean, IMPL))
    if enable and external:
        return _both_booleans()
    if enable or external:
        impl = "local" if enable else "transformer_engine"

    state = ResolvedConfiguration(enable=enable, external=external)
    if release < SCOPE_LIST_SINCE:
        bad = _check_impl(impl, release)
        return bad or replace(state, impl=str(impl), scope=settings.get(SCOPE, "full"))
    if release <= LAST_OLD:
        return _validate_0_16_to_0_17(settings, impl, state, release)
    return _validate_since_0_18(settings, impl, state, release, flags)


def _both_booleans() -> Rejected:
    message = f"{ENABLE} and {EXTERNAL} cannot be enabled at the same time."
    return Rejected("both-booleans", f"AssertionError: {message}", (ENABLE, EXTERNAL))


def _check_impl(impl: object, release: Release) -> Rejected | None:
    known = ["none", "local", "transformer_engine"] + (["full_iteration"] if release >= SPLIT_IN else [])
    if impl in known:
        return None
    return Rejected("bad-impl", f"AssertionError: Invalid cuda graph implementation: {impl}", (IMPL,))


def _validate_0_16_to_0_17(
    settings: Settings, impl: object, state: ResolvedConfiguration, release: Release
) -> ResolvedConfiguration | Rejected:
    raw = settings.get(SCOPE, "full")
    names = _names(raw)
    if names is None:
        message = f"{SCOPE} must be a string that can be converted to a list of CudaGraphScope, got {raw}."
        return Rejected("bad-value", f"AssertionError: {message}", (SCOPE,))
    known = {*LAYER_MODULES, "full_iteration"}
    if release >= Release(0, 17):
        known.add("full_iteration_inference")
    modules = _normalize(names, known, SCOPE)
    if isinstance(modules, Rejected):
        return modules
    if impl == "none":
        return replace(state, modules=modules)
    if bad := _check_impl(impl, release):
        return bad
    if impl == "local":
        modules = _with_both_moe_parts(modules)
    elif "full_iteration" in modules:
        message = f"To use full iteration cuda graph, please use {IMPL}=local instead of {IMPL}={impl}."
        return Rejected("full-iteration-impl", f"AssertionError: {message}", (SCOPE,))
    return _check_moe_parts(modules, SCOPE, SCOPE) or replace(state, impl=str(impl), modules=modules)


def _validate_since_0_18(
    settings: Settings, impl: object, state: ResolvedConfiguration, release: Release, flags: bool
) -> ResolvedConfiguration | Rejected:
    raw, written = settings.get(MODULES, [] if flags else "full"), MODULES
    if settings.get(SCOPE) is not None:
        # The command line counts any word as modules, "full" too.
        if raw not in (([],) if flags else ("full", None, [])):
            message = f"{SCOPE} and {MODULES} cannot be set together."
            return Rejected("scope-with-modules", f"AssertionError: {message}", (SCOPE, MODULES))
        raw, written = settings[SCOPE], SCOPE
    # Since 0.18 an empty string is an empty list; before, it was the unknown name ''.
    names = [] if raw == "" else _names(raw)
    if names is None:
        message = f"{MODULES} values must be strings or CudaGraphModule enums, got {raw!r}."
        return Rejected("bad-value", f"AssertionError: {message}", (written,))
    deprecated = {"full_iteration", "full_iteration_inference"}
    normal = _normalize(names, {*LAYER_MODULES, *deprecated}, written)
    if isinstance(normal, Rejected):
        return normal
    asked = [name for name in normal if name in deprecated]
    modules = tuple(name for name in normal if name not in deprecated)
    inference = settings.get(INFERENCE)
    if asked:
        migrated = _migrate_deprecated(asked, impl, inference, written)
        if isinstance(migrated, Rejected):
            return migrated
        impl, inference = migrated
    if bad := _check_impl(impl, release):
        return bad
    if inference is None:
        inference = "layer" if impl == "local" else "none"
    if not isinstance(inference, str):
        message = f"{INFERENCE} must be a string or InferenceCudaGraphScope enum, got {inference!r}."
        return Rejected("bad-value", f"AssertionError: {message}", (INFERENCE,))
    if inference not in INFERENCE_SCOPES:
        return Rejected("bad-value", f"KeyError: {inference!r}", (INFERENCE,))
    if inference not in (("layer", "block") if impl == "local" else ("none",)):
        message = f"Invalid inference CUDA graph scope {inference!r} for {IMPL}={impl!r}."
        return Rejected("inference-for-impl", f"AssertionError: {message}", (INFERENCE, IMPL))
    if impl == "full_iteration" and modules:
        message = f'{MODULES} must be empty when {IMPL}="full_iteration".'
        return Rejected("modules-with-full-iteration", f"AssertionError: {message}", (written, IMPL))
    if impl == "local":
        modules = _with_both_moe_parts(modules)
    result = replace(state, impl=str(impl), modules=modules, inference=inference)
    per_layer = impl in ("local", "transformer_engine")
    return (_check_moe_parts(modules, MODULES, written) if per_layer else None) or result


def _migrate_deprecated(
    asked: Sequence[str], impl: object, inference: object, written: str
) -> tuple[object, object] | Rejected:
    """0.18's own migration of the deprecated scope values: (impl, inference scope)."""
    if len(set(asked)) > 1:
        message = f"{MODULES} cannot contain multiple deprecated values at the same time: {list(asked)}."
        return Rejected("both-full-iterations", f"AssertionError: {message}", (written,))
    if isinstance(inference, str) and inference not in INFERENCE_SCOPES:
        return Rejected("bad-value", f"KeyError: {inference!r}", (INFERENCE,))
    name = asked[0]
    whole = name == "full_iteration"
    if impl not in (("none", "local", "full_iteration") if whole else ("none", "local")):
        message = f"{MODULES}='{name}' cannot be combined with {IMPL}={impl!r}."
        return Rejected("full-iteration-impl", f"AssertionError: {message}", (written, IMPL))
    if inference not in (None, "none" if whole else "block"):
        message = f"{MODULES}='{name}' cannot be combined with {INFERENCE}={inference!r}."
        return Rejected("full-iteration-inference", f"AssertionError: {message}", (written, INFERENCE))
    if whole:
        return "full_iteration", inference
    return impl, inference if impl == "none" else "block"


def _normalize(names: Sequence[str], known: set[str], written: str) -> tuple[str, ...] | Rejected:
    if "full" in names:
        if list(names) == ["full"]:
            return ()
        message = "full scope cannot be used with other scopes."
        return Rejected("full-with-others", f"AssertionError: {message}", (written,))
    for name in names:
        if name not in known:
            return Rejected("unknown-module", f"KeyError: {name!r}", (written,))
    return tuple(names)


def _with_both_moe_parts(modules: tuple[str, ...]) -> tuple[str, ...]:
    """The local implementation does not tell router and preprocess apart: one stands for both."""
    parts = ("moe_router", "moe_preprocess")
    if not set(parts) & set(modules):
        return modules
    return modules + tuple(part for part in parts if part not in modules)


def _check_moe_parts(modules: Sequence[str], name: str, written: str) -> Rejected | None:
    if "moe" in modules and "moe_router" in modules:
        message = f"{name} must not contain both moe and moe_router."
        return Rejected("moe-with-router", f"AssertionError: {message}", (written,))
    if "moe_preprocess" in modules and "moe_router" not in modules:
        message = "moe_preprocess cuda graph is only supported with moe_router cuda graph."
        return Rejected("preprocess-without-router", f"AssertionError: {message}", (written,))
    return None


# --- from validated settings to graphs --------------------------------------------------------


def _capture_until_0_15(effective: ResolvedConfiguration, release: Release) -> Capture | Rejected:
    scope = effective.scope
    if release < IMPL_SINCE:
        if effective.enable and effective.external:
            return replace(_both_booleans(), stage="capture")
        local, te = effective.enable, effective.external
    else:
        local, te = effective.impl == "local", effective.impl == "transformer_engine"
    if te:
        if scope in ("full", "attn"):
            parts = frozenset({"attn"}) if scope == "attn" else WHOLE
            return Capture(training=Layers(Backend.TRANSFORMER_ENGINE, parts))
        message = f"--cuda-graph-scope should be full or attn, got {scope}."
        return Rejected("unknown-module", f"AssertionError: {message}", (SCOPE,), stage="capture")
    if not local:
        return Capture()
    whole = Layers(Backend.LOCAL)
    if scope != "full_iteration" or release < Release(0, 14):
        # These releases ignore every other scope: whole layers, in training and in inference.
        return Capture(training=whole, inference=whole)
    if release < IMPL_SINCE:
        return Capture(training=Iteration())
    return Capture(training=Iteration(nested=whole), inference=Blocks())


def _capture_0_16_to_0_17(effective: ResolvedConfiguration, release: Release) -> Capture:
    if effective.impl == "none":
        return Capture()
    parts = frozenset(effective.modules) & frozenset(LAYER_MODULES)
    if effective.impl == "transformer_engine":
        # A scope of full_iteration_inference alone is not empty, but names no part of a layer.
        empty = effective.modules and not parts
        return Capture(training=None if empty else Layers(Backend.TRANSFORMER_ENGINE, parts))
    layers = Layers(Backend.LOCAL, parts)
    if "full_iteration" in effective.modules:
        if release < Release(0, 17):
            return Capture(training=Iteration(nested=layers if parts else None), inference=Blocks())
        return Capture(training=Iteration())
    if release < Release(0, 17):
        return Capture(training=layers, inference=layers)
    if "full_iteration_inference" in effective.modules:
        return Capture(training=layers if parts else None, inference=Blocks())
    return Capture(training=layers, inference=None if parts else layers)


def _capture_since_0_18(effective: ResolvedConfiguration) -> Capture:
    parts = frozenset(effective.modules)
    match effective.impl:
        case "full_iteration":
            return Capture(training=Iteration())
        case "transformer_engine":
            return Capture(training=Layers(Backend.TRANSFORMER_ENGINE, parts))
        case "local":
            layers = Layers(Backend.LOCAL, parts)
            if effective.inference == "block":
                return Capture(training=layers if parts else None, inference=Blocks())
            # The inference scope "layer" has an effect only where whole layers are captured.
            return Capture(training=layers, inference=None if parts else layers)
        case _:
            return Capture()

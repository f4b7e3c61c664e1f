"""The validation of Megatron-Bridge, which runs before that of megatron-core."""

from __future__ import annotations

from cgmigrate.megatron.settings import IMPL, INFERENCE, MODULES, SCOPE, Settings, split_names
from cgmigrate.megatron.types import RejectedError


def validate_as_bridge(settings: Settings) -> Settings:
    """Return the settings after ``validate_cuda_graph_configuration`` of Bridge 0.6. Raises RejectedError.

    Under ``none``, written or not, it clears the scope; only then does megatron-core read the booleans. So
    ``external_cuda_graph: true`` with the scope ``[attn]`` captures whole layers.

    Bridge 0.4 and 0.5 clear the scope under ``none`` as well, but only after megatron-core has
    read it, which changes nothing in what is captured. Bridge 0.6 belongs to megatron-core 0.19.
    """
    impl = settings.get(IMPL, "none")
    if impl == "none":
        # Also with enable_cuda_graph: Bridge reads the implementation as written.
        others = {name: value for name, value in settings.items() if name != SCOPE}
        return {**others, MODULES: []}
    if impl != "local":
        return settings
    names = [name for key in (MODULES, SCOPE) for name in (split_names(settings.get(key)) or [])]
    parts = [n for n in names if n and n not in ("full", "full_iteration", "full_iteration_inference")]
    inference_only = not parts and settings.get(INFERENCE) in ("layer", "block")
    if "full_iteration" in names or inference_only:
        return settings
    with_scopes = f" with scopes {parts}" if parts else ""
    message = (
        f'Megatron Bridge supports model.{IMPL}="local" only for full-iteration CUDA graphs{with_scopes}. '
        f'Use model.{IMPL}="transformer_engine" for scoped CUDA graph capture such as "attn" or "mlp".'
    )
    raise RejectedError("bridge-local", f"ValueError: {message}", (IMPL,))

"""The values beside the settings that decide whether a release accepts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cgmigrate.megatron.command_line import argument_words
from cgmigrate.megatron.settings import MODULES, SCOPE, Settings, names_in
from cgmigrate.megatron.types import Reader

FIELDS = frozenset(
    (
        "num_layers",
        "num_moe_experts",
        "moe_layer_freq",
        "moe_expert_capacity_factor",
        "moe_pad_expert_input_to_capacity",
        "moe_token_dispatcher_type",
        "moe_router_topk",
        "moe_grouped_gemm",
        "multi_latent_attention",
        "moe_shared_expert_intermediate_size",
        "moe_input_jitter_eps",
        "moe_pad_experts_for_cuda_graph_inference",
        "recompute_granularity",
        "recompute_method",
        "recompute_num_layers",
        "recompute_modules",
        "attention_dropout",
        "hidden_dropout",
        "cpu_offloading",
        "cpu_offloading_num_layers",
        "fine_grained_activation_offloading",
        "offload_modules",
        "overlap_moe_expert_parallel_comm",
        "expert_model_parallel_size",
        "cuda_graph_warmup_steps",
    )
)
"""What TransformerConfig and validate_args of megatron-core 0.16 to 0.19 look at where they check graphs, as far as a
machine without GPU and Transformer Engine can build it (fp8 and tensor parallelism it cannot)."""
FLAGS = frozenset(
    (
        "no_check_for_nan_in_loss_and_grad",
        "inference_dynamic_batching",
        "inference_dynamic_batching_num_cuda_graphs",
        "rl_training_cuda_graphs",
        "te_rng_tracker",
    )
)
"""What only validate_args looks at."""
LISTS = ("recompute_modules", "offload_modules")


def related_fields(beside: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """Return those of the values beside the settings that decide, by the names that ``reading`` takes.

    ``beside`` has names as they are written (``--num-experts``, ``model.num_moe_experts``). A value that only a run
    gives (``${...}``) is omitted, and so is None.
    """
    result: dict[str, Any] = {}
    for written, value in beside.items():
        name = written.rpartition(".")[2].lstrip("-").replace("-", "_")
        name = {"num_experts": "num_moe_experts"}.get(name, name)
        if value is None or (isinstance(value, str) and "${" in value):
            continue
        if reader is Reader.COMMAND_LINE and name in FIELDS | FLAGS:
            dashed = written.startswith("-") or name in FLAGS
            key = "--" + written.lstrip("-").replace("_", "-") if dashed else name
            result[key] = argument_words(value) if name in LISTS else str(value) if isinstance(value, list) else value
        elif reader is not Reader.COMMAND_LINE and name in FIELDS and (usable := _for_config(name, value)) is not None:
            result[name] = usable
    return result


def _for_config(name: str, value: Any) -> Any:
    if name == "moe_layer_freq" and isinstance(value, str):
        return None  # an expression, which only the command line evaluates
    if name in LISTS and isinstance(value, str):
        return argument_words(value.replace(",", " "))
    return value


def assumed_fields(beside: Mapping[str, Any], texts: Sequence[Settings], reader: Reader) -> dict[str, Any]:
    """Return what another file must set for the settings to be accepted at all: experts, where they name their parts.

    ``beside`` is the answer of ``related_fields``, ``texts`` the settings before and after. A recipe often gives the
    model in another file; without experts every release refuses the parts of their layers, and nothing is learnt.
    """
    if any(name in beside for name in ("num_moe_experts", "--num-experts")):
        return {}
    names = {name for text in texts for key in (SCOPE, MODULES) for name in names_in(text.get(key))}
    parallel = beside.get("--expert-model-parallel-size", beside.get("expert_model_parallel_size"))
    spread = parallel if isinstance(parallel, int) else 1
    if spread < 2 and not names & {"moe", "moe_router", "moe_preprocess"}:
        return {}
    assumed: dict[str, Any] = {"num_moe_experts": 4 * spread}
    if "moe" in names:
        assumed |= {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
        assumed["moe_token_dispatcher_type"] = "alltoall"
    if "mlp" in names and not any(name.lstrip("-").replace("-", "_") == "moe_layer_freq" for name in beside):
        layers = beside.get("--num-layers", beside.get("num_layers", 2))
        frequency = [0] + [1] * (layers - 1) if isinstance(layers, int) else [0, 1]
        assumed["moe_layer_freq"] = str(frequency) if reader is Reader.COMMAND_LINE else frequency
    return {name: value for name, value in assumed.items() if name not in beside}

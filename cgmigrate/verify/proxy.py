"""Derives a small proxy model of the same structure from the values beside the settings.

What decides how graphs are captured is kept (dense or experts, layer specification, recompute, dropout, precision,
dispatcher, parallelism up to the GPUs there are, packing); what only costs time and memory is scaled down (layers,
widths, sequence). The proxy's notes say what is scaled or omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.layer_patterns import has_layer, layer_pattern
from cgmigrate.megatron.settings import names_in
from cgmigrate.verify.arms import Packing, Proxy

LAYERS, HIDDEN, HEADS, EXPERTS = 4, 256, 4, 4
"""Sizes of the proxy: enough layers for graphs to share buffers, a few milliseconds a step."""

NO_MAMBA = "Mamba layers are omitted: all layers of the proxy are transformer layers"
NO_MLA = "multi-latent attention is omitted: the proxy's attention is the ordinary one"
"""Notes of a proxy that lacks what the configuration may capture."""
MLA_MODULE = "mla_up_proj"
"""What only multi-latent attention can recompute, which the proxy does not have."""

_KEPT = (
    "normalization",
    "layernorm_epsilon",
    "add_bias_linear",
    "add_qkv_bias",
    "gated_linear_unit",
    "activation_func",
    "qk_layernorm",
    "attention_dropout",
    "hidden_dropout",
    "apply_rope_fusion",
    "bias_activation_fusion",
    "bias_dropout_fusion",
    "recompute_granularity",
    "recompute_method",
    "recompute_modules",
    "sequence_parallel",
    "cuda_graph_warmup_steps",
    "cuda_graph_use_single_mempool",
    "cuda_graph_retain_backward_graph",
    "fp8",
    "fp8_recipe",
    "moe_token_dispatcher_type",
    "moe_grouped_gemm",
    "moe_router_load_balancing_type",
    "moe_aux_loss_coeff",
    "moe_z_loss_coeff",
    "moe_router_dtype",
    "moe_router_score_function",
    "moe_router_enable_expert_bias",
    "moe_expert_capacity_factor",
    "moe_pad_expert_input_to_capacity",
    "moe_pad_experts_for_cuda_graph_inference",
    "moe_token_drop_policy",
    "moe_router_padding_for_fp8",
    "moe_permute_fusion",
    "moe_shared_expert_overlap",
    "moe_router_pre_softmax",
    "overlap_moe_expert_parallel_comm",
)
"""Fields of TransformerConfig that are given to the proxy as they are."""

_REPLACED = (
    *("fp16", "use_te_rng_tracker", "inference_rng_tracker", "gradient_accumulation_fusion"),
    *("num_moe_experts", "moe_layer_freq", "moe_shared_expert_intermediate_size", "is_hybrid_model"),
    *("pipeline_model_parallel_size", "expert_model_parallel_size"),
)
"""Fields that the proxy has in a form of its own."""

_ALIASES = {
    # Megatron-LM's flags (less their dashes), NeMo's and Megatron-Bridge's names → fields of TransformerConfig.
    "num_experts": "num_moe_experts",
    "group_query_attention": "",
    "swiglu": "gated_linear_unit",
    "tensor_parallel_size": "tensor_model_parallel_size",
    "pipeline_parallel_size": "pipeline_model_parallel_size",
    "expert_parallel_size": "expert_model_parallel_size",
    "fp8_format": "fp8",
    "spec": "",
}
_UNKNOWN_STRUCTURE = (
    "the values beside the settings do not show the model's structure: the proxy is a dense GPT of {layers} layers"
)
_MOE = ("num_moe_experts", "moe_router_topk", "moe_ffn_hidden_size", "moe_grouped_gemm", "moe_token_dispatcher_type")
_STRUCTURE = ("num_layers", "hidden_size", "num_moe_experts", "num_attention_heads", *_KEPT)


def proxy_of(neighbours: Mapping[str, Any], gpus: int = 1, packing: Packing | None = None) -> Proxy:
    """The proxy for a configuration whose other plain values are ``neighbours``, on ``gpus`` GPUs."""
    values = _canonical(neighbours)
    notes: list[str] = []
    if not any(name in values for name in _STRUCTURE):
        notes.append(_UNKNOWN_STRUCTURE.format(layers=LAYERS))
    parallel = _parallel(values, gpus, notes)
    fields: dict[str, Any] = {name: values[name] for name in _KEPT if values.get(name) is not None}
    fields.setdefault("normalization", "RMSNorm")
    if "expert_tensor" in parallel:
        fields["expert_tensor_parallel_size"] = parallel.pop("expert_tensor")
    _group_queries(values, fields)
    _activation(fields, notes)
    _experts(values, fields, parallel["expert"], notes)
    _recompute(fields, notes)
    if parallel["tensor"] == 1:
        fields.pop("sequence_parallel", None)
    elif "num_moe_experts" in fields:
        fields["sequence_parallel"] = True
    if "fp8" not in fields:
        fields.pop("fp8_recipe", None)
    notes += _omitted(values)
    if packing is not None:
        # The unfused rotary embedding of packed sequences copies lengths to the host, which no graph can hold.
        fields.setdefault("apply_rope_fusion", True)
    return Proxy(
        layers=max(LAYERS, parallel["pipeline"]),
        hidden=HIDDEN,
        heads=HEADS,
        spec="local" if str(values.get("transformer_impl", "")) == "local" else "te",
        precision=_precision(values),
        micro_batch=1 if packing else 2,
        microbatches=2 * parallel["pipeline"],
        fields=dict(sorted(fields.items())),
        packing=packing,
        notes=tuple(notes),
        **parallel,
    )


def _omitted(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes on what the proxy does not have, whole parts of the model first."""
    hybrid = [name for name in values if "mamba" in name or "hybrid" in name]
    if any(values[name] for name in hybrid if name != "hybrid_context_parallel"):
        yield NO_MAMBA
    if values.get("multi_latent_attention"):
        yield NO_MLA
    if (values.get("context_parallel_size") or 1) != 1:
        yield "context parallelism is omitted"
    fields = (one for one in load().settings.values() if one.owner == "TransformerConfig" and not one.captures)
    others = [one for one in fields if one.name not in (*_KEPT, *_REPLACED) and one.name in values]
    ignored = [one.name for one in others if values[one.name] not in (None, False, one.default, "local")]
    if ignored:
        yield f"the proxy does without {', '.join(ignored)}"


def _canonical(neighbours: Mapping[str, Any]) -> dict[str, Any]:
    """The values by field of TransformerConfig, whatever spelling they have."""
    result: dict[str, Any] = {}
    for name, value in neighbours.items():
        plain = name.rpartition(".")[2].lstrip("-").replace("-", "_")
        if negated := plain.startswith("disable_"):
            plain = {"disable_bias_linear": "add_bias_linear"}.get(plain, plain)
        field = _ALIASES.get(plain, plain)
        if field:
            result[field] = (not value) if negated and isinstance(value, bool) else value
    if result.get("squared_relu") is True:
        result["activation_func"] = "squared_relu"
    if result.get("gated_linear_unit") is True:
        result.setdefault("activation_func", "silu")
    if result.get("activation_func") not in ("gelu", "silu", "relu", "squared_relu"):
        result.pop("activation_func", None)
    kept = {name: value for name, value in result.items() if isinstance(value, (str, int, float, bool, list))}
    return {name: _number(value) if isinstance(value, str) else value for name, value in kept.items()}


def _number(text: str) -> Any:
    """``1e-4`` is text in YAML 1.1, and a number to whom reads it as an option."""
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text


def _parallel(values: Mapping[str, Any], gpus: int, notes: list[str]) -> dict[str, int]:
    """Parallel sizes, halved until they fit: a size that counts is kept at 2 as long as there are GPUs for it.

    megatron-core divides the GPUs twice: by pipeline × tensor for the dense layers, and by pipeline × expert × expert
    tensor for the experts. Both have to divide them. ``expert_tensor`` is given only where it is not the tensor size.
    """
    requested = {
        "tensor": _count(values.get("tensor_model_parallel_size")),
        "pipeline": _count(values.get("pipeline_model_parallel_size")),
        "expert": _count(values.get("expert_model_parallel_size")),
    }
    sizes = {"tensor": 1, "pipeline": 1, "expert": 1}
    dense = 1
    for name in ("pipeline", "tensor"):
        if requested[name] > 1 and gpus % (2 * dense) == 0:
            sizes[name], dense = 2, 2 * dense
    if _count(values.get("num_moe_experts"), none=0):
        split = min(_count(values.get("expert_tensor_parallel_size"), none=sizes["tensor"]), sizes["tensor"])
        sizes |= _expert_sizes(requested["expert"], split, gpus // sizes["pipeline"])
        if sizes["expert_tensor"] < split:
            notes.append(f"an expert is not split: {gpus} GPUs do not hold {split} ways of it beside the experts")
        if sizes["expert_tensor"] == sizes["tensor"]:
            del sizes["expert_tensor"]
    for name, size in requested.items():
        if size > sizes[name]:
            notes.append(f"{name} parallelism {size} is scaled to {sizes[name]} ({gpus} GPU{'s' * (gpus > 1)})")
    return sizes


def _expert_sizes(requested: int, split: int, ranks: int) -> dict[str, int]:
    """How the ranks of one pipeline stage divide the experts: among them first, then each expert."""
    expert = 2 if requested > 1 and ranks % 2 == 0 else 1
    return {"expert": expert, "expert_tensor": split if ranks % (expert * split) == 0 else 1}


def _group_queries(values: Mapping[str, Any], fields: dict[str, Any]) -> None:
    heads, groups = _count(values.get("num_attention_heads"), none=0), _count(values.get("num_query_groups"), none=0)
    if groups and (not heads or groups < heads):
        fields["num_query_groups"] = 2


def _experts(values: Mapping[str, Any], fields: dict[str, Any], expert: int, notes: list[str]) -> None:
    experts = _count(values.get("num_moe_experts"), none=0)
    if not experts:
        for name in [name for name in fields if name.startswith("moe_")]:
            del fields[name]
        if any(name in values for name in _MOE[1:]):
            notes.append("settings of experts without a number of experts: the proxy has none")
        return
    fewer = max(min(experts, EXPERTS), expert)
    fields["num_moe_experts"] = fewer - fewer % expert
    fields["moe_router_topk"] = min(_count(values.get("moe_router_topk"), none=2), 2, fields["num_moe_experts"])
    fields["moe_ffn_hidden_size"] = HIDDEN
    fields.setdefault("moe_grouped_gemm", True)
    fields.setdefault("moe_token_dispatcher_type", "alltoall")
    fields.setdefault("add_bias_linear", False)
    if values.get("moe_shared_expert_intermediate_size"):
        fields["moe_shared_expert_intermediate_size"] = HIDDEN
    if fields["moe_token_dispatcher_type"] == "flex":
        fields["moe_token_dispatcher_type"] = "alltoall"
        notes.append("the flex dispatcher needs DeepEP or HybridEP: the proxy dispatches with alltoall")
    frequency = values.get("moe_layer_freq")
    if isinstance(frequency, str):
        frequency = layer_pattern(frequency)
    if (isinstance(frequency, list) and has_layer(frequency, 0)) or values.get("first_k_dense_replace"):
        # One dense layer, then experts, is the least that shows both kinds.
        fields["moe_layer_freq"] = [0] + [1] * (LAYERS - 1)


def _activation(fields: dict[str, Any], notes: list[str]) -> None:
    """The proxy has no biases unless the values say so, and megatron-core fuses a plain GeLU only with one."""
    shown = ("activation_func", "gated_linear_unit", "add_bias_linear")
    if fields.get("bias_activation_fusion") and not any(name in fields for name in shown):
        del fields["bias_activation_fusion"]
        notes.append("bias_activation_fusion is omitted: the values do not show which activation is fused")


def _recompute(fields: dict[str, Any], notes: list[str]) -> None:
    modules = fields.get("recompute_modules")
    if isinstance(modules, str):
        modules = fields["recompute_modules"] = names_in(modules)
    if modules and MLA_MODULE in modules:
        fields["recompute_modules"] = [name for name in modules if name != MLA_MODULE]
        notes.append(f"{MLA_MODULE} is not recomputed: only multi-latent attention has it")
        if not fields["recompute_modules"]:
            # Without modules, megatron-core would recompute another part.
            del fields["recompute_modules"]
            fields.pop("recompute_granularity", None)
    if fields.get("recompute_granularity") == "full":
        fields.setdefault("recompute_method", "uniform")
        fields["recompute_num_layers"] = 1
        return
    for name in ("recompute_method", "recompute_num_layers"):
        fields.pop(name, None)
    if "recompute_granularity" not in fields and fields.pop("recompute_modules", None):
        notes.append("recompute_modules without recompute_granularity has no effect and is omitted")


def _precision(values: Mapping[str, Any]) -> str:
    said = str(values.get("precision", ""))
    if values.get("fp16") is True or ("16" in said and "bf" not in said):
        return "fp16"
    if said.startswith("32") or (values.get("bf16") is False and values.get("fp16") is not True):
        return "fp32"
    return "bf16"


def _count(value: Any, none: int = 1) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else none

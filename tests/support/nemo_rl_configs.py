"""Random configurations of NeMo-RL's policy: overrides of its example, of keys that decide about graphs."""

from __future__ import annotations

from random import Random
from typing import Any

MODELS: dict[str, dict[str, Any]] = {
    "dense": {},
    "experts": {"num_moe_experts": 4, "moe_grouped_gemm": True, "moe_ffn_hidden_size": 64},
}
"""Models that a checkpoint may have. A configuration does not show which."""
FIELDS = (
    *("cuda_graph_impl", "cuda_graph_modules", "cuda_graph_warmup_steps", "use_te_rng_tracker", "transformer_impl"),
    *("recompute_granularity", "recompute_modules", "fine_grained_activation_offloading", "offload_modules"),
    *("pipeline_model_parallel_size", "expert_model_parallel_size", "gradient_accumulation_fusion", "fp16", "fp8"),
    *("fp8_recipe", "moe_token_dispatcher_type", "moe_shared_expert_overlap", "cuda_graph_use_single_mempool"),
    *("virtual_pipeline_model_parallel_size", "batch_p2p_comm", "overlap_p2p_comm", "variable_seq_lengths"),
    *("hidden_dropout", "attention_dropout", "num_moe_experts", "cpu_offloading", "moe_paged_stash"),
    *("overlap_moe_expert_parallel_comm", "delay_wgrad_compute", "moe_expert_capacity_factor"),
    *("moe_pad_expert_input_to_capacity", "inference_grouped_gemm_backend", "moe_router_padding_for_fp8"),
    *("moe_pad_experts_for_cuda_graph_inference", "hybrid_context_parallel", "flash_decode"),
    *("ddp.check_for_nan_in_grad", "ddp.overlap_grad_reduce", "ddp.use_megatron_fsdp"),
    *("rerun_state_machine.check_for_nan_in_loss", "optimizer.loss_scale"),
    "optimizer.overlap_param_gather_with_optimizer_step",
)
"""Fields that the configuration has when the model is built."""

_IMPLEMENTATIONS = ["transformer_engine"] * 6 + ["full_iteration"] * 2 + ["none", "local"]
_MODULES: list[Any] = [
    *(["attn"], ["attn"], ["mlp"], ["attn", "mlp"], ["moe_router"], ["attn", "moe_router"], ["moe"], []),
    *(
        ["attn", "moe_router", "moe_preprocess"],
        ["moe_router", "moe_preprocess"],
        ["moe_preprocess"],
        "attn",
        "attn,mlp",
    ),
]
_KEYS: dict[str, list[Any]] = {
    "activation_checkpointing": [True, False],
    "recompute_granularity": ["full", "selective"],
    "recompute_modules": [None, ["core_attn"], ["mlp"], ["moe"], ["layernorm"], ["moe_act"], ["core_attn", "mlp"]],
    "cuda_graph_warmup_steps": [0, 3],
    "inference_cuda_graph_scope": ["none", "layer", "block"],
    "fine_grained_activation_offloading": [True, False],
    "offload_modules": [["core_attn", "attn_proj"], ["core_attn"], ["moe_act"], ["expert_fc1"], None],
    "pipeline_model_parallel_size": [1, 2],
    "moe_token_dispatcher_type": ["alltoall", "allgather"],
    "moe_shared_expert_overlap": [False],
    "gradient_accumulation_fusion": [True, False],
    "transformer_impl": ["transformer_engine", "local"],
    # Not forwarded.
    "cpu_offloading": [True],
    "virtual_pipeline_model_parallel_size": [2],
    "cuda_graph_use_single_mempool": [False],
    "attention_dropout": [0.1],
    "num_moe_experts": [4],
    "overlap_moe_expert_parallel_comm": [True],
    "use_te_rng_tracker": [False],
    "check_for_nan_in_grad": [False],
    "moe_pad_expert_input_to_capacity": [True],
}
_OVERRIDES: dict[str, list[Any]] = {
    "num_moe_experts": [4, None],
    "hidden_dropout": [0.0, 0.1],
    "attention_dropout": [0.0, 0.1],
    "cpu_offloading": [True],
    "cuda_graph_use_single_mempool": [False],
    "cuda_graph_modules": [["attn"]],
    "moe_layer_freq": [1],
    "moe_input_jitter_eps": [0.1],
    "batch_p2p_sync": [False],
}


def random_policy(chance: Random) -> dict[str, Any]:
    """Return overrides of ``policy``."""
    megatron: dict[str, Any] = {"enabled": True, "cuda_graph_impl": chance.choice(_IMPLEMENTATIONS)}
    if megatron["cuda_graph_impl"] != "full_iteration" or chance.random() < 0.2:
        megatron["cuda_graph_modules"] = chance.choice(_MODULES)
    megatron["activation_checkpointing"] = chance.random() < 0.4
    for key in chance.sample(list(_KEYS), chance.randrange(6)):
        megatron[key] = chance.choice(_KEYS[key])
    if chance.random() < 0.3:
        names = chance.sample(list(_OVERRIDES), chance.randrange(1, 4))
        megatron["model_overrides"] = {name: chance.choice(_OVERRIDES[name]) for name in names}
    if chance.random() < 0.15:
        megatron["fp8_cfg"] = {"enabled": chance.random() < 0.7, "fp8": "e4m3", "fp8_recipe": "blockwise"}
    if chance.random() < 0.15:
        ddp = {"overlap_grad_reduce": chance.random() < 0.5, "overlap_param_gather": False}
        megatron["distributed_data_parallel_config"] = ddp
    policy: dict[str, Any] = {"sequence_packing": {"enabled": chance.random() < 0.25}, "megatron_cfg": megatron}
    if chance.random() < 0.1:
        policy["precision"] = chance.choice(["bfloat16", "float16"])
    return policy


def without_graphs(policy: dict[str, Any]) -> dict[str, Any]:
    """Return overrides that capture nothing and are the same otherwise."""
    off = {"cuda_graph_impl": "none", "cuda_graph_modules": []}
    others = {name: value for name, value in policy["megatron_cfg"].items() if name != "inference_cuda_graph_scope"}
    if overrides := others.get("model_overrides"):
        others["model_overrides"] = {name: value for name, value in overrides.items() if name not in off}
    return {**policy, "megatron_cfg": {**others, **off}}

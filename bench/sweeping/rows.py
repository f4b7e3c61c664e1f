"""What configurations are made of: alternatives around the settings of graphs, for each reader.

A row has alternatives, of which a configuration has one or none. They are what the releases' validations combine with
graphs, and neighbours of it that they accept.
"""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]
OLD_MODULES = [
    *(["attn"], ["mlp"], ["attn", "mlp"], ["moe"], ["moe_router"], ["attn", "moe_router"], ["attn", "moe"]),
    *(["moe_router", "moe_preprocess"], ["attn", "moe_router", "moe_preprocess"], ["moe_preprocess"], ["mamba"]),
    *(["moe", "moe_router"], ["attn", "mlp", "moe_router"], [], "attn", "attn,mlp", "moe_router,moe_preprocess"),
]
"""Values for parts of layers, as 0.16 and later read them."""
WHOLE = ["full", ["full"], ["full", "attn"]]
ITERATIONS = [
    *("full_iteration", ["full_iteration"], "full_iteration_inference", ["full_iteration_inference"]),
    *(["full_iteration", "attn"], ["attn", "full_iteration_inference"], ["full_iteration", "full_iteration_inference"]),
]


# --- graphs -----------------------------------------------------------------------------------------


def _both(first: list[Settings], second: list[Settings]) -> list[Settings]:
    return [one | other for one in first for other in second]


def _implementations(*names: str) -> list[Settings]:
    return [{"cuda_graph_impl": name} for name in names]


def graphs_of_0_17() -> list[list[Settings]]:
    """Settings of graphs in groups, of which each is as likely as the others."""
    layers = [{"cuda_graph_scope": value} for value in OLD_MODULES]
    odd = [{"cuda_graph_scope": value} for value in (*WHOLE, *ITERATIONS)]
    booleans = [{"enable_cuda_graph": True}, {"external_cuda_graph": True}, {"enable_cuda_graph": False}]
    return [
        _both(_implementations("transformer_engine"), [{}, *layers]),
        _both(_implementations("local"), [{}, *layers]),
        [{"cuda_graph_impl": "local", "cuda_graph_scope": value} for value in ITERATIONS[:4]],
        _both(_implementations("none", "local", "transformer_engine"), odd),
        _both(booleans, [{}, {}, *layers[:8], *odd[3:6]]),
        _both(booleans, _implementations("none", "local", "transformer_engine")),
        [{"enable_cuda_graph": True, "external_cuda_graph": True}],
    ]


def graphs_since_0_18() -> list[list[Settings]]:
    """Settings of graphs in groups, of which each is as likely as the others."""
    layers = [{"cuda_graph_modules": value} for value in OLD_MODULES]
    old = [{"cuda_graph_scope": value} for value in (*OLD_MODULES[:8], *WHOLE, *ITERATIONS)]
    odd = [{"cuda_graph_modules": value} for value in (*WHOLE, *ITERATIONS)]
    inference = [{"inference_cuda_graph_scope": value} for value in ("none", "layer", "block")]
    booleans = [{"enable_cuda_graph": True}, {"external_cuda_graph": True}]
    every = _implementations("none", "local", "transformer_engine", "full_iteration")
    return [
        _both(_implementations("transformer_engine"), [{}, *layers]),
        _both(_implementations("transformer_engine"), [{}, *layers]),
        _both(_implementations("local"), _both([{}, *layers], [{}, *inference])),
        _both(_implementations("full_iteration"), [{}, {}, {"cuda_graph_modules": []}, *inference[:1]]),
        _both(_implementations("full_iteration"), [{}, {}, {"cuda_graph_modules": ["attn"]}, *inference]),
        _both(every, _both([{}, *odd, *old], [{}, {}, *inference])),
        _both(booleans, [{}, *layers[:6], *old[:6], *odd, *every]),
        [{"cuda_graph_scope": ["attn"], "cuda_graph_modules": ["mlp"], "cuda_graph_impl": "transformer_engine"}],
    ]


# --- what is around them ----------------------------------------------------------------------------

EXPERTS: Settings = {"num_moe_experts": 8, "add_bias_linear": False}
DROPS: Settings = {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
ALLTOALL: Settings = {"moe_token_dispatcher_type": "alltoall"}
MODELS: list[Settings] = [
    EXPERTS,
    EXPERTS | {"moe_layer_freq": 2},
    EXPERTS | {"moe_layer_freq": [0, 1, 1, 1]},
    EXPERTS | {"moe_layer_freq": [1, 1, 1, 1]},
    EXPERTS | DROPS | ALLTOALL,
    EXPERTS | DROPS | ALLTOALL | {"moe_layer_freq": 2},
    EXPERTS | ALLTOALL,
    EXPERTS | ALLTOALL | {"moe_expert_capacity_factor": 1.0},
    EXPERTS | ALLTOALL | {"moe_router_padding_for_fp8": True},
    EXPERTS | ALLTOALL | {"moe_router_padding_for_quantization": True},
    EXPERTS | {"moe_input_jitter_eps": 0.01},
    EXPERTS | {"moe_shared_expert_intermediate_size": 64},
    EXPERTS | ALLTOALL | {"moe_shared_expert_intermediate_size": 64, "moe_shared_expert_overlap": True},
    {"num_moe_experts": 1, "add_bias_linear": False},
]
OVERLAP = EXPERTS | ALLTOALL | {"overlap_moe_expert_parallel_comm": True, "expert_model_parallel_size": 2, "bf16": True}
STASH = EXPERTS | {
    "moe_expert_rank_capacity_factor": 1.5,
    "moe_token_dispatcher_type": "flex",
    "moe_flex_dispatcher_backend": "hybridep",
    "use_transformer_engine_op_fuser": True,
}
FULL: Settings = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
RECOMPUTES: list[Settings] = [
    FULL,
    FULL | {"recompute_method": "block"},
    {"recompute_granularity": "selective"},
    *(
        {"recompute_granularity": "selective", "recompute_modules": names}
        for names in (["core_attn"], ["mlp"], ["moe"], ["core_attn", "mlp"], ["layernorm"], ["moe_act"])
    ),
]
DROPOUTS: list[Settings] = [
    {"attention_dropout": 0.0},
    {"hidden_dropout": 0.0},
    {"attention_dropout": 0.0, "hidden_dropout": 0.0},
    {"attention_dropout": 0.1, "hidden_dropout": 0.1},
]
OFFLOADS: list[Settings] = [
    {"cpu_offloading": True, "cpu_offloading_num_layers": 2},
    *(
        {"fine_grained_activation_offloading": True, "offload_modules": names}
        for names in (["core_attn"], ["expert_fc1"], ["moe_act"], ["expert_fc1", "core_attn"], ["attn_norm"])
    ),
]
ONLY_SINCE_0_18: list[Settings] = [
    {"fine_grained_activation_offloading": True, "offload_modules": ["core_attn"], "cuda_graph_warmup_steps": 0},
    *(
        {
            "fine_grained_activation_offloading": True,
            "offload_modules": ["core_attn"],
            "fine_grained_offloading_max_inflight_offloads": number,
        }
        for number in (0, 2, -1)
    ),
    STASH,
    STASH | {"moe_paged_stash": True},
    EXPERTS | {"moe_paged_stash": True},
    STASH | {"moe_paged_stash": True, "cpu_offloading": True, "cpu_offloading_num_layers": 2},
    STASH | {"moe_paged_stash": True, "fine_grained_activation_offloading": True, "offload_modules": ["expert_fc1"]},
]
SHARED = EXPERTS | {
    "recompute_granularity": "selective",
    "recompute_modules": ["shared_experts"],
    "gtp_weight_remat_size": 2,
    "moe_shared_expert_intermediate_size": 64,
}
ONLY_SINCE_0_19: list[Settings] = [
    SHARED,
    SHARED | {"fp8": "hybrid"},
    SHARED | {"fp4": "e2m1"},
    SHARED | ALLTOALL | {"fp8": "hybrid", "moe_shared_expert_overlap": True},
]
OTHERS: list[Settings] = [
    {"cuda_graph_warmup_steps": 0},
    {"cuda_graph_use_single_mempool": False},
    {"cuda_graph_retain_backward_graph": True},
    {"use_te_rng_tracker": True},
    {"inference_rng_tracker": True},
    {"flash_decode": True},
    {"fp8": "hybrid"},
    {"fp8": "e4m3", "fp8_recipe": "mxfp8"},
    {"bf16": True},
    {"calculate_per_token_loss": True},
    {"delay_wgrad_compute": True} | OVERLAP,
    OVERLAP,
    OVERLAP | {"moe_layer_freq": 2},
    {"pipeline_model_parallel_size": 2, "pipeline_dtype": "torch.bfloat16"},
    {
        "pipeline_model_parallel_size": 2,
        "pipeline_dtype": "torch.bfloat16",
        "virtual_pipeline_model_parallel_size": 2,
    },
    {"transformer_impl": "local"},
    {"mtp_num_layers": 1},
    {"is_hybrid_model": True},
]
OPTIMIZED = EXPERTS | {
    "transformer_impl": "inference_optimized",
    "moe_router_dtype": "fp32",
    "normalization": "RMSNorm",
}
INFERENCE: list[Settings] = [
    OPTIMIZED,
    OPTIMIZED | {"gated_linear_unit": True},
    OPTIMIZED | {"inference_grouped_gemm_backend": "te"},
    OPTIMIZED | {"inference_grouped_gemm_backend": "auto"},
]


def around(release: str) -> list[list[Settings]]:
    """The rows around graphs in a release."""
    rows = [MODELS, MODELS, RECOMPUTES, RECOMPUTES, DROPOUTS, OFFLOADS, OTHERS]
    if release == "0.17":
        return [*rows, INFERENCE]
    return [*rows, ONLY_SINCE_0_18 + (ONLY_SINCE_0_19 if release == "0.19" else [])]


def graphs(release: str) -> list[list[Settings]]:
    """The groups of graphs in a release."""
    return graphs_of_0_17() if release == "0.17" else graphs_since_0_18()


# --- Megatron-LM's command line ---------------------------------------------------------------------

_NAMES = {
    "num_moe_experts": "--num-experts",
    "fp8": "--fp8-format",
    "fp4": "--fp4-format",
    "use_te_rng_tracker": "--te-rng-tracker",
    "gated_linear_unit": "--swiglu",
}
_WITHOUT = {"add_bias_linear": "--disable-bias-linear"}
_NO_FLAG = {"cpu_offloading", "pipeline_dtype", "bf16", "cuda_graph_use_single_mempool", "gtp_weight_remat_size"}
_NO_FLAG |= {"cuda_graph_retain_backward_graph", "use_transformer_engine_op_fuser"}
_LISTS = {"cuda_graph_scope", "cuda_graph_modules", "recompute_modules", "offload_modules"}


def flags(settings: Settings) -> list[str]:
    """Settings as the words of a command line."""
    words: list[str] = []
    for name, value in settings.items():
        if name in _NO_FLAG or (value == [] and name in _LISTS) or value is None:
            continue
        flag = _NAMES.get(name, "--" + name.replace("_", "-"))
        if name == "virtual_pipeline_model_parallel_size":
            words += ["--num-virtual-stages-per-pipeline-rank", str(value)]
        elif isinstance(value, bool):
            words += [flag] if value else ([_WITHOUT[name]] if name in _WITHOUT else [])
        elif name == "moe_layer_freq" and isinstance(value, list):
            words += [flag, str(value).replace(" ", "")]
        elif isinstance(value, list):
            words += [flag, *value]
        elif name in _LISTS:
            words += [flag, *value.split(",")]
        else:
            words += [flag, str(value)]
    return words


RL = "--perform-rl-step --grpo-prompts-per-step 1 --grpo-group-size 8"
WGRAD = (
    "--overlap-moe-expert-parallel-comm --delay-wgrad-compute --num-experts 8"
    " --expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall"
)
FUSED = "--overlap-grad-reduce --disable-bias-linear"
ONLY_FLAGS = (
    ("--no-check-for-nan-in-loss-and-grad", "--fp16", "--fp16 --loss-scale 1"),
    ("--te-rng-tracker", "--inference-rng-tracker"),
    ("--transformer-impl local", "--transformer-impl inference_optimized"),
    (
        *(f"--inference-dynamic-batching-num-cuda-graphs {number}" for number in (0, -1, 4, -2)),
        "--inference-batch-times-seqlen-threshold 64 --pipeline-model-parallel-size 2",
        "--inference-batch-times-seqlen-threshold -1 --pipeline-model-parallel-size 2",
        "--num-experts 8 --disable-bias-linear --expert-model-parallel-size 2",
        "--num-experts 8 --disable-bias-linear --expert-model-parallel-size 2"
        " --moe-pad-experts-for-cuda-graph-inference",
    ),
    (
        "--fp8-format e4m3 --transformer-impl inference_optimized",
        "--fp8-format e4m3 --fp8-recipe mxfp8 --transformer-impl inference_optimized --fp8-param-gather",
        "--fp8-format hybrid",
        "--fp4-format e2m1",
    ),
    (
        f"{WGRAD} {FUSED}",
        f"{WGRAD} {FUSED} --no-gradient-accumulation-fusion",
        f"{WGRAD} {FUSED} --add-qkv-bias",
        f"{WGRAD} --overlap-grad-reduce",
        f"{WGRAD} {FUSED} --no-gradient-accumulation-fusion --moe-shared-expert-intermediate-size 64",
        f"{WGRAD} --disable-bias-linear --no-gradient-accumulation-fusion",
    ),
    (
        RL,
        *(f"{RL} --rl-{flag}-cuda-graphs" for flag in ("persist", "training")),
        f"{RL} --rl-kv-cache-management-mode offload",
        f"{RL} --rl-kv-cache-management-mode offload --rl-persist-cuda-graphs",
    ),
    (
        "--recompute-activations",
        "--optimizer-cuda-graph",
        "--rampup-batch-size 8 8 64 --global-batch-size 64",
        "--hybrid-context-parallel --calculate-per-token-loss",
        "--cpu-offloading-num-layers 2",
        "--use-megatron-fsdp --ckpt-format fsdp_dtensor --no-gradient-accumulation-fusion",
        "--overlap-param-gather --use-distributed-optimizer --overlap-grad-reduce",
        "--sequence-parallel --tensor-model-parallel-size 2",
        "--moe-layer-freq ([1]*4) --num-experts 8 --disable-bias-linear",
        "--moe-layer-freq ([0]*1+[1]*3) --num-experts 8 --disable-bias-linear",
    ),
)
"""Flags that are no field of TransformerConfig, or that the command line reads in its own way."""
ENVIRONMENTS = (
    {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:512,expandable_segments:True"},
    {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "NCCL_GRAPH_REGISTER": "0"},
    {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "NCCL_GRAPH_REGISTER": "1"},
    {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"},
    {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
)
BASE_FLAGS = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --bf16"
    " --micro-batch-size 1 --global-batch-size 8 --tokenizer-type NullTokenizer --vocab-size 9 --lr 1 --train-iters 9"
)


# --- Megatron-Bridge --------------------------------------------------------------------------------

CHECKS: list[dict[str, Settings]] = [
    {"rerun_state_machine": {"check_for_nan_in_loss": False}},
    {"rerun_state_machine": {"check_for_nan_in_loss": False}, "ddp": {"check_for_nan_in_grad": False}},
    {"rerun_state_machine": {"check_for_nan_in_loss": True}, "ddp": {"check_for_nan_in_grad": False}},
]
_DELAYED: dict[str, Settings] = {
    "model": OVERLAP,
    "comm_overlap": {
        "tp_comm_overlap": False,
        "overlap_moe_expert_parallel_comm": True,
        "delay_wgrad_compute": True,
    },
}


def _delayed(**model: Any) -> dict[str, Settings]:
    return _DELAYED | {"model": OVERLAP | model}


SECTIONS: list[list[dict[str, Settings]]] = [
    CHECKS,
    CHECKS,
    [
        {"rng": {"te_rng_tracker": True}},
        {"rng": {"te_rng_tracker": True}, "model": {"use_te_rng_tracker": True}},
        {"rng": {"te_rng_tracker": False}},
        {"rng": {"inference_rng_tracker": True}},
    ],
    [
        {"ddp": {"overlap_grad_reduce": True}},
        {"ddp": {"use_distributed_optimizer": True, "overlap_param_gather": True, "overlap_grad_reduce": True}},
        {"comm_overlap": {"tp_comm_overlap": False}},
        {"comm_overlap": {"tp_comm_overlap": False, "overlap_moe_expert_parallel_comm": True}, "model": OVERLAP},
        _delayed(gradient_accumulation_fusion=True),
        _delayed(gradient_accumulation_fusion=False),
        _delayed(gradient_accumulation_fusion=True, add_qkv_bias=True),
        _delayed(gradient_accumulation_fusion=True, add_bias_linear=True),
        _delayed(gradient_accumulation_fusion=False, moe_shared_expert_intermediate_size=64),
    ],
]
BASE_SECTIONS: dict[str, Settings] = {
    "model": {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "seq_length": 32, "vocab_size": 64},
    "train": {"train_iters": 9, "micro_batch_size": 1, "global_batch_size": 8},
    "optimizer": {"lr": 0.1},
    "dataset": {
        "seq_length": 32,
        "random_seed": 1,
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
    },
}
WRITTEN_SECTIONS: dict[str, Settings] = {
    "rerun_state_machine": {"check_for_nan_in_loss": True},
    "ddp": {"check_for_nan_in_grad": False, "overlap_grad_reduce": False, "use_distributed_optimizer": False},
    "rng": {"te_rng_tracker": False, "inference_rng_tracker": False},
}
"""Deciding settings of other sections than the model's, with their defaults."""

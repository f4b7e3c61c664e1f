"""Combinations of the six settings, and what megatron-core says of some because of other settings."""

from __future__ import annotations

import itertools

from cgmigrate.megatron.settings import FIELDS

# Refusals that other settings decide (experts, recompute, offload); they wait for the lint rules.
CONTEXT = (
    "moe cuda graph is only supported for MoE",
    "moe cuda graph is only supported with drop-padding MoE",
    "mlp cuda graph is only supported for dense layers",
    "moe_preprocess cuda graph is not supported when there are DtoH",
    "full recompute is only supported",
    "attention dropout is not supported",
    "hidden dropout is not supported",
    "moe recompute is not supported",
    "CPU offloading",
    "activation recomputation",
    "offload",
    "fp8",
    "Bias is not supported for MoE",
    "check-for-nan",
    "expandable_segments",
    "recompute_granularity",
    "num_cuda_graphs",
    "Hybrid context",
    "enable_cuda_graph'",  # hybrid context parallelism reads a deleted attribute
    "unsupported operand",
    "rl-training-cuda-graphs",
    "moe-pad-experts",
)


def cross_product() -> list[dict[str, object]]:
    absent = object()
    names = ["full", "attn", "full_iteration", "full_iteration_inference", [], None, "", "attn,mlp", "Attn"]
    names += [["attn", "full_iteration_inference"], ["attn", "full_iteration"], ["moe", "moe_router"]]
    values = {
        "enable_cuda_graph": [absent, False, True],
        "external_cuda_graph": [absent, True],
        "cuda_graph_impl": [absent, "none", "local", "transformer_engine", "full_iteration", "bogus"],
        "cuda_graph_scope": [absent, *names],
        "cuda_graph_modules": [absent, "full", "full_iteration", [], ["attn"], "mlp"],
        "inference_cuda_graph_scope": [absent, "none", "layer", "block", "bogus"],
    }
    product = itertools.product(*values.values())
    return [{k: v for k, v in zip(FIELDS, row, strict=True) if v is not absent} for row in product]

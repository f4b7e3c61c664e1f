"""Rules about the settings around graphs, against TransformerConfig itself, which builds neighbours of each rule."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.comparisons import Comparison, Judged
from tests.support.nightly import nightly_only
from tests.support.paths import FETCHED
from tests.support.plans import examine
from tests.support.release_judges import printed
from tests.support.tables import table_of

RULES = load()
OWNERS = ecosystems.load()
SHARED_EXPERTS = "GTP + local CUDA graphs that capture shared_experts"
SAID = table_of(__name__, "SAID")
"""What TransformerConfig says to what a rule reports."""
EARLIER = {
    "CG416": ("does not yet support CUDA graphs with gated linear units", "TE GroupedGEMM is not supported"),
}
"""What only that of 0.17 says, of inference-optimized layers."""
INFERENCE: list[dict[str, Any]] = [
    {
        "num_moe_experts": 8,
        "add_bias_linear": False,
        "moe_router_dtype": "fp32",
        "normalization": "RMSNorm",
        "transformer_impl": layers,
        "gated_linear_unit": gated,
        "inference_grouped_gemm_backend": backend,
        "cuda_graph_impl": implementation,
    }
    for layers in ("inference_optimized", "transformer_engine")
    for gated in (True, False)
    for backend in ("auto", "te")
    for implementation in ("none", "local", "transformer_engine")
]
JUDGE = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from megatron.core.transformer.transformer_config import TransformerConfig
for line in sys.stdin:
    try:
        TransformerConfig(num_layers=4, hidden_size=64, num_attention_heads=4, **json.loads(line))
        print()
    except Exception as error:
        print(type(error).__name__, " ".join(str(error).split()))
"""
READER = """
import json, sys, warnings
warnings.simplefilter("ignore")
from megatron.core.transformer.transformer_config import TransformerConfig
name = sys.argv[1]
for line in sys.stdin:
    config = TransformerConfig(num_layers=4, hidden_size=64, num_attention_heads=4, **json.loads(line))
    print(config.cuda_graph_impl, getattr(config, name))
"""
"""Prints what a release reads of graphs."""
RECOMPUTES: list[dict[str, Any]] = [
    {},
    {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1},
    *({"recompute_granularity": "selective", "recompute_modules": [name]} for name in ("core_attn", "mlp", "moe")),
]
SHARDED = {
    "recompute_granularity": "selective",
    "recompute_modules": ["shared_experts"],
    "gtp_weight_remat_size": 2,
    "moe_shared_expert_intermediate_size": 64,
}
"""Recomputed shared experts whose weights are sharded, which 8 or 4 bits refuse in `local` graphs."""
MODELS: list[dict[str, Any]] = table_of(__name__, "MODELS")
ROUTERS: list[dict[str, Any]] = [
    {},
    {"moe_token_dispatcher_type": "alltoall"},
    {"moe_token_dispatcher_type": "alltoall", "moe_expert_capacity_factor": 1.0},
    {"moe_token_dispatcher_type": "alltoall", "moe_router_padding_for_fp8": True},
    {"moe_input_jitter_eps": 0.01},
]
IMPLEMENTATIONS = ["none", "local", "transformer_engine", "full_iteration"]
CAPTURED = [
    *([], ["attn"], ["mlp"], ["attn", "mlp"], ["moe"], ["moe_router"], ["attn", "moe_router"]),
    *(["moe_router", "moe_preprocess"], ["attn", "moe_router", "moe_preprocess"], ["moe_preprocess"]),
]
OVERLAP = {
    "overlap_moe_expert_parallel_comm": True,
    "expert_model_parallel_size": 2,
    "moe_token_dispatcher_type": "alltoall",
    "bf16": True,
}
"""With what it needs besides."""
OFFLOADS: list[dict[str, Any]] = [
    {},
    {},
    {"cpu_offloading": True, "cpu_offloading_num_layers": 2},
    {"fine_grained_activation_offloading": True, "offload_modules": ["core_attn"]},
    {"fine_grained_activation_offloading": True, "offload_modules": ["expert_fc1"]},
]
STASH = {
    "moe_expert_rank_capacity_factor": 1.5,
    "moe_token_dispatcher_type": "flex",
    "moe_flex_dispatcher_backend": "hybridep",
    "use_transformer_engine_op_fuser": True,
}
"""A capacity of the rank, with what it needs besides."""
ONLY_SINCE_0_18: list[dict[str, Any]] = [
    {"cuda_graph_warmup_steps": 0},
    {"fine_grained_offloading_max_inflight_offloads": 2},
    {"fine_grained_offloading_max_inflight_offloads": -1},
    {"moe_paged_stash": True},
    {"moe_paged_stash": True} | STASH,
    {"fp8": "hybrid"},
]
ONLY_SINCE_0_19: list[dict[str, Any]] = [
    SHARDED,
    *(SHARDED | {"fp8": "hybrid"} | others for others in ({}, {}, {"moe_shared_expert_overlap": True})),
]


def neighbours(
    scope: str, implementations: list[str], scopes: list[list[str]], others: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Configurations that differ in few settings, the same in each run."""
    choose = random.Random(20261123).choice
    result = []
    for _ in range(3000):
        implementation = choose(implementations)
        names = [] if implementation == "full_iteration" else choose(scopes)
        dropouts = {"attention_dropout": choose([0.0, 0.1]), "hidden_dropout": choose([0.0, 0.1])}
        parts = (choose(RECOMPUTES), choose(MODELS), choose(OFFLOADS), dropouts)
        settings: dict[str, Any] = {"cuda_graph_impl": implementation, scope: names}
        for part in parts:
            settings |= part
        settings |= choose(ROUTERS) if settings["num_moe_experts"] else {}
        settings |= choose(others)
        settings |= OVERLAP if settings["num_moe_experts"] and choose([True, False, False]) else {}
        result.append(settings)
    return result


def fetched(version: str) -> str:
    """The folder of a release that is not installed."""
    package = FETCHED / f"megatron-core-{version}"
    if not package.is_dir():
        pytest.skip(f"megatron-core {version} is not fetched")
    return str(package)


def judged(configurations: list[dict[str, Any]], package: str) -> list[str]:
    """What TransformerConfig says to configurations, empty where it accepts one."""
    return printed(JUDGE, configurations, package)


def reported(settings: dict[str, Any], release: Release) -> frozenset[str]:
    text = yaml.safe_dump({"model": settings}, sort_keys=False)
    plan = examine(YamlDocument(text), Context(release, release, RULES, OWNERS))
    return frozenset({diagnostic.rule for diagnostic in plan.diagnostics} & (SAID.keys() | EARLIER.keys()))


def compared(configurations: list[dict[str, Any]], package: str, release: Release) -> Comparison:
    codes = [code for code in SAID | EARLIER if RULES[code].since <= release]
    texts = {code: (*SAID.get(code, ()), *EARLIER.get(code, ())) for code in codes}
    said = judged(configurations, package)
    rows = [Judged(str(one), text, reported(one, release)) for one, text in zip(configurations, said, strict=True)]
    return Comparison(f"TransformerConfig of {release}", rows, texts)


def shown(comparison: Comparison, capsys: pytest.CaptureFixture[str]) -> Comparison:
    """Print the precision and recall of each rule, also if the test passes."""
    with capsys.disabled():
        print(comparison.table())
    assert not comparison.false
    assert not comparison.missed
    return comparison


def test_the_rules_report_what_the_installed_release_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    others = [{}, {}, *ONLY_SINCE_0_18, *ONLY_SINCE_0_19]
    configurations = neighbours("cuda_graph_modules", IMPLEMENTATIONS, CAPTURED, others)

    comparison = shown(compared(configurations, "", Release(0, 19)), capsys)

    assert comparison.refused == {text for texts in SAID.values() for text in texts}


@nightly_only
def test_the_rules_report_what_0_18_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    package = fetched("0.18.2")
    configurations = neighbours("cuda_graph_modules", IMPLEMENTATIONS, CAPTURED, [{}, {}, *ONLY_SINCE_0_18])

    comparison = shown(compared(configurations, package, Release(0, 18)), capsys)

    # It refuses fine-grained offloading with `local` altogether, and it has no sharded weights.
    of_0_19 = {SHARED_EXPERTS, *SAID["CG406"][:2]}
    assert comparison.refused == {text for texts in SAID.values() for text in texts} - of_0_19


def test_the_rules_report_what_0_17_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    package = fetched("0.17.1")
    scopes = [*CAPTURED, ["full_iteration"]]
    configurations = neighbours("cuda_graph_scope", ["none", "local", "transformer_engine"], scopes, [{}])
    configurations += INFERENCE

    comparison = shown(compared(configurations, package, Release(0, 17)), capsys)

    # The others are about assertions of later releases.
    said = [EARLIER["CG416"], *(texts for code, texts in SAID.items() if code not in ("CG406", "CG415"))]
    assert comparison.refused == {text for texts in said for text in texts} - {SHARED_EXPERTS}


@pytest.mark.parametrize(("version", "name"), [("", "cuda_graph_modules"), ("0.17.1", "cuda_graph_scope")])
def test_null_is_the_empty_list(version: str, name: str) -> None:
    """None in a chain of overrides where another file has `[]` changes nothing: docs/coverage.md, stumble 25."""
    package = fetched(version) if version else ""
    implementations = ["none", "local", "transformer_engine"]
    values: list[dict[str, Any]] = [{}, {name: None}, {name: []}]
    configurations = [{"cuda_graph_impl": one} | value for one in implementations for value in values]

    assert printed(READER, configurations, package, [name]) == [f"{one} []" for one in implementations for _ in values]

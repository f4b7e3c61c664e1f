"""Rules about what a job refuses or turns off after it has started, against these statements, executed alone.

They are statements of the installed megatron-core, and the keys that a checkout of NeMo-RL reads.
"""

from __future__ import annotations

import ast
import logging
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.lint.diagnostics import Context
from tests.lint.test_companions_of_ecosystems import OWNERS, RELEASE, RULES, core, function_of, reports
from tests.support.bridge_assertions import refuses
from tests.support.comparisons import assert_judged
from tests.support.paths import NEMO_RL
from tests.support.plans import examine

CONTROLLER = "inference/text_generation_controllers/text_generation_controller.py"
LAYER = "transformer/transformer_layer.py"
IMPLEMENTATIONS = ["none", "local", "transformer_engine", "full_iteration"]
LAYERS = ["local", "transformer_engine", "inference_optimized"]
MODULES = [[], ["attn"], ["mlp"], ["moe_router"], ["attn", "moe_router"], ["moe_router", "moe_preprocess"]]
NAMES = SimpleNamespace(**{name: name for name in ("attn", "mlp", "moe", "moe_router", "moe_preprocess")})
"""In place of CudaGraphModule."""
READ_BY_GENERATION = "cuda_graph_impl = mcore_generation_config['cuda_graph_impl']"
"""The statement of NeMo-RL that needs the key."""


def reports_command(rule: str, program: str, flags: dict[str, Any]) -> bool:
    words = [word for name, value in flags.items() if value is not False for word in (f"--{name}", value)]
    text = " ".join(["torchrun", program, *(str(word) for word in words if word is not True)])
    plan = examine(ShellDocument(text + "\n"), Context(RELEASE, RELEASE, RULES, OWNERS))
    return rule in {diagnostic.rule for diagnostic in plan.diagnostics}


def graphs(impl: str, modules: list[str]) -> dict[str, Any]:
    return {"cuda_graph_impl": impl, "cuda_graph_modules": modules}


# --- generation: CG425 ------------------------------------------------------------------------------


@pytest.mark.parametrize(("impl", "layers"), list(product(IMPLEMENTATIONS, LAYERS)))
@pytest.mark.parametrize(("size", "pads"), list(product([1, 2], [True, False])))
def test_experts_of_programs_that_generate(impl: str, layers: str, size: int, pads: bool) -> None:
    config = SimpleNamespace(
        cuda_graph_impl=impl,
        expert_model_parallel_size=size,
        transformer_impl=layers,
        moe_pad_experts_for_cuda_graph_inference=pads,
    )
    names = {"self": SimpleNamespace(model_config=config)}
    padding = {"is_inference_optimized": layers == "inference_optimized"}
    padding["moe_pad_experts_for_cuda_graph_inference"] = pads
    refused = refuses(core(CONTROLLER), "cuda_graph_impl == 'local'", "--moe-pad-experts", names)
    # The other assertion is of every step, also without graphs; the rule is about graphs.
    refused |= impl == "local" and refuses(core(CONTROLLER), "is_inference_optimized", "cannot be True when", padding)
    flags = {"cuda-graph-impl": impl, "transformer-impl": layers, "expert-model-parallel-size": size}
    flags["moe-pad-experts-for-cuda-graph-inference"] = pads
    assert_judged("CG425", reports_command("CG425", "gpt_dynamic_inference.py", flags), refused)
    assert not reports_command("CG425", "pretrain_gpt.py", flags)


@pytest.mark.parametrize(("impl", "flash"), list(product(IMPLEMENTATIONS, [True, False])))
def test_static_batches(impl: str, flash: bool) -> None:
    # With the kernel, attention returns before this statement.
    context = SimpleNamespace(is_static_batching=lambda: True)
    names = {"self": SimpleNamespace(config=SimpleNamespace(cuda_graph_impl=impl)), "inference_context": context}
    names["in_decode_mode"] = True
    refused = not flash and refuses(core("transformer/attention.py"), "in_decode_mode", "must use flash decode", names)
    flags = {"cuda-graph-impl": impl, "flash-decode": flash}
    assert_judged("CG425", reports_command("CG425", "gpt_static_inference.py", flags), refused)


# --- overlapped experts: CG426 and CG407 ------------------------------------------------------------


@pytest.mark.parametrize(("modules", "overlap"), list(product(MODULES, [True, False])))
def test_overlapped_experts_of_whole_layers(modules: list[str], overlap: bool) -> None:
    config = SimpleNamespace(cuda_graph_modules=modules, overlap_moe_expert_parallel_comm=overlap)
    names = {"self": SimpleNamespace(config=config, is_moe_layer=True), "CudaGraphModule": NAMES}
    names["cuda_graph_output"] = [object()]
    refused = refuses(core(LAYER), "not self.config.cuda_graph_modules", "EP overlap must be", names, without_else=True)
    model = graphs("transformer_engine", modules) | {"overlap_moe_expert_parallel_comm": overlap}
    assert_judged("CG426", reports("CG426", {"model": model | {"num_moe_experts": 8}}), refused)


# --- savings that a graph turns off: CG315 ----------------------------------------------------------


@pytest.mark.parametrize("modules", MODULES)
@pytest.mark.parametrize("offloaded", [["attn_norm"], ["mlp_norm"], ["core_attn"]])
def test_norms_that_are_not_offloaded(modules: list[str], offloaded: list[str]) -> None:
    config = SimpleNamespace(cuda_graph_modules=modules, fine_grained_activation_offloading=True)
    layer = SimpleNamespace(config=config, is_moe_layer=True)
    layer.offload_attn_norm, layer.offload_mlp_norm = ("attn_norm" in offloaded, "mlp_norm" in offloaded)
    before = dict(vars(layer))
    names = {"self": layer, "CudaGraphModule": NAMES, "logger": None, "log_single_rank": lambda *_: None}
    names["logging"] = logging
    path = core(LAYER)
    assert not refuses(path, "fine_grained_activation_offloading", "attn_norm offloading is not", names)
    model = graphs("transformer_engine", modules) | {"fine_grained_activation_offloading": True, "num_moe_experts": 8}
    is_off = vars(layer) != before
    assert_judged("CG315", reports("CG315", {"model": model | {"offload_modules": offloaded}}), is_off)


@pytest.mark.parametrize("modules", MODULES)
@pytest.mark.parametrize(("impl", "shared"), list(product(["local", "transformer_engine"], [True, False])))
def test_norms_that_are_not_recomputed(modules: list[str], impl: str, shared: bool) -> None:
    size = 64 if shared else None
    experts: dict[str, Any] = {"moe_shared_expert_intermediate_size": size, "moe_shared_expert_overlap": shared}
    model = graphs(impl, modules) | experts | {"moe_token_dispatcher_type": "alltoall"}
    layer = SimpleNamespace(config=SimpleNamespace(**model, moe_latent_size=None), is_moe_layer=True)
    names = {"self": layer, "CudaGraphModule": NAMES, "logger": None, "log_single_rank": lambda *_: None}
    names["logging"] = logging
    can_recompute = function_of(core(LAYER), "can_recompute_pre_mlp_layernorm_for_cudagraph", names)
    model |= {"num_moe_experts": 8, "recompute_granularity": "selective", "recompute_modules": ["layernorm"]}
    assert_judged("CG315", reports("CG315", {"model": model}), not can_recompute())


# --- the key that generation of NeMo-RL reads without a default: CG317 --------------------------------


@pytest.mark.parametrize("generation", [{}, {"cuda_graph_impl": "none"}, {"cuda_graph_impl": "local"}])
@pytest.mark.parametrize("backend", ["megatron", "vllm"])
def test_the_implementation_that_generation_reads(generation: dict[str, str], backend: str) -> None:
    if not NEMO_RL.is_dir():
        pytest.skip("no clone of NeMo-RL lies beside the checkout")
    path = NEMO_RL / "nemo_rl/models/generation/megatron/megatron_worker.py"
    statements = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    (node,) = (one for one in statements if isinstance(one, ast.Assign) and ast.unparse(one) == READ_BY_GENERATION)
    settings = generation | {"inference_cuda_graph_scope": "block"}
    is_refused = False
    try:
        exec(compile(ast.Module([node], []), path.name, "exec"), {"mcore_generation_config": settings})
    except KeyError:
        # Another engine does not run this code.
        is_refused = backend == "megatron"
    policy = {"generation": {"backend": backend, "mcore_generation_config": settings}}
    assert_judged("CG317", reports("CG317", {"policy": policy}), is_refused)


# --- keys that NeMo-RL does not forward: CG316 ------------------------------------------------------

DROPPED = {
    "cuda_graph_use_single_mempool": False,
    "overlap_moe_expert_parallel_comm": True,
    "moe_pad_expert_input_to_capacity": True,
    "moe_expert_capacity_factor": 1.0,
    "moe_paged_stash": True,
    "fine_grained_offloading_max_inflight_offloads": 2,
    "delay_wgrad_compute": True,
}
FORWARDED = {"cuda_graph_warmup_steps": 2, "moe_pad_experts_for_cuda_graph_inference": True}


@pytest.mark.parametrize(("key", "value"), [*DROPPED.items(), *FORWARDED.items()])
def test_keys_that_no_code_of_nemo_rl_names(key: str, value: Any) -> None:
    if not NEMO_RL.is_dir():
        pytest.skip("no clone of NeMo-RL lies beside the checkout")
    is_named = any(key in path.read_text(encoding="utf-8") for path in (NEMO_RL / "nemo_rl").rglob("*.py"))
    policy = {"megatron_cfg": graphs("transformer_engine", ["moe_router"]) | {key: value}}
    assert_judged("CG316", reports("CG316", {"policy": policy}), not is_named)

"""Rules about Megatron-Bridge, NeMo-RL and Megatron-FSDP, against the assertions of these packages, executed alone."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.bridge_assertions import refuses
from tests.support.comparisons import assert_judged
from tests.support.paths import FETCHED, MEGATRON_BRIDGE, MEGATRON_LM
from tests.support.plans import examine

RULES = load()
OWNERS = ecosystems.load()
RELEASE = Release(0, 19)
BRIDGE = FETCHED / "megatron-bridge-0.6.2/megatron/bridge"
MODULES: list[list[str]] = [[], ["attn"], ["moe_router"], ["attn", "moe_router"]]
RECIPE = {"ddp": {"overlap_grad_reduce": True}, "rng": {"seed": 1}}
IMPLEMENTATIONS = ["none", "transformer_engine", "full_iteration"]


def reports(rule: str, configuration: dict[str, Any]) -> bool:
    document = YamlDocument(yaml.safe_dump(configuration, sort_keys=False))
    plan = examine(document, Context(RELEASE, RELEASE, RULES, OWNERS))
    return rule in {diagnostic.rule for diagnostic in plan.diagnostics}


def core(path: str) -> Path:
    """A file of the installed megatron-core."""
    megatron = pytest.importorskip("megatron.core")
    return Path(megatron.__file__).parent / path


def graphs(impl: str, modules: list[str]) -> dict[str, Any]:
    return {"cuda_graph_impl": impl} | ({} if impl == "full_iteration" else {"cuda_graph_modules": modules})


# --- Megatron-Bridge --------------------------------------------------------------------------------


@pytest.fixture
def bridge() -> Path:
    if not BRIDGE.is_dir():
        pytest.skip("Megatron-Bridge 0.6.2 is not fetched")
    return BRIDGE


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("modules", MODULES)
@pytest.mark.parametrize(("length", "count"), [(True, True), (True, False), (False, False)])
def test_packing_of_the_bridge(bridge: Path, impl: str, modules: list[str], length: bool, count: bool) -> None:
    dataset = {
        "enable_offline_packing": True,
        "pad_to_max_length": length,
        "offline_packing_specs": {"packed_sequence_size": 4096, "pad_cu_seqlens": count},
    }
    model = graphs(impl, modules)
    configuration = {"model": model, "dataset": dataset, "ddp": {"overlap_grad_reduce": True}, "rng": {"seed": 1}}
    specs = SimpleNamespace(pad_cu_seqlens=count)
    names = {
        "self": SimpleNamespace(dataset=SimpleNamespace(pad_to_max_length=length), model=SimpleNamespace(**model)),
        "offline_packing_specs": specs,
        "cuda_graph_module_names": lambda model: getattr(model, "cuda_graph_modules", []),
        "is_full_iteration_cuda_graph": lambda model: model.cuda_graph_impl == "full_iteration",
    }
    refused = refuses(bridge / "training/config.py", "offline_packing_specs is not None", "captures_packed", names)
    assert_judged("CG409", reports("CG409", configuration), refused)


@pytest.mark.parametrize("modules", MODULES)
@pytest.mark.parametrize(("fusion", "bias", "shared"), list(product([True, False], repeat=3)))
def test_delayed_gradients_of_the_bridge(
    bridge: Path, modules: list[str], fusion: bool, bias: bool, shared: bool
) -> None:
    model: dict[str, Any] = graphs("transformer_engine", modules)
    model |= {"gradient_accumulation_fusion": fusion, "add_qkv_bias": bias, "add_bias_linear": False}
    model |= {"moe_shared_expert_intermediate_size": 64 if shared else None, "moe_shared_expert_overlap": False}
    overlap = {"delay_wgrad_compute": True, "overlap_moe_expert_parallel_comm": True}
    configuration = {"model": model, "comm_overlap": overlap, "ddp": {"overlap_grad_reduce": True}, "rng": {"seed": 1}}
    names = {
        "self": SimpleNamespace(user_comm_overlap_cfg=SimpleNamespace(**overlap, overlap_grad_reduce=True)),
        "ddp_config": SimpleNamespace(overlap_grad_reduce=True),
        "model_cfg": SimpleNamespace(**model, overlap_moe_expert_parallel_comm=True),
        "is_te_min_version": lambda version: True,
        "get_te_version": lambda: "2.16",
        "has_cuda_graph_module": lambda model, name: name in model.cuda_graph_modules,
    }
    refused = refuses(bridge / "training/comm_overlap.py", "delay_wgrad_compute is True", "attention bias", names)
    assert_judged("CG412", reports("CG412", configuration), refused)


@pytest.mark.parametrize("impl", ["none", "transformer_engine", "full_iteration"])
@pytest.mark.parametrize("changes", [True, False])
def test_vision_models_of_the_bridge(bridge: Path, impl: str, changes: bool) -> None:
    model = {"cuda_graph_impl": impl, "variable_seq_lengths": changes}
    names = {"self": SimpleNamespace(language_model=SimpleNamespace(config=SimpleNamespace(**model)))}
    path = bridge / "models/qwen_vl/modelling_qwen3_vl/model.py"
    # Without graphs, the method returns before it.
    refused = impl != "none" and refuses(path, "variable_seq_lengths", "fixed sequence lengths", names)
    others = {"ddp": {"overlap_grad_reduce": True}, "rng": {"seed": 1}}
    assert_judged("CG429", reports("CG429", {"model": model | {"vision_cuda_graph_impl": "none"}} | others), refused)


@pytest.fixture
def newer_bridge() -> Path:
    """Megatron-Bridge of August 2026, which has checks that no release has yet."""
    if not MEGATRON_BRIDGE.is_dir():
        pytest.skip("no clone of Megatron-Bridge lies beside the checkout")
    return MEGATRON_BRIDGE / "src/megatron/bridge"


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("modules", [*MODULES, ["moe_router", "moe_preprocess"]])
@pytest.mark.parametrize(("experts", "packs"), list(product([None, 8], [True, False])))
def test_packed_experts_of_the_bridge(
    newer_bridge: Path, impl: str, modules: list[str], experts: int | None, packs: bool
) -> None:
    model: dict[str, Any] = graphs(impl, modules) | ({"num_moe_experts": experts} if experts else {})
    dataset = {"enable_offline_packing": packs, "pad_to_max_length": True}
    dataset |= {"offline_packing_specs": {"pad_cu_seqlens": True}}
    names = {"cuda_graph_module_names": lambda model: getattr(model, "cuda_graph_modules", [])}
    validate = function_of(newer_bridge / "training/gpt_step.py", "_validate_packed_moe_cuda_graph", names)
    # The step of training calls it if sequences are packed.
    refused = packs and _raises(validate, SimpleNamespace(**model))
    assert_judged("CG422", reports("CG422", {"model": model, "dataset": dataset} | RECIPE), refused)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("vision", [None, "none", "transformer_engine"])
@pytest.mark.parametrize("buffer", [None, 0, 8])
def test_packing_of_energon(newer_bridge: Path, impl: str, vision: str | None, buffer: int | None) -> None:
    model = graphs(impl, ["attn"]) | ({"vision_cuda_graph_impl": vision} if vision else {})
    names = {"self": SimpleNamespace(model=SimpleNamespace(**model))}
    path = newer_bridge / "training/config.py"
    packs = bool(buffer)
    refused = packs and refuses(path, "vision_cuda_graph_impl", "does not support CUDA graphs", names)
    dataset = {} if buffer is None else {"dataset": {"packing_buffer_size": buffer}}
    assert_judged("CG427", reports("CG427", {"model": model} | dataset | RECIPE), refused)


def function_of(path: Path, name: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (node,) = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name)
    values = dict(names)
    exec(compile(ast.Module([node], []), path.name, "exec"), values)
    return values[name]


def _raises(function: Any, value: object) -> bool:
    try:
        function(value)
    except ValueError:
        return True
    return False


# --- NeMo-RL ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", [True, False])
@pytest.mark.parametrize("modules", MODULES)
@pytest.mark.parametrize("impl", ["none", "transformer_engine"])
def test_packing_of_nemo_rl(impl: str, modules: list[str], packing: bool) -> None:
    # Graphs without attention get what attention returns, and no packed sequences.
    kwargs = {"packed_seq_params": object()} if packing and (not modules or "attn" in modules) else {}
    path = core("transformer/transformer_layer.py")
    refused = impl != "none" and refuses(path, "packed_seq_params", "excluded from input list", {"kwargs": kwargs})
    policy = {"megatron_cfg": graphs(impl, modules), "sequence_packing": {"enabled": packing}}
    assert_judged("CG409", reports("CG409", {"policy": policy}), refused)


@pytest.mark.parametrize("impl", ["none", "local", "transformer_engine", "full_iteration"])
def test_the_implementation_of_generation(impl: str) -> None:
    # NeMo-RL turns graphs on with this function, unless the implementation is none.
    refused = refuses(core("transformer/utils.py"), "set_to in", "Invalid CUDA graph", {"set_to": impl})
    policy = {"generation": {"backend": "megatron", "mcore_generation_config": {"cuda_graph_impl": impl}}}
    assert_judged("CG502", reports("CG502", {"policy": policy}), refused)


# --- Megatron-LM ------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", [*IMPLEMENTATIONS, "local"])
@pytest.mark.parametrize(("former", "hybrid"), list(product([True, False], repeat=2)))
def test_hybrid_context_parallelism(impl: str, former: bool, hybrid: bool) -> None:
    pytest.importorskip("megatron.training")
    # Its check reads the former boolean, which says nothing of the implementation; the value shows what is meant.
    args = SimpleNamespace(enable_cuda_graph=former or impl != "none")
    path = core("../training/arguments.py")
    refused = hybrid and refuses(path, "not args.enable_cuda_graph", "Hybrid context", {"args": args})
    flags = {"--cuda-graph-impl": impl} | ({"--enable-cuda-graph": True} if former else {})
    assert_judged("CG424", reports("CG424", {"MODEL_ARGS": flags | {"--hybrid-context-parallel": hybrid}}), refused)


@pytest.mark.parametrize("flag", ["", "--sft", "--dataloader-inter-document-masking"])
@pytest.mark.parametrize("modules", MODULES)
@pytest.mark.parametrize("impl", ["none", "transformer_engine"])
def test_packing_of_megatron_lm(impl: str, modules: list[str], flag: str) -> None:
    if not MEGATRON_LM.is_dir():
        pytest.skip("no clone of Megatron-LM lies beside the checkout")
    # The program's own statement says whether its batches have the bounds of sequences.
    tree = ast.parse((MEGATRON_LM / "pretrain_gpt.py").read_text(encoding="utf-8"))
    (node,) = (one for one in ast.walk(tree) if isinstance(one, ast.Assign) and _sets(one, "has_cu_seqlens"))
    args = SimpleNamespace(dataloader_inter_document_masking="document" in flag)
    names: dict[str, Any] = {"args": args, "is_sft": flag == "--sft"}
    exec(compile(ast.Module([node], []), "pretrain_gpt.py", "exec"), names)
    gets_them = names["has_cu_seqlens"] and (not modules or "attn" in modules)
    kwargs = {"packed_seq_params": object()} if gets_them else {}
    path = core("transformer/transformer_layer.py")
    refused = impl != "none" and refuses(path, "packed_seq_params", "excluded from input list", {"kwargs": kwargs})
    # The flag without names means the same as none.
    named = f"--cuda-graph-modules {' '.join(modules)}" if modules else ""
    line = f"torchrun pretrain_gpt.py --num-experts 8 {flag} --cuda-graph-impl {impl} {named}\n"
    plan = examine(ShellDocument(line), Context(RELEASE, RELEASE, RULES, OWNERS))
    assert_judged("CG409", "CG409" in {diagnostic.rule for diagnostic in plan.diagnostics}, refused)


def _sets(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


# --- Megatron-FSDP ----------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", [*IMPLEMENTATIONS, "local"])
@pytest.mark.parametrize(("fsdp", "overlap"), list(product([True, False], repeat=2)))
def test_megatron_fsdp_with_overlapped_experts(impl: str, fsdp: bool, overlap: bool) -> None:
    config = SimpleNamespace(cuda_graph_impl=impl, overlap_moe_expert_parallel_comm=overlap)
    names = {"config": config, "ddp_config": SimpleNamespace(fsdp_double_buffer=False)}
    path = core("distributed/fsdp/mcore_fsdp_adapter.py")
    refused = fsdp and refuses(path, "overlap_moe_expert_parallel_comm", "does not support per-layer", names)
    flags = {"--cuda-graph-impl": impl, "--use-megatron-fsdp": fsdp, "--overlap-moe-expert-parallel-comm": overlap}
    assert_judged("CG414", reports("CG414", {"MODEL_ARGS": flags}), refused)

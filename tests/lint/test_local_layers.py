"""CG308, CG421 and what `explain` says of layers, against layers that are built on a CPU with a recorder.

The layers of GPT models come from megatron-core's own specification, those of hybrid models are the same classes
without attention or without an MLP. The recorder takes the place of the graph managers: what has none is not captured.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import pytest
import yaml

from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.layer_classes import GPT, HYBRID
from cgmigrate.megatron.releases import Release
from tests.support.comparisons import assert_judged
from tests.support.nightly import nightly_only
from tests.support.paths import FETCHED
from tests.support.plans import examine
from tests.support.release_judges import printed

RULES = load()
OWNERS = ecosystems.load()
JUDGE = """
import json, logging, os, socket, sys, types, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer import cuda_graphs
from megatron.core.ssm.mamba_layer import MambaLayer
from megatron.core.transformer.identity_op import IdentityOp
from megatron.core.transformer.spec_utils import build_module
from megatron.core.transformer.transformer_layer import MoETransformerLayer
from megatron.core.transformer.transformer_config import TransformerConfig
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
torch.distributed.init_process_group("gloo", init_method=address, rank=0, world_size=1)
parallel_state.initialize_model_parallel()
made = []
cuda_graphs.CudaGraphManager = lambda *_, function_name="", **__: made.append(function_name or "all")
torch.cuda.Event = object


def build(config, kind):
    experts = config.num_moe_experts if kind in ("GPT", "experts") else None
    layer = get_gpt_layer_local_spec(num_experts=experts)
    if kind == "Mamba":
        # Its other parts need kernels; the method that makes the managers reads the configuration only.
        return MambaLayer.create_mcore_cudagraph_manager(types.SimpleNamespace(config=config), config)
    if kind == "experts":
        layer.module, layer.submodules.self_attention = MoETransformerLayer, IdentityOp
    if kind == "MLP":
        layer.submodules.self_attention = IdentityOp
    if kind == "attention":
        layer.submodules.mlp = IdentityOp
    return build_module(layer, config=config, layer_number=1)


size = {"num_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "add_bias_linear": False}
for line in sys.stdin:
    kind, settings = json.loads(line)
    made.clear()
    graphable = kind == "graphable"
    try:
        config = TransformerConfig(**size, **settings, use_cpu_initialization=True)
    except Exception:
        print("refused")
        continue
    if graphable:
        # Every second layer may be dense: of each kind one is built.
        layers = [get_gpt_layer_local_spec(num_experts=one) for one in {config.num_moe_experts, None}]
        if config.moe_layer_freq == 1:
            layers = [get_gpt_layer_local_spec(num_experts=config.num_moe_experts)]
        built = [build_module(layer, config=config, layer_number=1) for layer in layers]
        print("all" if any(cuda_graphs._layer_is_graphable(layer, config) for layer in built) else "nothing")
        continue
    try:
        build(config, kind)
        print("nothing" if not made else "all" if "all" in made else "parts")
    except AttributeError as error:
        print("is_moe_layer" if "is_moe_layer" in str(error) else error)
"""
CAPACITY = {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
MODELS: list[dict[str, Any]] = [
    {},
    {"num_moe_experts": 4},
    {"num_moe_experts": 4, "moe_layer_freq": 2},
    {"num_moe_experts": 4, "moe_layer_freq": 2} | CAPACITY,
]
NAMES = ("attn", "mlp", "mamba", "moe", "moe_router", "moe_preprocess")
MODULES = [list(names) for count in range(len(NAMES) + 1) for names in combinations(NAMES, count)]


KINDS = {
    "GPT": GPT[0],
    **{name: one for name in ("attention", "MLP", "Mamba", "experts") for one in HYBRID if name in one.name},
}
SAYS = {
    "the whole layer": "all",
    "the router, and what follows the experts": "parts",
    "cannot be built (AttributeError: is_moe_layer)": "is_moe_layer",
    "nothing": "nothing",
}
REPORTED_AS = {"nothing": {"CG308"}, "is_moe_layer": {"CG421"}, "all": set[str]()}
"""What becomes of a layer of a GPT model, and the rules that report it."""


def structures(name: str) -> list[dict[str, Any]]:
    return [{"cuda_graph_impl": "local", name: modules} | model for modules in MODULES for model in MODELS]


def reported(settings: dict[str, Any], release: Release) -> set[str]:
    text = yaml.safe_dump({"model": settings | {"hidden_size": 16}}, sort_keys=False)
    plan = examine(YamlDocument(text), Context(release, release, RULES, OWNERS))
    return {diagnostic.rule for diagnostic in plan.diagnostics} & {"CG308", "CG421"}


def differences(name: str, package: str, release: Release) -> list[str]:
    """Layers of which the model or the rules say something else than the release does; the refused are others'."""
    layers = [(kind, settings) for kind in KINDS for settings in structures(name)]
    rows = [
        (*layer, said) for layer, said in zip(layers, printed(JUDGE, layers, package), strict=True) if said != "refused"
    ]
    assert {said for *_, said in rows} == set(SAYS.values())
    result = []
    for kind, settings, said in rows:
        # With `local`, either name means both.
        modules = frozenset(settings[name])
        is_same = SAYS[KINDS[kind].captured(modules)] == said
        if kind == "GPT":
            is_same = is_same and reported(settings, release) == REPORTED_AS[said]
        result += [] if is_same else [f"{kind} {settings} {said}"]
    return result


def test_layers_of_the_installed_release() -> None:
    assert not differences("cuda_graph_modules", "", Release(0, 19))


@nightly_only
def test_layers_of_0_17() -> None:
    package = FETCHED / "megatron-core-0.17.1"
    if not package.is_dir() or find_spec("torch") is None:
        pytest.skip("megatron-core 0.17.1 is not fetched, or torch is not installed")
    assert not differences("cuda_graph_scope", str(package), Release(0, 17))


def test_layers_that_transformer_engine_captures() -> None:
    configurations = [one | {"cuda_graph_impl": "transformer_engine"} for one in structures("cuda_graph_modules")]
    said = printed(JUDGE, [("graphable", one) for one in configurations], "")
    assert set(said) == {"all", "nothing", "refused"}
    for settings, captured in zip(configurations, said, strict=True):
        flags = shlex.join(["--cuda-graph-modules", *settings["cuda_graph_modules"]])
        experts = "--num-experts 4" if "num_moe_experts" in settings else ""
        line = f"torchrun pretrain_gpt.py --num-layers 2 --cuda-graph-impl transformer_engine {flags} {experts}\n"
        plan = examine(ShellDocument(line), Context(Release(0, 19), Release(0, 19), RULES, OWNERS))
        is_reported = "CG308" in {diagnostic.rule for diagnostic in plan.diagnostics}
        if captured != "refused":
            assert_judged("CG308", is_reported, captured == "nothing")

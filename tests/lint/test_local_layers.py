"""CG308 and CG421 against layers of GPT models, built on a CPU from megatron-core's own specification.

A recorder takes the place of the graph managers: what has none is not captured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import pytest
import yaml

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.paths import FETCHED
from tests.support.plans import examine

RULES = load()
OWNERS = ecosystems.load()
JUDGE = """
import json, logging, os, socket, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer import cuda_graphs
from megatron.core.transformer.spec_utils import build_module
from megatron.core.transformer.transformer_config import TransformerConfig
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
torch.distributed.init_process_group("gloo", init_method=address, rank=0, world_size=1)
parallel_state.initialize_model_parallel()
made = []
cuda_graphs.CudaGraphManager = lambda *_, **__: made.append(True)
size = {"num_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "add_bias_linear": False}
for line in sys.stdin:
    settings = json.loads(line)
    made.clear()
    try:
        config = TransformerConfig(**size, **settings, use_cpu_initialization=True)
    except Exception:
        print("refused")
        continue
    try:
        layer = get_gpt_layer_local_spec(num_experts=settings.get("num_moe_experts"))
        build_module(layer, config=config, layer_number=1)
        print("captured" if made else "nothing")
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


def structures(name: str) -> list[dict[str, Any]]:
    return [{"cuda_graph_impl": "local", name: modules} | model for modules in MODULES for model in MODELS]


def judged(settings: list[dict[str, Any]], package: str) -> list[str]:
    """What is captured of the first layer of models: ``captured``, ``nothing``, or why there is none."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
    text = "\n".join(map(json.dumps, settings))
    command = [sys.executable, "-c", JUDGE]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=True)
    return ran.stdout.splitlines()


SAYS = {"nothing": {"CG308"}, "is_moe_layer": {"CG421"}, "captured": set[str]()}
"""What becomes of a layer, and the rules that report it."""


def reported(settings: dict[str, Any], release: Release) -> set[str]:
    text = yaml.safe_dump({"model": settings | {"hidden_size": 16}}, sort_keys=False)
    plan = examine(YamlDocument(text), Context(release, release, RULES, OWNERS))
    return {diagnostic.rule for diagnostic in plan.diagnostics} & {"CG308", "CG421"}


def compared(name: str, package: str, release: Release) -> list[str]:
    """Models of which the rules say something else than the release does; those that are refused are others'."""
    models = structures(name)
    rows = [row for row in zip(models, judged(models, package), strict=True) if row[1] != "refused"]
    assert {said for _, said in rows} == SAYS.keys()
    return [f"{settings} {said}" for settings, said in rows if reported(settings, release) != SAYS[said]]


def test_the_rules_report_what_the_installed_release_does_not_capture() -> None:
    if find_spec("megatron") is None or find_spec("megatron.core") is None:
        pytest.skip("the judge is the installed megatron-core")
    assert not compared("cuda_graph_modules", "", Release(0, 19))


def test_the_rules_report_what_0_17_does_not_capture() -> None:
    package = FETCHED / "megatron-core-0.17.1"
    if not package.is_dir() or find_spec("torch") is None:
        pytest.skip("megatron-core 0.17.1 is not fetched, or torch is not installed")
    assert not compared("cuda_graph_scope", str(package), Release(0, 17))

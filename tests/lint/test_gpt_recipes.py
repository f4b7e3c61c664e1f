"""UPG503: notes about calls that make a provider of a GPTModel in recipes of Megatron-Bridge."""

from __future__ import annotations

import json

import pytest

from cgmigrate.documents.python.document import PythonDocument
from cgmigrate.documents.sites import ProblemKind
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.rule_data import rules_folder, upgrade_rules
from tests.support.paths import FETCHED, ROOT
from tests.support.scripts import module_at

SETTINGS = catalogue.load((upgrade_rules(),))
IMPORTS = """\
from megatron.bridge import AutoBridge
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.models.hybrid.hybrid_provider import HybridModelProvider
from megatron.bridge.models.llama import Llama3ModelProvider8B
from megatron.bridge.models.qwen_vl import Qwen25VLModelProvider
from megatron.bridge.models.t5_provider import T5ModelProvider
"""
AUTO = 'AutoBridge.from_hf_pretrained("{}").to_megatron_provider(load_weights=False)'


def notes(*lines: str, top: str = "") -> list[str]:
    """Return what is noted of a recipe with these lines."""
    text = f"{IMPORTS}{top}\n\ndef recipe(cfg, path):\n" + "".join(f"    {line}\n" for line in lines)
    problems = PythonDocument(text, catalogue=SETTINGS).problems
    return [one.message for one in problems if one.kind is ProblemKind.GPT_RECIPE]


@pytest.mark.parametrize(
    "line",
    [
        'cfg.model = HybridModelProvider(hybrid_layer_pattern="M*-")',
        "cfg.model = Qwen25VLModelProvider(num_layers=4)",
        "cfg.model = T5ModelProvider(num_layers=4)",
        "cfg.model = AutoBridge.from_hf_pretrained(path).to_megatron_provider()",
        "cfg.model = " + AUTO.format("nvidia/Nemotron-H-8B-Base-8K"),
        "cfg.model = " + AUTO.format("Qwen/Qwen2.5-VL-7B-Instruct"),
        'AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").save_hf_pretrained(cfg, path)',
        'cfg.model = models.AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").to_megatron_provider()',
    ],
)
def test_other_models_are_not_noted(line: str) -> None:
    assert notes(line) == []


def test_the_pattern_is_that_of_what_the_recipe_writes() -> None:
    (note,) = notes(
        "cfg.model = GPTModelProvider(num_layers=4, num_moe_experts=8, moe_layer_freq=[0, 1, 1, 1], mtp_num_layers=1)",
        "cfg.model.pipeline_model_parallel_size = 2",
    )

    assert note.endswith('the pattern of its layers is `hybrid_layer_pattern="*-*E|*E*E/*E"`')


def test_the_defaults_of_a_class_count() -> None:
    (note,) = notes("cfg.model = Llama3ModelProvider8B()")

    assert f'hybrid_layer_pattern="{"*-" * 32}"' in note


@pytest.mark.parametrize(
    "line",
    ["if path:\n        model.num_layers = 6", "model.num_layers = cfg.layers"],
)
def test_a_number_that_the_function_may_change_is_not_known(line: str) -> None:
    (note,) = notes("model = GPTModelProvider(num_layers=4)", line)

    assert "hybrid_layer_pattern" not in note
    assert note.endswith("its hybrid pattern has `*-` for all layers; the value of `num_layers` is not shown")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("meta-llama/Llama-3.2-1B", "`*-` for all layers"),
        ("Qwen/Qwen3-30B-A3B", "`*E` for all layers"),
        ("deepseek-ai/DeepSeek-V3", "`+E` for all layers with experts and `+-` for all dense layers"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "`GEGEGE*E` for every 4 layers"),
    ],
)
def test_a_checkpoint_decides_how_many_layers_there_are(name: str, pattern: str) -> None:
    (note,) = notes("cfg.model = " + AUTO.format(name))

    assert note.startswith(f"`AutoBridge` of `{name}` builds a GPTModel")
    assert note.endswith(f"{pattern}; `config.json` of the checkpoint decides how many")


def test_the_name_of_a_checkpoint_may_be_a_constant_and_the_bridge_a_variable() -> None:
    lines = "bridge = AutoBridge.from_hf_pretrained(NAME)", "cfg.model = bridge.to_megatron_provider()"

    assert len(notes(*lines, top='NAME = "Qwen/Qwen3-8B"\n')) == 1
    assert notes(*lines, top='NAME = "Qwen/Qwen3-8B"\nNAME = "nvidia/Nemotron-H-8B-Base-8K"\n') == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("overlap_moe_expert_parallel_comm = True", "has no schedule plan"),
        ("transformer_layer_spec = own_spec", "the layers are those of a specification"),
    ],
)
def test_a_field_may_leave_no_hybrid_form(line: str, reason: str) -> None:
    (note,) = notes("cfg.model = Llama3ModelProvider8B()", f"cfg.model.{line}")

    assert "it has no hybrid form: " in note
    assert reason in note


@pytest.mark.parametrize("setting", ["cuda_graph_scope", "cuda_graph_modules"])
def test_each_module_is_a_part_of_other_graphs_after(setting: str) -> None:
    (note,) = notes(
        "cfg.model = " + AUTO.format("Qwen/Qwen3-30B-A3B"),
        'cfg.model.cuda_graph_impl = "transformer_engine"',
        f'cfg.model.{setting} = ["attn", "moe_router"]',
    )

    assert "`attn` is a part of the graph of each GPT layer before" in note
    assert "graphs of its own: layers with experts of a hybrid model" in note


def test_the_table_is_that_of_the_packages() -> None:
    packages = sorted(FETCHED.glob("megatron-bridge-*"))
    if not packages:
        pytest.skip("no package of Megatron-Bridge")
    module = module_at(ROOT / "scripts/gpt_providers.py")
    table = json.loads((rules_folder() / "gpt_providers.json").read_text("utf-8"))["classes"]

    newest = module.rows(packages[-1])

    assert len(newest) > 10
    assert {name: table.get(name) for name in newest} == newest

"""Errors about Megatron-Bridge's configurations, against its own validation of them and of accepted neighbours."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.releases import Release
from tests.support.files import write
from tests.support.paths import FETCHED, ROOT
from tests.support.plans import examine

sys.path.insert(0, str(ROOT / "bench"))

from sweeping import rows
from sweeping.cases import constructor
from sweeping.run import answering

BRIDGE = FETCHED / "megatron-bridge-0.6.2"
RULES = load()
CATALOGUE = catalogue.load()
OWNERS = ecosystems.load()
TE = {"cuda_graph_impl": "transformer_engine"}
EXPERTS = {"num_moe_experts": 8, "add_bias_linear": False}
RECOMPUTES = {"recompute_granularity": "selective", "recompute_modules": ["mlp"]}
OFFLOADS = {"fine_grained_activation_offloading": True, "offload_modules": ["expert_fc1"]}
WHOLE = {
    "cuda_graph_impl": "full_iteration",
    "fine_grained_activation_offloading": True,
    "offload_modules": ["moe_act"],
}
SHARDED = EXPERTS | {
    "recompute_granularity": "selective",
    "recompute_modules": ["shared_experts"],
    "gtp_weight_remat_size": 2,
    "moe_shared_expert_intermediate_size": 64,
}
DEFAULTS = [
    ("CG404", TE | {"cuda_graph_modules": ["moe_router"]}, TE | EXPERTS | {"cuda_graph_modules": ["moe_router"]}),
    ("CG404", TE | EXPERTS | {"cuda_graph_modules": ["mlp"]}, TE | {"cuda_graph_modules": ["mlp"]}),
    ("CG405", TE | RECOMPUTES, TE | RECOMPUTES | {"hidden_dropout": 0.0}),
    ("CG406", WHOLE, WHOLE | {"fine_grained_offloading_max_inflight_offloads": 0}),
]
"""A rule, what it reports because of the default of a setting, and a neighbour that is accepted."""
BOOLEANS = [
    # The modules of a former boolean do not count: the Bridge clears them, and whole layers are captured.
    ("CG405", {"enable_cuda_graph": True, "cuda_graph_modules": ["attn"]} | RECOMPUTES, "hidden_dropout"),
    ("CG405", {"external_cuda_graph": True, "cuda_graph_scope": ["attn"]} | RECOMPUTES, "hidden_dropout"),
    ("CG405", {"enable_cuda_graph": True, "fp8": "hybrid"} | SHARDED, "fp8"),
    ("CG406", {"enable_cuda_graph": True, "cuda_graph_modules": ["attn"]} | OFFLOADS, "offloading"),
]
"""A rule, what it reports, and the setting that makes it acceptable."""
ACCEPTED = {"hidden_dropout": {"hidden_dropout": 0.0}, "fp8": {"fp8": None}}
ACCEPTED["offloading"] = {"fine_grained_activation_offloading": False}


@pytest.fixture(scope="module")
def judge() -> Iterator[Any]:
    if find_spec("torch") is None or find_spec("megatron") is None or not BRIDGE.is_dir():
        pytest.skip("the judge is a fetched Megatron-Bridge with the installed megatron-core")
    with answering(sys.executable, "bridge", str(BRIDGE)) as ask:
        yield ask


def container(model: dict[str, Any], **sections: Any) -> dict[str, Any]:
    whole = {"rerun_state_machine": {"check_for_nan_in_loss": False}}
    return rows.BASE_SECTIONS | whole | sections | {"model": rows.BASE_SECTIONS["model"] | model}


def refusal(judge: Any, settings: dict[str, Any]) -> str:
    return str(
        judge({"settings": settings, "control": rows.BASE_SECTIONS, "env": {"NVTE_CPU_OFFLOAD_V1": "1"}})["refused"]
    )


def errors(settings: dict[str, Any]) -> set[str]:
    release = Release(0, 19)
    plan = examine(PythonDocument(constructor(settings)), Context(release, release, RULES, OWNERS))
    return {one.rule for one in plan.diagnostics if one.severity == "error"}


def check(judge: Any, rule: str, refused: dict[str, Any], accepted: dict[str, Any]) -> None:
    assert refusal(judge, refused)
    assert rule in errors(refused)
    assert not refusal(judge, accepted)
    assert not errors(accepted)


@pytest.mark.parametrize(("rule", "refused", "accepted"), DEFAULTS)
def test_a_provider_has_its_defaults(judge: Any, rule: str, refused: dict[str, Any], accepted: dict[str, Any]) -> None:
    check(judge, rule, container(refused), container(accepted))


@pytest.mark.parametrize(("rule", "refused", "cure"), BOOLEANS)
def test_a_former_boolean_captures_whole_layers(judge: Any, rule: str, refused: dict[str, Any], cure: str) -> None:
    check(judge, rule, container(refused), container(refused | ACCEPTED[cure]))


@pytest.mark.parametrize("graphs", [TE, {"cuda_graph_impl": "none"}, {"external_cuda_graph": True}])
def test_modules_under_any_implementation_count_for_delayed_gradients(judge: Any, graphs: dict[str, Any]) -> None:
    overlap = {"tp_comm_overlap": False, "overlap_moe_expert_parallel_comm": True, "delay_wgrad_compute": True}
    model = graphs | rows.OVERLAP | {"cuda_graph_modules": ["attn"], "gradient_accumulation_fusion": False}

    fused = container(model | {"gradient_accumulation_fusion": True}, comm_overlap=overlap)

    check(judge, "CG412", container(model, comm_overlap=overlap), fused)


@pytest.mark.parametrize("overlap", [None, {"overlap_moe_expert_parallel_comm": True}])
def test_the_overlap_of_experts_counts_in_the_model_where_no_section_overrides_it(judge: Any, overlap: Any) -> None:
    model = TE | rows.OVERLAP | {"cuda_graph_modules": ["attn", "mlp"], "moe_layer_freq": 2}
    sections = {"comm_overlap": {"tp_comm_overlap": False} | overlap} if overlap else {}

    # The section turns the field of the model off.
    overridden = container(model, comm_overlap={"tp_comm_overlap": False})

    check(judge, "CG407", container(model, **sections), overridden)


def test_the_defaults_of_providers_are_those_of_the_catalogue(judge: Any) -> None:
    """A subclass has others; the rules read those of GPTModelProvider itself."""
    names = ("attention_dropout", "hidden_dropout", "num_moe_experts", "moe_layer_freq", "add_bias_linear")
    model = TE | RECOMPUTES

    written = container(model | {name: CATALOGUE.settings[name].default for name in names})

    assert refusal(judge, written) == refusal(judge, container(model))


CONSTRUCTED = """\
from megatron.bridge.models.gpt_provider import GPTModelProvider


def build():
    cfg = GPTModelProvider(num_layers=1, hidden_size=128, num_attention_heads=4, cuda_graph_impl="local")
    cfg.cuda_graph_modules = {}
    cfg.finalize()
    return cfg
"""


@pytest.mark.parametrize(("modules", "reported"), [('"full_iteration"', False), ('["attn"]', True)])
def test_megatron_bridge_validates_what_is_set_after_the_call(
    project: Path, cgmigrate, modules: str, reported: bool
) -> None:
    write(project / "a.py", CONSTRUCTED.format(modules))
    shown = cgmigrate("check", "--from", "0.18", "--to", "0.19", "--output-format", "concise", ".").stdout
    assert ("CG501" in shown) is reported

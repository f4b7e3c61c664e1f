"""`cgmigrate.doctor`: what a configuration that a program has built says about graphs."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

import cgmigrate as api

DENSE: dict[str, Any] = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
EXPERTS = DENSE | {"num_moe_experts": 4, "moe_token_dispatcher_type": "alltoall", "add_bias_linear": False}
LAYERS = {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}


def built(**fields: Any) -> Any:
    """A real TransformerConfig of the installed megatron-core."""
    transformer_config = pytest.importorskip("megatron.core.transformer.transformer_config")
    return transformer_config.TransformerConfig(**fields)


def rules(diagnosis: api.Diagnosis) -> list[str]:
    return [one.rule for one in diagnosis.diagnostics]


def test_by_default_nothing_is_captured() -> None:
    diagnosis = api.doctor(built(**DENSE))
    assert diagnosis.captures == api.Capture() and not diagnosis.diagnostics
    assert str(diagnosis) == (
        "TransformerConfig with megatron-core 0.19: nothing is captured: `cuda_graph_impl` turns graphs off"
    )


def test_a_good_configuration_has_no_diagnostics() -> None:
    diagnosis = api.doctor(built(**DENSE, **LAYERS))
    assert str(diagnosis.captures) == "attn per layer (TE) in training, no graphs in inference"
    assert diagnosis.because == "" and not diagnosis.diagnostics


def test_settings_that_others_turn_off_are_named_with_their_rule() -> None:
    diagnosis = api.doctor(built(**DENSE, cuda_graph_modules=["attn"]))
    (one,) = diagnosis.diagnostics
    assert (one.rule, one.path) == ("CG303", "TransformerConfig")
    assert diagnosis.settings.splitlines()[one.line - 1] == 'cuda_graph_modules: ["attn"]'
    assert str(diagnosis).splitlines()[1] == (
        "  CG303 warning: `cuda_graph_impl` is none, so these modules are ignored"
    )


def test_what_validation_has_set_itself_is_not_reported() -> None:
    config = built(**DENSE, enable_cuda_graph=True)
    assert (config.enable_cuda_graph, config.cuda_graph_impl) == (True, "local")
    diagnosis = api.doctor(config)
    assert str(diagnosis.captures).startswith("whole layers (local)") and not diagnosis.diagnostics


def accepted() -> Iterator[tuple[dict[str, Any], Any]]:
    """Settings that megatron-core accepts, each with the configuration that is built with them."""
    modules: tuple[object, ...] = ([], ["attn"], ["mlp"], ["attn", "moe_router"], ["mamba"], "full", "full_iteration")
    impls = ("none", "local", "transformer_engine", "full_iteration")
    for impl, names, scope, model in product(impls, modules, (None, "none", "layer", "block"), (DENSE, EXPERTS)):
        settings: dict[str, Any] = {"cuda_graph_impl": impl, "cuda_graph_modules": names}
        settings |= {"inference_cuda_graph_scope": scope} if scope else {}
        try:
            yield settings, built(**model, **settings)
        except (AssertionError, ValueError):
            continue


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_validated_values_capture_what_the_written_ones_do() -> None:
    every = list(accepted())
    assert len(every) > 60
    for settings, config in every:
        diagnosis = api.doctor(config)
        assert diagnosis.captures == api.capture_of(settings, "0.19", "config"), settings
        assert set(rules(diagnosis)) <= {"CG303"}, settings


def test_a_mapping_has_what_the_class_would_refuse() -> None:
    fields: dict[str, Any] = {
        **LAYERS,
        "cuda_graph_modules": ["moe_router"],
        "num_moe_experts": None,
        "recompute_granularity": "full",
    }
    fields |= {"recompute_method": "uniform", "recompute_num_layers": 1}
    diagnosis = api.doctor(fields)
    assert isinstance(diagnosis.captures, api.Rejected)
    assert rules(diagnosis) == ["CG402", "CG404"]
    with pytest.raises(AssertionError):
        built(**DENSE, **fields)


@dataclass
class Provider:
    """A model provider of Megatron-Bridge, as far as rules read it; the package itself needs a GPU."""

    cuda_graph_impl: str = "none"
    cuda_graph_modules: list[str] = field(default_factory=list)
    use_te_rng_tracker: bool = False


Provider.__module__ = "megatron.bridge.models.gpt_provider"


class OwnProvider(Provider):
    """One of a team's own."""


@dataclass
class Rng:
    te_rng_tracker: bool = False


@dataclass
class Container:
    model: Provider
    rng: Rng = field(default_factory=Rng)


CAPTURING = OwnProvider("transformer_engine", ["attn"])


def test_the_tracker_of_megatron_bridge_is_missing() -> None:
    assert rules(api.doctor(CAPTURING)) == ["CG408"]
    assert rules(api.doctor(Container(CAPTURING))) == ["CG408"]
    diagnosis = api.doctor(Container(CAPTURING, Rng(te_rng_tracker=True)))
    assert not diagnosis.diagnostics and isinstance(diagnosis.captures, api.Capture)


def test_the_tracker_of_megatron_bridge_is_forced_without_graphs() -> None:
    config = Container(OwnProvider(), Rng(te_rng_tracker=True))
    assert rules(api.doctor(config)) == []
    assert rules(api.doctor(config, api.Options(preview=True))) == ["CG430"]


def test_arguments_of_megatron_lm_show_the_whole_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = pytest.importorskip("megatron.training.arguments")

    def parsed(words: str) -> Namespace:
        monkeypatch.setattr(sys, "argv", ["pretrain_gpt.py", "--num-layers", "2", *words.split()])
        namespace: Namespace = arguments.parse_args()
        return namespace

    assert str(api.doctor(parsed(""))).endswith("nothing is captured: `--cuda-graph-impl` turns graphs off")
    layers = "--cuda-graph-impl transformer_engine --cuda-graph-modules"
    assert str(api.doctor(parsed(f"{layers} attn mamba")).captures).startswith("attn per layer")
    diagnosis = api.doctor(parsed(f"{layers} mamba"))
    assert diagnosis.captures == api.Capture() and "is not in this model" in diagnosis.because
    assert rules(api.doctor(parsed(f"{layers} moe_router"))) == ["CG404"]
    assert rules(api.doctor(parsed(f"{layers} mlp moe_router --num-experts 4 --moe-layer-freq ([0]+[1])"))) == []
    assert rules(api.doctor(parsed("--cuda-graph-impl full_iteration"))) == ["CG401"]
    assert rules(api.doctor(parsed("--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad"))) == []
    assert rules(api.doctor(parsed("--cuda-graph-impl local --recompute-granularity full"))) == ["CG402"]


def test_an_older_release_reads_its_own_names() -> None:
    diagnosis = api.doctor(
        {"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration"}, api.Options(target="0.17")
    )
    assert diagnosis.release == api.parse_release("0.17")
    assert str(diagnosis.captures).startswith("full iteration in training")


def test_a_value_that_yaml_cannot_have_is_not_known() -> None:
    recomputed = {**LAYERS, "recompute_granularity": object()}
    diagnosis = api.doctor(recomputed)
    assert not diagnosis.diagnostics and "${object}" in diagnosis.settings


@pytest.mark.parametrize(
    ("config", "error"), [(3, TypeError), ("none", TypeError), (None, TypeError), (Rng(), TypeError), ({}, ValueError)]
)
def test_what_has_no_settings_of_graphs(config: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="config has to be a TransformerConfig, a configuration or model provider"):
        api.doctor(config)


def test_the_installed_release_counts_without_an_import() -> None:
    code = (
        "import cgmigrate, sys; print(cgmigrate.doctor({'cuda_graph_impl': 'none'}).release, 'megatron' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["0.19", "False"]

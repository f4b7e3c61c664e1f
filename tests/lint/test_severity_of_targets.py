"""Severity and text of a rule follow the target: what only another release refuses is no error."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.sites import Document
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context, LintDiagnostic
from cgmigrate.lint.rules import load
from cgmigrate.lint.severity import Severity
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from tests.lint.test_companions import fetched, judged
from tests.support.plans import examine

RULES, OWNERS = load(), ecosystems.load()
FULL, INFERENCE = "full_iteration", "full_iteration_inference"
TRAPS = {
    "CG301": {"cuda_graph_impl": "none", "cuda_graph_scope": [FULL]},
    "CG305": {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn", INFERENCE]},
    "CG306": {"cuda_graph_impl": "local", "cuda_graph_scope": [FULL, INFERENCE]},
}
Settings = Mapping[str, object]


def in_python(settings: Settings) -> Document:
    words = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return PythonDocument(f"from megatron.core.transformer import TransformerConfig\n\nTransformerConfig({words})\n")


def on_command_line(settings: Settings) -> Document:
    words = " ".join(
        f"--{name.replace('_', '-')} {' '.join(value) if isinstance(value, list) else value}"
        for name, value in settings.items()
    )
    return ShellDocument(f"torchrun pretrain_gpt.py --num-layers 2 {words}\n")


def in_yaml(settings: Settings, section: str = "model") -> Document:
    keys = "".join(f"  {name}: {value}\n".replace("'", "") for name, value in settings.items())
    return YamlDocument(f"{section}:\n{keys}  hidden_size: 8\n")


def of_bridge(settings: Settings) -> Document:
    return YamlDocument(f"{in_yaml(settings).text}ddp:\n  overlap_grad_reduce: true\ntrain:\n  train_iters: 1\n")


def diagnosed(document: Document, source: Release, target: Release) -> Mapping[str, LintDiagnostic]:
    return {one.rule: one for one in examine(document, Context(source, target, RULES, OWNERS)).diagnostics}


@pytest.mark.parametrize("written", [in_python, on_command_line, in_yaml])
@pytest.mark.parametrize("rule", TRAPS)
def test_an_error_of_0_18_is_none_for_0_17(rule: str, written: Callable[[Settings], Document]) -> None:
    diagnostic = diagnosed(written(TRAPS[rule]), LAST_OLD, LAST_OLD)[rule]
    assert diagnostic.severity is Severity.WARNING
    assert "0.18" not in diagnostic.message + diagnostic.help + diagnostic.fix_text
    assert diagnosed(written(TRAPS[rule]), LAST_OLD, NEWEST)[rule].severity is Severity.ERROR


def test_the_releases_refuse_and_accept_these_traps() -> None:
    settings = list(TRAPS.values())
    # The first one is an error since it turns graphs on, silently.
    assert [bool(said) for said in judged(settings, "")] == [False, True, True]
    assert not any(judged(settings, fetched("0.17.1")))


@pytest.mark.parametrize("settings", [TRAPS["CG301"], {"cuda_graph_scope": [FULL]}])
def test_a_recipe_of_the_bridge_turns_nothing_on(settings: Settings) -> None:
    """Megatron-Bridge 0.6 clears the scope with `none` before megatron-core reads it."""
    diagnostic = diagnosed(of_bridge(settings), LAST_OLD, NEWEST)["CG301"]
    assert diagnostic.severity is Severity.WARNING
    assert "Megatron-Bridge clears the scope" in diagnostic.message


def test_what_only_the_source_refuses_is_a_warning() -> None:
    settings = {"cuda_graph_impl": "local", "cuda_graph_scope": ""}
    refused = diagnosed(in_python(settings), LAST_OLD, LAST_OLD)["CG206"]
    assert refused.severity is Severity.ERROR
    upgraded = diagnosed(in_python(settings), LAST_OLD, NEWEST)["CG206"]
    assert (upgraded.severity, "0.17" in upgraded.message) == (Severity.WARNING, True)


STASH = {
    "num_moe_experts": 64,
    "moe_token_dispatcher_type": "flex",
    "moe_flex_dispatcher_backend": "hybridep",
    "moe_expert_rank_capacity_factor": 1.5,
    "moe_paged_stash": True,
    "use_transformer_engine_op_fuser": True,
    "add_bias_linear": False,
    "cuda_graph_impl": "transformer_engine",
}


def test_the_cure_for_the_paged_stash_is_one_that_the_release_accepts() -> None:
    layers = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4}
    settings = {**STASH, "cuda_graph_modules": ["moe"]}
    help = diagnosed(in_python({**layers, **settings}), NEWEST, NEWEST)["CG404"].help
    assert "pad" not in help
    cures = [{**STASH, "cuda_graph_modules": ["moe_router", "moe_preprocess"]}, {**STASH, "cuda_graph_impl": FULL}]
    assert [bool(said) for said in judged([settings, *cures], "")] == [True, False, False]


def test_a_message_says_which_absent_setting_it_relies_on() -> None:
    needs = {"cuda_graph_impl": FULL, "num_moe_experts": 8, "moe_paged_stash": True}
    said = diagnosed(in_yaml(needs), NEWEST, NEWEST)["CG415"].message
    assert said.endswith("if `moe_expert_rank_capacity_factor` is not set elsewhere")
    # A call shows all of its settings.
    assert "elsewhere" not in diagnosed(in_python(needs), NEWEST, NEWEST)["CG415"].message

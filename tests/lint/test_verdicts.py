"""What `explain` says of settings: captured, or refused by the release, as the release itself does it."""

from __future__ import annotations

from typing import Any

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.sites import Document
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.objects import objects_of
from cgmigrate.lint.plan import plan_alone
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from tests.lint.test_companions import CAPTURED, EARLIER, IMPLEMENTATIONS, SAID, fetched, judged, neighbours
from tests.support.tables import from_table

RULES, OWNERS = load(), ecosystems.load()
CALL = "from megatron.core.transformer import TransformerConfig\n\nconfig = TransformerConfig({})\n"
MODEL = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4}
ABOUT_GRAPHS = tuple(text for texts in (SAID | EARLIER).values() for text in texts)
"""What a release says to settings that it refuses for graphs."""
LINE = "torchrun {} --num-layers 2 {}\n"


def captured(document: Document, source: Release, target: Release) -> str:
    """What `explain` says of the captures of the only object of a file."""
    plan = plan_alone("", document, Context(source, target, RULES, OWNERS))
    (one,) = objects_of(plan, 0)
    (captures,) = one.captures
    return captures.text


def of_call(settings: dict[str, Any], source: Release, target: Release) -> str:
    words = ", ".join(f"{name}={value!r}" for name, value in {**MODEL, **settings}.items())
    return captured(PythonDocument(CALL.format(words)), source, target)


def of_line(flags: str, program: str = "pretrain_gpt.py", target: Release = NEWEST) -> str:
    return captured(ShellDocument(LINE.format(program, flags)), target, target)


def wrong(configurations: list[dict[str, Any]], package: str, release: Release) -> list[str]:
    """The configurations of which something else is said than what the release does."""
    said = judged(configurations, package)
    texts = [of_call(one, release, release) for one in configurations]
    return [
        f"{one}: {text} ({error})"
        for one, error, text in zip(configurations, said, texts, strict=True)
        # A release refuses other things, too, with graphs or without.
        if (text.startswith(f"{release}: rejected") and not error)
        or (not text.startswith(f"{release}: rejected") and any(about in error for about in ABOUT_GRAPHS))
    ]


def test_the_installed_release_refuses_what_is_said_to_be_refused() -> None:
    configurations = neighbours("cuda_graph_modules", IMPLEMENTATIONS, CAPTURED, [{}])[:200]
    assert wrong(configurations, "", NEWEST) == []


def test_an_older_release_refuses_what_is_said_to_be_refused() -> None:
    scopes = [*CAPTURED, ["full_iteration"]]
    configurations = neighbours("cuda_graph_scope", ["none", "local", "transformer_engine"], scopes, [{}])[:200]
    assert wrong(configurations, fetched("0.17.1"), LAST_OLD) == []


@pytest.mark.parametrize("boolean", ["enable_cuda_graph", "external_cuda_graph"])
def test_a_boolean_is_judged_like_the_implementation_that_it_names(boolean: str) -> None:
    recompute = {"recompute_granularity": "selective", "recompute_modules": ["mlp"]}
    configurations = [{boolean: True, **recompute, "hidden_dropout": dropout} for dropout in (0.1, 0.0)]
    assert wrong(configurations, "", NEWEST) == []
    assert wrong(configurations, fetched("0.17.1"), LAST_OLD) == []
    assert "(CG405)" in of_call(configurations[0], NEWEST, NEWEST)


@from_table
def test_the_layers_of_a_command_line_count(flags: str, text: str) -> None:
    assert of_line(flags).startswith(text)


def test_the_layers_of_a_part_of_a_command_line_are_not_known() -> None:
    part = YamlDocument("ARGS:\n  --cuda-graph-impl: transformer_engine\n  --cuda-graph-modules: mamba\n")
    assert captured(part, NEWEST, NEWEST).startswith("0.19: mamba per layer")


@pytest.mark.parametrize("target", [Release(0, 17), Release(0, 18), Release(0, 19)], ids=str)
def test_reinforcement_learning_trains_without_graphs_by_default(target: Release) -> None:
    """Executed upstream: tests/unit_tests/rl/test_rl_utils.py toggles the `local` graphs around the rollouts."""
    flags = "--perform-rl-step --cuda-graph-impl"
    assert of_line(f"{flags} local", "train_rl.py", target).startswith(f"{target}: whole layers (local) in inference")
    both = of_line(f"{flags} local --rl-training-cuda-graphs", "train_rl.py", target)
    assert both == f"{target}: whole layers (local)"
    assert "(CG439)" in of_line(f"{flags} transformer_engine", "train_rl.py", target)
    in_training = of_line(f"{flags} transformer_engine --rl-training-cuda-graphs", "train_rl.py", target)
    assert in_training.startswith(f"{target}: whole layers (TE) in training")


def test_a_refusal_by_one_of_two_releases_says_which() -> None:
    offload = {"fine_grained_activation_offloading": True, "offload_modules": ["core_attn"]}
    text = of_call({"cuda_graph_impl": "local", **offload}, LAST_OLD, Release(0, 18))
    assert text.startswith("0.17: whole layers (local) -> 0.18: rejected: ")

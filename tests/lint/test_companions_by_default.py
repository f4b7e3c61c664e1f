"""Rules about settings that are not written: where a configuration shows all, they have their defaults, as in a run.

Command lines are validated by Megatron-LM, which then makes a TransformerConfig; calls are judged by that class.
"""

from __future__ import annotations

import random
import shlex
from typing import Any

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.sites import Document
from cgmigrate.lint.diagnostics import Context
from cgmigrate.megatron.releases import Release
from tests.lint import test_companions as companions
from tests.lint.test_companions import CAPTURED, IMPLEMENTATIONS, OWNERS, RULES, SAID, fetched, shown
from tests.support.argument_judge import argument_judge
from tests.support.comparisons import Comparison, Judged
from tests.support.nightly import generated, nightly_only
from tests.support.plans import examine
from tests.support.release_judges import printed
from tests.support.tables import table_of

GRAPHS = {"cuda_graph_impl", "cuda_graph_modules", "cuda_graph_scope"}
JUDGE = argument_judge("arguments.core_transformer_config_from_args(args)")
EXPERTS = "--num-experts 8 --disable-bias-linear"
CHOICES = table_of(__name__, "CHOICES")
"""Flags of which each command line has one of each row."""


def graphs(flag: str) -> list[str]:
    """Per-layer graphs, as command lines ask for them."""
    names = ("", "attn", "mlp", "moe", "moe_router", "attn moe_router", "moe_router moe_preprocess")
    both = [(name, f"{flag} {modules}" if modules else "") for name in IMPLEMENTATIONS[1:3] for modules in names]
    return [f"--cuda-graph-impl {name} {modules}" for name, modules in both]


def neighbours(graphs: list[str], count: int) -> list[list[str]]:
    """Command lines that differ in few flags, the same in each run."""
    choose = random.Random(20261124).choice
    lines = [[choose(graphs), *map(choose, CHOICES), "--num-layers 4 --te-rng-tracker"] for _ in range(count)]
    return [" ".join(line).split() for line in lines]


def codes(document: Document, release: Release) -> frozenset[str]:
    plan = examine(document, Context(release, release, RULES, OWNERS))
    return frozenset({diagnostic.rule for diagnostic in plan.diagnostics} & SAID.keys())


def compared(judge: str, said: list[str], texts: list[str], kind: type[Document], release: Release) -> Comparison:
    rows = [Judged(text, one, codes(kind(text), release)) for text, one in zip(texts, said, strict=True)]
    return Comparison(
        f"{judge} of {release}", rows, {code: SAID[code] for code in SAID if RULES[code].since <= release}
    )


def compared_lines(lines: list[list[str]], package: str, release: Release) -> Comparison:
    texts = [f"torchrun pretrain_gpt.py {shlex.join(line)}\n" for line in lines]
    return compared("command lines", printed(JUDGE, lines, package), texts, ShellDocument, release)


def compared_calls(configurations: list[dict[str, Any]], package: str, release: Release) -> Comparison:
    texts = []
    for settings in configurations:
        keywords = "".join(f"    {name}={value!r},\n" for name, value in settings.items())
        model = "    num_layers=4,\n    hidden_size=64,\n    num_attention_heads=4,\n"
        imported = "from megatron.core.transformer import TransformerConfig\n\n"
        texts.append(f"{imported}config = TransformerConfig(\n{model}{keywords})\n")
    return compared("calls", companions.judged(configurations, package), texts, PythonDocument, release)


def sparse(configurations: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Configurations of which many settings are not written. The scope of graphs without modules is not either."""
    chance = random.Random(20261124).random
    kept = []
    for settings in configurations[:count]:
        written = {name: value for name, value in settings.items() if name in GRAPHS or chance() < 0.5}
        kept.append({name: value for name, value in written.items() if value != [] or chance() < 0.5})
    return kept


def test_command_lines_have_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    lines = neighbours(graphs("--cuda-graph-modules"), generated(100, 400))

    shown(compared_lines(lines, "", Release(0, 19)), capsys)


def layers(flag: str) -> list[list[str]]:
    """Command lines that capture the MLP of models whose layers an expression describes."""
    patterns = ("1", "2", "([1]*4)", "[1,1,1,1]", "([0]*1+[1]*3)", "([1]*3+[0]*1)*1", "2*[1]+[1]*2", "[0]*0+[1]*4")
    model = f"{EXPERTS} --num-layers 4 --te-rng-tracker"
    graphs = [f"--cuda-graph-impl {name} {flag} attn mlp" for name in ("local", "transformer_engine")]
    return [f"{graph} {model} --moe-layer-freq {pattern}".split() for graph in graphs for pattern in patterns]


def test_list_expressions_are_judged_as_megatron_evaluates_them(capsys: pytest.CaptureFixture[str]) -> None:
    shown(compared_lines(layers("--cuda-graph-modules"), "", Release(0, 19)), capsys)


@nightly_only
def test_list_expressions_of_0_17(capsys: pytest.CaptureFixture[str]) -> None:
    shown(compared_lines(layers("--cuda-graph-scope"), fetched("0.17.1"), Release(0, 17)), capsys)


@nightly_only
def test_command_lines_of_0_17_have_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    lines = neighbours(graphs("--cuda-graph-scope"), 300)

    shown(compared_lines(lines, fetched("0.17.1"), Release(0, 17)), capsys)


def test_calls_have_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    others: list[dict[str, Any]] = [{}, {}, *companions.ONLY_SINCE_0_18]
    configurations = companions.neighbours("cuda_graph_modules", IMPLEMENTATIONS, CAPTURED, others)

    shown(compared_calls(sparse(configurations, generated(400, 3000)), "", Release(0, 19)), capsys)


@nightly_only
def test_calls_of_0_17_have_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    configurations = companions.neighbours("cuda_graph_scope", IMPLEMENTATIONS[:3], CAPTURED, [{}])

    shown(compared_calls(sparse(configurations, 3000), fetched("0.17.1"), Release(0, 17)), capsys)

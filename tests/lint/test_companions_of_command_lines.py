"""Rules about the flags around graphs, against the arguments of Megatron-LM: neighbours of each rule are validated."""

from __future__ import annotations

import random

import pytest

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.lint.test_companions import fetched, shown
from tests.support.argument_judge import argument_judge
from tests.support.comparisons import Comparison, Judged
from tests.support.nightly import generated, nightly_only
from tests.support.plans import examine
from tests.support.release_judges import printed
from tests.support.tables import table_of

RULES = load()
OWNERS = ecosystems.load()
SAID = table_of(__name__, "SAID")
"""What the arguments' validation says to what a rule reports."""
ONLY_IN_0_17 = {"--moe-pad-experts-for-cuda-graph-inference must be set"}
JUDGE = argument_judge("pass", "--num-layers 4")

CHOICES = table_of(__name__, "CHOICES")
"""Flags of which each command line has one of each row."""
SINCE_0_18 = [
    *(f"--cuda-graph-impl {name}" for name in ("none", "local", "full_iteration")),
    *(f"--cuda-graph-impl transformer_engine --cuda-graph-modules {name}" for name in ("attn", "moe_router")),
    "--cuda-graph-impl local --inference-cuda-graph-scope block",
]
"""Graphs that a rule may point at."""


def neighbours(graphs: list[str], count: int) -> list[list[str]]:
    """Command lines that differ in few flags, the same in each run. Each has one of graphs, which a rule points at."""
    choose = random.Random(20261123)
    lines = [f"{one} {flags}" for one in graphs for row in CHOICES for flags in row if flags]
    for _ in range(count):
        lines.append(" ".join([choose.choice(graphs), *map(choose.choice, choose.sample(CHOICES, 4))]))
    return [f"{line} --train-iters 9".split() for line in lines]


def reported(line: list[str], release: Release) -> frozenset[str]:
    arguments: dict[str, list[str]] = {}
    for word in line:
        if word.startswith("--"):
            values = arguments.setdefault(word, [])
        else:
            values.append(word)
    text = "MODEL_ARGS:\n" + "".join(f"  {flag}: {' '.join(values) or 'true'}\n" for flag, values in arguments.items())
    plan = examine(YamlDocument(text), Context(release, release, RULES, OWNERS))
    return frozenset({diagnostic.rule for diagnostic in plan.diagnostics} & SAID.keys())


def compared(lines: list[list[str]], package: str, release: Release) -> Comparison:
    said = printed(JUDGE, lines, package)
    rows = [Judged(" ".join(one), text, reported(one, release)) for one, text in zip(lines, said, strict=True)]
    return Comparison(f"validate_args of {release}", rows, SAID)


def test_the_rules_report_what_the_installed_release_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    lines = neighbours(SINCE_0_18, generated(30, 150))

    comparison = shown(compared(lines, "", Release(0, 19)), capsys)

    assert comparison.refused == {text for texts in SAID.values() for text in texts} - ONLY_IN_0_17


@nightly_only
def test_the_rules_report_what_0_18_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    lines = neighbours(SINCE_0_18, 150)

    comparison = shown(compared(lines, fetched("0.18.2"), Release(0, 18)), capsys)

    assert comparison.refused == {text for texts in SAID.values() for text in texts} - ONLY_IN_0_17


@nightly_only
def test_the_rules_report_what_0_17_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    modules = [f"--cuda-graph-impl transformer_engine --cuda-graph-scope {name}" for name in ("attn", "moe_router")]
    scopes = ("full_iteration", "full_iteration_inference", "attn")
    local = [f"--cuda-graph-impl local --cuda-graph-scope {name}" for name in scopes]
    lines = neighbours(["--cuda-graph-impl none", *modules, *local], 150)

    comparison = shown(compared(lines, fetched("0.17.1"), Release(0, 17)), capsys)

    assert comparison.refused == {text for texts in SAID.values() for text in texts}

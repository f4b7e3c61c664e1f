"""`recommend`: which choices of graphs a model has, and which one is taken, from what runs of the job wrote."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.cli.recommend import _text
from cgmigrate.lint.rules import load
from cgmigrate.verify.arms import CRASHED, DONE, TRAINING, Arm, ArmResult, Graph, Proxy, Rank
from cgmigrate.verify.job import JobForm, JobOptions, JobSession
from cgmigrate.verify.metrics import modules_of
from cgmigrate.verify.recommend import Recommendation, choices_of, recommend

TE = "transformer_engine"
EAGER = Rank(0, losses=("0x1",), timed=(0.1, 0.1), busy=0.01, launched=1000, eager=({"SelfAttention": 4, "MLP": 4},))


def graph(kernels: int) -> Graph:
    return Graph("layer", 1, "forward", ("MLP",), kernels, kernels, 3, (0, 0, 0, 2, 2))


class Session(JobSession):
    """Has the results of runs instead of running a job."""

    def result(self, form: JobForm, number: int, suffix: str = "") -> ArmResult:
        """Return what the form would have written."""
        arm = Arm("0.19.2", TRAINING, {}, Proxy(), repeat=number)
        if form.role.startswith(("full_iteration", "local")):
            log = self.folder / form.role / "log"
            log.parent.mkdir(parents=True)
            log.write_text("AssertionError: CUDA graph scope is not captured\n")
            return ArmResult(arm, CRASHED, "AssertionError: refused")
        kernels = {"eager": 0, f"{TE}-attn": 200, f"{TE}-mlp": 100, f"{TE}-attn-mlp": 300}[form.role]
        rank = replace(EAGER, graphs=(graph(kernels),) if kernels else (), pool_bytes=kernels << 20)
        return ArmResult(arm, DONE, ranks=(rank,))


def recommended(folder: Path) -> Recommendation:
    return recommend(Session(JobOptions(("train",)), folder, print), load([]))


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ([], []),
        (["attn", "mlp"], [["attn"], ["mlp"], ["attn", "mlp"]]),
        (
            ["attn", "moe", "moe_router", "moe_preprocess"],
            [["attn"], ["moe"], ["moe_router"], ["attn", "moe_router"], ["attn", "moe_router", "moe_preprocess"],
             ["attn", "moe"]],
        ),
    ],
)  # fmt: skip
def test_the_choices_are_those_that_megatron_core_accepts(modules: list[str], expected: list[list[str]]) -> None:
    *sets, local, whole = choices_of(modules)
    assert [one["cuda_graph_modules"] for one in sets] == expected
    assert [local["cuda_graph_impl"], whole["cuda_graph_impl"]] == ["local", "full_iteration"]


def test_the_modules_are_those_that_the_job_calls() -> None:
    assert modules_of(EAGER) == ["attn", "mlp"]
    assert modules_of(replace(EAGER, eager=({"TEGroupedMLP": 2, "TopKRouter": 2},))) == [
        "moe",
        "moe_router",
        "moe_preprocess",
    ]


def test_those_with_the_fewest_kernels_outside_of_graphs_come_first(tmp_path: Path) -> None:
    result = recommended(tmp_path)
    assert [one.outside for one in result.choices if not one.refused] == [400, 600, 800]
    assert result.best is not None and result.best.settings["cuda_graph_modules"] == ["attn", "mlp"]
    assert result.why == "it leaves the fewest kernels outside of graphs"
    assert [one.words for one in result.choices if one.refused] == [
        "cuda_graph_impl: local",
        "cuda_graph_impl: full_iteration",
    ]
    text = _text(result).splitlines()
    assert text[0].split("  ")[0] == "kernels outside"
    assert text[-1] == (
        "Take `cuda_graph_impl: transformer_engine, cuda_graph_modules: [attn, mlp]`: it leaves the fewest kernels "
        "outside of graphs"
    )


def test_no_more_is_taken_than_gains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The host needs 0.07 ms a kernel less than the GPU is busy for all that are left.
    monkeypatch.setattr(sys.modules[__name__], "EAGER", replace(EAGER, busy=0.06))
    result = recommended(tmp_path)
    assert result.best is not None and result.best.settings["cuda_graph_modules"] == ["mlp"]
    assert "no gain is left" in result.why


def test_a_job_without_graphs_on_a_cpu_has_no_choice(project: Path, cgmigrate: Callable[..., Any]) -> None:
    pytest.importorskip("torch")
    job = Path(__file__).parent / "job"
    shutil.copytree(job, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    command = (sys.executable, "pretrain_gpt.py", "--num-layers", "2")
    result = cgmigrate("recommend", "--output-format", "json", "--work", str(project.parent / "work"), "--", *command)
    assert result.exit_code == 1, result.output
    data = json.loads(result.stdout)
    assert {one["refused"] for one in data["choices"]} == {"no graph was captured"}
    assert data["why"] == "no choice runs"

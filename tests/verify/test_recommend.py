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
from cgmigrate.verify.arms import CRASHED, DONE, REFUSED, TRAINING, Arm, ArmResult, Graph, Proxy, Rank
from cgmigrate.verify.job import JobForm, JobOptions, JobSession
from cgmigrate.verify.mcore import Home
from cgmigrate.verify.metrics import modules_of
from cgmigrate.verify.plan import PlanError
from cgmigrate.verify.recommend import Recommendation, arm_of_file, choices_of, recommend, runs_of_job
from cgmigrate.verify.run import Runner
from tests.support.tables import from_table

TE = "transformer_engine"
EAGER = Rank(0, losses=("0x1",), timed=(0.1, 0.1), busy=0.01, launched=1000, eager=({"SelfAttention": 4, "MLP": 4},))
AGAIN = (0.104, 0.104)
"""The times of eager after all others."""
EVENT = "AcceleratorError: CUDA error: operation not permitted on an event last recorded in a capturing stream"


def graph(kernels: int) -> Graph:
    return Graph("layer", 1, "forward", ("MLP",), kernels, kernels, 3, (0, 0, 0, 2, 2))


class Session(JobSession):
    """Has the results of runs instead of running a job."""

    def result(self, form: JobForm, number: int, suffix: str = "") -> ArmResult:
        """Return what the form would have written."""
        arm = Arm("0.19.2", TRAINING, {}, Proxy(), repeat=number)
        if form.role.startswith(("full_iteration", "local")):
            dropless = "AssertionError: moe cuda graph is only supported with drop-padding MoE."
            return ArmResult(arm, CRASHED, EVENT if form.role.startswith("local") else dropless)
        kernels = {"eager": 0, "eager-again": 0, f"{TE}-attn": 200, f"{TE}-mlp": 100, f"{TE}-attn-mlp": 300}[form.role]
        rank = replace(EAGER, graphs=(graph(kernels),) if kernels else (), pool_bytes=kernels << 20)
        return ArmResult(arm, DONE, ranks=(replace(rank, timed=AGAIN) if form.role == "eager-again" else rank,))


def recommended(folder: Path) -> Recommendation:
    return recommend(runs_of_job(Session(JobOptions(("train",)), folder, print)), load([]))


@from_table
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
    assert {one.words: one.refused for one in result.choices if one.refused} == {
        "cuda_graph_impl: local": "code under capture makes the host wait for an event of the device "
        f"(`cuda_graph_modules`): {EVENT}",
        "cuda_graph_impl: full_iteration": "CG411 Dropless MoE cannot be captured with the whole layer or the full "
        "iteration (`cuda_graph_modules`)",
    }
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


def test_times_that_do_not_repeat_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert recommended(tmp_path).not_compared == ""
    monkeypatch.setattr(sys.modules[__name__], "AGAIN", (0.12, 0.12))
    result = recommended(tmp_path)
    assert _text(result).splitlines()[-2] == (
        "note: the times are not compared with each other: two eager runs differ by 20%"
    )
    # The order is that of the kernels, which repeat.
    assert [one.outside for one in result.choices if not one.refused] == [400, 600, 800]


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


# --- a file ------------------------------------------------------------------------------------------------

HOMES = {version: Home(version, sys.executable) for version in ("0.17.1", "0.18.2", "0.19.2")}
DENSE = "model:\n  num_layers: 32\n  hidden_size: 4096\n  normalization: LayerNorm\n  cuda_graph_impl: none\n"
EXPERTS = DENSE + "  num_moe_experts: 64\n  moe_router_topk: 8\n  moe_token_dispatcher_type: alltoall\n"


def arm_of(folder: Path, text: str, line: str = "") -> Arm:
    (folder / "a.yaml").write_text(text)
    return arm_of_file(f"{folder / 'a.yaml'}{line}", HOMES, 20)


def test_a_file_stands_for_a_small_model_that_captures_nothing(tmp_path: Path) -> None:
    arm = arm_of(tmp_path, DENSE)
    assert (arm.release, arm.settings, arm.steps, arm.measure) == ("0.19.2", {}, 12, 20)
    assert arm.proxy.fields == {"normalization": "LayerNorm"}
    assert arm_of(tmp_path, EXPERTS).proxy.fields["num_moe_experts"] == 4


@pytest.mark.parametrize(
    "settings", ["cuda_graph_impl: local\n  cuda_graph_scope: full_iteration", "cuda_graph_modules: [attn]"]
)
def test_what_the_file_captures_does_not_matter(tmp_path: Path, settings: str) -> None:
    assert arm_of(tmp_path, DENSE.replace("cuda_graph_impl: none", settings)) == arm_of(tmp_path, DENSE)


def test_one_of_several_models_is_named(tmp_path: Path) -> None:
    two = DENSE + EXPERTS.replace("model:", "second:")
    with pytest.raises(PlanError, match=r"a.yaml configures 2 models: name one of .*a.yaml:5, .*a.yaml:10"):
        arm_of(tmp_path, two)
    assert arm_of(tmp_path, two, ":10") == arm_of(tmp_path, EXPERTS)
    assert arm_of(tmp_path, DENSE + DENSE.replace("model:", "second:")) == arm_of(tmp_path, DENSE)


def test_a_file_that_shows_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="has no setting of graphs"):
        arm_of(tmp_path, "model:\n  num_layers: 32\n")
    with pytest.raises(PlanError, match="owner is ambiguous"):
        arm_of(tmp_path, DENSE.replace("cuda_graph_impl: none", "enable_cuda_graph: true"))
    with pytest.raises(PlanError, match="not valid YAML"):
        arm_of(tmp_path, "model: [\n  cuda_graph_impl: none\n")
    (tmp_path / "a.yaml").write_text(DENSE)
    with pytest.raises(PlanError, match=r"megatron-core 0.19 is not available"):
        arm_of_file(str(tmp_path / "a.yaml"), {"0.17.1": HOMES["0.17.1"]}, 20)


def test_an_arm_that_is_not_measured_keeps_its_name() -> None:
    arm = Arm("0.19.2", TRAINING, {}, Proxy())
    assert (arm.key, replace(arm, measure=20).key != arm.key) == ("c3763c859bef", True)


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose runs have these results."""

    def run(self: Runner, arms: Any) -> dict[str, ArmResult]:
        for arm in arms:
            kernels = 100 * len(arm.settings.get("cuda_graph_modules", ()))
            rank = replace(EAGER, graphs=(graph(kernels),) if kernels else (), pool_bytes=kernels << 20)
            self.results[arm.key] = ArmResult(arm, DONE, ranks=(rank,))
            if arm.settings and not kernels:
                self.results[arm.key] = ArmResult(arm, REFUSED, "ValueError: no graphs of this kind")
        return self.results

    monkeypatch.setattr(Runner, "run", run)
    monkeypatch.setattr("cgmigrate.verify.session.gpu_count", lambda: 1)
    monkeypatch.setattr("cgmigrate.verify.mcore.homes_of", lambda *_: HOMES)


def test_a_file_has_the_table_of_a_job(project: Path, cgmigrate: Callable[..., Any], on_a_gpu: None) -> None:
    # With the share of a job, no gain would be left: a small model is not busy as long as a large one.
    (project / "a.yaml").write_text(DENSE)
    result = cgmigrate("recommend", "a.yaml", "--work", str(project.parent / "work"))
    assert result.exit_code == 0, result.stderr
    assert "note: memory and times are those of 4 small layers" in result.stderr
    head, first, *_, taken = result.stdout.splitlines()
    assert head.startswith("kernels outside") and first.startswith("600 of 1000")
    assert "cuda_graph_impl: local: ValueError: no graphs of this kind" in result.stdout
    assert "[attn, mlp]`: it leaves the fewest kernels outside" in taken


def test_a_file_needs_a_gpu_and_a_command_two_dashes(project: Path, cgmigrate: Callable[..., Any]) -> None:
    (project / "a.yaml").write_text(DENSE)
    (project / "0.19.2/megatron/core").mkdir(parents=True)
    info = "MAJOR = 0\nMINOR = 19\nPATCH = 2\nPRE_RELEASE = ''\n"
    (project / "0.19.2/megatron/core/package_info.py").write_text(info)
    result = cgmigrate("recommend", "a.yaml", "--mcore", "0.19.2=0.19.2")
    assert (result.exit_code, "this machine has no GPU" in result.stderr) == (2, True), result.stderr
    result = cgmigrate("recommend", "torchrun", "pretrain_gpt.py")
    assert (result.exit_code, "write -- before a command" in result.stderr) == (2, True)

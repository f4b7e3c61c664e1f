"""`verify --run`: a job with the structure of Megatron-LM's is observed in all forms, on a CPU: nothing is captured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.megatron.releases import Release
from cgmigrate.verify.job import JobOptions, JobSession
from cgmigrate.verify.probe.variable import VARIABLE
from tests.support.files import write
from tests.support.paths import FETCHED, ROOT

if find_spec("torch") is None:
    pytest.skip("a job needs torch", allow_module_level=True)

JOB = Path(__file__).parent / "job"
TE = ("--cuda-graph-impl", "transformer_engine")


@pytest.fixture
def job(project: Path) -> Path:
    shutil.copytree(JOB, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return project


@pytest.fixture
def verify(job: Path, cgmigrate: Callable[..., Any]) -> Callable[..., Any]:
    def run(*command: str, options: tuple[str, ...] = ()) -> Any:
        work = str(job.parent / "work")
        releases = ("--from", "0.17", "--to", "0.19", "--output-format", "json")
        return cgmigrate("verify", "--run", *releases, "--work", work, "--steps", "6", *options, "--", *command)

    return run


def comparison(result: Any) -> dict[str, Any]:
    [one] = json.loads(result.stdout)["comparisons"]
    return dict(one)


def ranks(job: Path, form: str) -> dict[str, Any]:
    return dict(json.loads((job.parent / "work" / form / "rank-0.json").read_text()))


def test_graphs_that_are_never_captured_are_no_success(job: Path, verify: Callable[..., Any]) -> None:
    result = verify(sys.executable, "pretrain_gpt.py", "--num-layers", "2", *TE, "--cuda-graph-scope", "attn")
    assert result.exit_code == 2
    one = comparison(result)
    assert one["verdict"] == "inconclusive"
    assert "but no graph was captured in 6 steps" in one["reason"]
    assert "+" in one["diff"] and "--cuda-graph-modules attn" in one["diff"]
    assert ranks(job, "migrated")["effective"] == {
        "cuda_graph_impl": "transformer_engine",
        "cuda_graph_modules": ["attn"],
    }
    assert ranks(job, "eager")["effective"] == {"cuda_graph_impl": "none", "cuda_graph_modules": []}


def test_files_that_the_command_names_are_migrated_in_a_copy_of_the_checkout(
    job: Path, verify: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = f"{sys.executable} pretrain_gpt.py --num-layers 2 {' '.join(TE)} --cuda-graph-scope attn\n"
    outside = write(tmp_path_factory.mktemp("shared") / "train.sh", text)
    write(job / "train.sh", text)
    one = comparison(verify("bash", "train.sh", str(outside)))
    assert "--- a/train.sh" in one["diff"] and str(outside) not in one["diff"]
    assert (job / "train.sh").read_text() == outside.read_text() == text
    copy = job.parent / "work/tree/train.sh"
    assert copy.read_text() == text.replace("--cuda-graph-scope", "--cuda-graph-modules")
    assert f"{outside} is outside of {job} and stays as it is" in one["notes"]


def test_a_job_that_fails_is_not_equivalent(verify: Callable[..., Any]) -> None:
    result = verify(sys.executable, "pretrain_gpt.py", "--num-layers", "2", "--cuda-graph-impl", "refused")
    assert result.exit_code == 2
    assert "no such implementation" in comparison(result)["reason"]


def test_a_command_in_which_nothing_trains_says_why(verify: Callable[..., Any]) -> None:
    result = verify(sys.executable, "-c", "print('done')")
    assert result.exit_code == 2
    assert "no process of the command trained with megatron-core" in comparison(result)["reason"]


def test_a_job_that_ends_before_the_last_step_is_no_result(verify: Callable[..., Any]) -> None:
    result = verify(sys.executable, "pretrain_gpt.py", "--num-layers", "2", "--train-iters", "3")
    assert result.exit_code == 2
    assert "a checkpoint would be written" in comparison(result)["reason"]


def test_the_job_as_it_is_runs_on_its_own_release(job: Path, verify: Callable[..., Any]) -> None:
    line = f"{sys.executable} pretrain_gpt.py --num-layers 2"
    result = verify(sys.executable, "pretrain_gpt.py", "--num-layers", "2", options=("--source-command", line))
    one = comparison(result)
    assert (result.exit_code, one["verdict"]) == (0, "equivalent")
    assert "legacy-source" in one["roles"]
    rank = ranks(job, "migrated")["rank"]
    assert (len(rank["losses"]), len(set(rank["parameters"])), rank["gradient_norms"][0]) == (6, 6, (1.5).hex())
    assert rank["eager"] == [{}] * 6, "its classes are no parts of megatron-core"


def test_another_migrated_command_whose_numbers_depart_is_different(verify: Callable[..., Any]) -> None:
    line = f"{sys.executable} pretrain_gpt.py --num-layers 2 {' '.join(TE)} --drift"
    result = verify(sys.executable, "pretrain_gpt.py", "--num-layers", "2", options=("--after", line))
    one = comparison(result)
    assert (result.exit_code, one["verdict"]) == (1, "different")
    assert "--drift" in one["diff"]
    assert any(
        note.startswith("migrated on 0.19.2 departs from eager on 0.19.2: losses differ") for note in one["notes"]
    )


def test_the_releases_are_those_of_the_project(job: Path) -> None:
    (job / "requirements.txt").write_text("megatron-core==0.17.1\n")
    command = (sys.executable, "pretrain_gpt.py", *TE, "--cuda-graph-scope", "attn")
    diffs = []
    for target in (Release(0, 17), Release(0, 19)):
        session = JobSession(JobOptions(command, target=target), job.parent / f"work-{target}", print)
        session.forms()
        diffs.append("--cuda-graph-modules" in session.diff)
    assert diffs == [False, True], "0.17 has the scope"


def test_a_job_runs_with_fewer_layers_than_its_own(job: Path, verify: Callable[..., Any]) -> None:
    command = (sys.executable, "pretrain_gpt.py", "--num-layers", "32")
    result = verify(*command, options=("--layers", "1,2,3,4"))
    one = comparison(result)
    assert (result.exit_code, one["verdict"]) == (0, "equivalent, but")
    assert "it was not run (`--source-command LINE` runs it)" in one["reason"]
    assert any("migration changes neither the command nor a file that it names" in note for note in one["notes"])
    notes = " ".join(one["notes"])
    assert "mempools of graphs by number of layers: 1: +0 MiB, 2: +0 MiB, 3: +0 MiB, 4: +0 MiB; with 32 layers" in notes
    work = job.parent / "work"
    assert {path.name for path in work.glob("migrated*")} == {"migrated", "migrated-1", "migrated-2", "migrated-3"}
    assert [ranks(job, form)["own_layers"] for form in ("eager", "eager-1", "migrated-3")] == [32, 32, 32]


def test_three_numbers_of_layers_are_too_few(verify: Callable[..., Any]) -> None:
    result = verify(sys.executable, "pretrain_gpt.py", options=("--layers", "1,2,4"))
    assert result.exit_code == 2
    assert "it takes at least 4 numbers, such as 2,4,6,8" in result.stderr


# --- policies that Ray's workers train -------------------------------------------------------------------

POLICY = '''\
"""A policy: log-probabilities before each step, and losses that are plain numbers."""
import torch
import pretrain_gpt
from megatron.core.optimizer.optimizer import ChainedOptimizer
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.transformer.transformer_config import TransformerConfig


class MLP(pretrain_gpt.Model):
    pass


torch.manual_seed(1)
policy = MLP(TransformerConfig())
optimizer, schedule = ChainedOptimizer(policy.parameters()), get_forward_backward_func()
while True:
    common = {"forward_step_func": lambda data, one: one(data), "data_iterator": torch.ones(2, 4), "model": [policy]}
    schedule(**common, num_microbatches=5, forward_only=True)
    schedule(**common, num_microbatches=2)
    optimizer.step()
'''
DRIVER = """\
import os, subprocess, sys
print("INFO worker.py -- Started a local Ray instance.", flush=True)
environment = {name: value for name, value in os.environ.items() if PASSES or not name.startswith(("PYTHON", "CGM"))}
sys.exit(subprocess.run([sys.executable, "policy.py"], env={**environment, "RANK": "0"}).returncode and 1)
"""


def test_what_a_worker_of_ray_trains_is_observed_where_its_environment_is_passed_on(
    job: Path, verify: Callable[..., Any]
) -> None:
    (job / "policy.py").write_text(POLICY)
    schedules = job / "megatron/core/pipeline_parallel/schedules.py"
    schedules.write_text(schedules.read_text().replace("loss.detach()", "loss.item()"))
    (job / "run_grpo.py").write_text(DRIVER.replace("PASSES", "True"))
    result = verify(sys.executable, "run_grpo.py")
    assert (result.exit_code, comparison(result)["verdict"]) == (0, "equivalent, but")
    rank = ranks(job, "migrated")["rank"]
    assert len(rank["losses"]) == 6
    assert rank["eager"] == [{"MLP": 2}] * 6, "log-probabilities are no part of a step"


def test_workers_of_ray_that_are_not_observed_are_named(job: Path, verify: Callable[..., Any]) -> None:
    (job / "policy.py").write_text("import sys; sys.exit('ray.exceptions.RayTaskError: OutOfMemoryError')")
    (job / "run_grpo.py").write_text(DRIVER.replace("PASSES", "False"))
    reason = comparison(verify(sys.executable, "run_grpo.py"))["reason"]
    assert "ended with 1" in reason
    assert "no worker of Ray trained with megatron-core where the observer was loaded" in reason
    assert "`policy.megatron_cfg.enabled` is true" in reason


def test_a_job_that_trains_unobserved_until_the_clock_stops_it_says_so(job: Path, verify: Callable[..., Any]) -> None:
    isolated = (sys.executable, "-I", "-c", "import time; time.sleep(60)")
    reason = comparison(verify(*isolated, options=("--timeout", "1")))["reason"]
    assert "no end after 1 s; no process of the command trained with megatron-core" in reason


# --- Megatron-Bridge -------------------------------------------------------------------------------------

FINALIZED = """\
import sys, types
from cgmigrate.verify.probe.job import start
start()
root = sys.argv[1] + "/megatron/bridge"
import megatron.core
for name in ("", ".models", ".utils"):
    # The packages around the module import Transformer Engine and more.
    package = sys.modules["megatron.bridge" + name] = types.ModuleType("megatron.bridge" + name)
    package.__path__ = [root + name.replace(".", "/")]
from megatron.bridge.models import transformer_config as bridge
for kind in (bridge.TransformerConfig, bridge.MLATransformerConfig):
    graphs = {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}
    config = kind(num_layers=2, hidden_size=64, num_attention_heads=4, **graphs)
    config.finalize()
    print(config.cuda_graph_impl, [module.name for module in config.cuda_graph_modules])
"""


def test_the_eager_form_reaches_a_configuration_of_bridge_that_is_validated_late() -> None:
    release = FETCHED / "megatron-bridge-0.6.2"
    if find_spec("megatron") is None or not release.exists():
        pytest.skip("megatron-bridge 0.6.2 is not in .corpus (.ci/run fetches it)")
    task = json.dumps({"folder": "", "steps": 6, "eager": True})
    result = subprocess.run(
        [sys.executable, "-c", FINALIZED, str(release)],
        env={**os.environ, "PYTHONPATH": str(ROOT), VARIABLE: task},
        capture_output=True,
        text=True,
    )
    assert result.stdout.splitlines()[-2:] == ["none []"] * 2, result.stderr

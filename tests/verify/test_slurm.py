"""``--launcher slurm``: arms as jobs of submitit, which are processes of this machine in these tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cgmigrate.cli.commands import main
from cgmigrate.verify import cluster, session
from cgmigrate.verify.arms import DONE, MISSING, TIMED_OUT, TRAINING, Arm, Proxy, Rank
from cgmigrate.verify.cluster import parameters_of, run_as_jobs
from cgmigrate.verify.mcore import Home
from cgmigrate.verify.run import Runner
from tests.support.tables import from_table, table_of

ARM = Arm("0.19.2", TRAINING, {}, Proxy())
ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """#!{python} -IS
import json, os, sys, time
if sys.argv[1] == "-I":
    print("{folder}/lib/megatron/core/__init__.py")
    sys.exit()
place = sys.argv[-1]
def note(name):
    with open("{folder}/" + name, "a") as file:
        file.write(os.path.basename(place) + "\\n")
note("started")
try:
    number = int(open("{folder}/kill").read())
    if len(open("{folder}/started").readlines()) >= {fifth}:
        os.unlink("{folder}/kill")
        os.kill(os.getppid(), number)
        if number == 9:
            os.kill(os.getpid(), 9)
        time.sleep(60)
except FileNotFoundError:
    pass
time.sleep({seconds})
note("ended")
with open(place + "/rank-0.json", "w") as file:
    file.write({rank!r})
"""
"""Stands for the Python of a virtual environment with megatron-core: notes each arm that starts and that ends.

Where there is a file ``kill``, the fifth arm sends the worker that started it the signal in this file; one that is
killed takes its arm with it, as on a node that fails.
"""

NAMES = ("attn", "mlp", "moe", "mamba", "moe_router", "moe_preprocess")
SCOPES = [f"[{name}]" for name in NAMES] + [f"[{NAMES[0]}, {name}]" for name in NAMES[1:]] + ["full_iteration"]
WORDS = ("--level", "capture", "--from", "0.17", "--to", "0.19", "--mcore", "0.19.2=env", "--workload", "training")
JOBS = ("--launcher", "slurm", "--slurm", "cluster=local", "--jobs", "2", "--work", "w")


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without a GPU, twelve configurations, and a megatron-core that only notes what runs."""
    monkeypatch.setattr(session, "gpu_count", lambda: 0)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    info = tmp_path / "env/lib/megatron/core/package_info.py"
    info.parent.mkdir(parents=True)
    info.write_text("MAJOR = 0\nMINOR = 19\nPATCH = 2\nPRE_RELEASE = ''\n")
    stub(tmp_path)
    (tmp_path / "conf").mkdir()
    for number, scope in enumerate(SCOPES):
        text = f"model:\n  hidden_size: 64\n  num_layers: 2\n  cuda_graph_impl: local\n  cuda_graph_scope: {scope}\n"
        (tmp_path / f"conf/{number:02}.yaml").write_text(text)


def stub(folder: Path, seconds: float = 0.05, outcome: str = DONE, fifth: int = 5) -> None:
    rank = json.dumps({"outcome": outcome, "failure": "", "rank": asdict(Rank(0, losses=("0x1p+0",) * 8))})
    known = {"python": sys.executable, "folder": folder / "env", "seconds": seconds, "rank": rank, "fifth": fifth}
    program(folder / "env/bin/python", PROGRAM.format(**known))


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def verify(*words: str, paths: str = "conf/00.yaml") -> Result:
    return CliRunner().invoke(main, ["verify", paths, *WORDS, *words])


def times(folder: Path, what: str) -> Counter[str]:
    """How often each arm started, or ended."""
    file = folder / "env" / what
    return Counter(file.read_text().split() if file.exists() else ())


def test_where_all_results_are_there_submitit_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    refused = verify(*JOBS)
    assert (refused.exit_code, "needs submitit, which is not installed; install cgmigrate" in refused.output) == (
        2,
        True,
    )
    assert verify("--launcher", "srun", "--work", "w").exit_code == 0
    for arm in (tmp_path / "w").glob("*/arm.json"):
        arm.with_name("rank-0.json").write_text(json.dumps({"outcome": "refused", "failure": "by it", "rank": None}))
    result = verify(*JOBS)
    assert "by it" in result.stdout
    assert not (tmp_path / "w/local").exists()
    assert not times(tmp_path, "started")


def test_twelve_configurations_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "env/kill").write_text(str(int(signal.SIGKILL)))
    result = verify(*JOBS, "--report", "report.html", paths="conf")
    assert result.stderr.endswith("Compared 12: 12 equivalent with a reservation.\n"), result.output
    assert "1 job ended without a result" in result.stderr
    page = (tmp_path / "report.html").read_text()
    assert all(f"conf/{number:02}.yaml" in page for number in range(12))
    started, ended = times(tmp_path, "started"), times(tmp_path, "ended")
    (killed,) = started - ended
    assert set(ended.values()) == {1}
    assert started == ended + Counter({killed: 1})
    assert {file.parent.name for file in (tmp_path / "w").glob("*/result.json")} == set(ended)


def test_a_job_that_is_preempted_is_queued_again_with_its_arm(tmp_path: Path) -> None:
    stub(tmp_path, fifth=2)
    (tmp_path / "env/kill").write_text(str(int(signal.SIGUSR2)))
    result = verify(*JOBS)
    assert "without a result" not in result.stderr
    assert sorted(times(tmp_path, "started").values()) == [1, 1, 1, 2], result.output
    assert set(times(tmp_path, "ended").values()) == {1}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux shows the processes of another command")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_goes_on_after_an_interrupt_is_not_submitted_again(tmp_path: Path, number: signal.Signals) -> None:
    stub(tmp_path, seconds=2.0)
    words = ["verify", "conf/00.yaml", *WORDS, *JOBS]
    # A shell that starts tests in the background has them ignore interrupts.
    start = "import signal; signal.signal(2, signal.default_int_handler); from cgmigrate.__main__ import main; main()"
    with (tmp_path / "said").open("w") as said:
        # No pipe: jobs that go on would hold it open.
        interrupted = subprocess.Popen([sys.executable, "-c", start, *words], stderr=said)
    deadline = time.monotonic() + 100
    while len(running := times(tmp_path, "started") - times(tmp_path, "ended")) < 2 or set(running) - set(
        jobs(tmp_path)
    ):
        assert time.monotonic() < deadline and interrupted.poll() is None
        time.sleep(0.02)
    interrupted.send_signal(number)
    interrupted.wait()
    before = jobs(tmp_path)
    assert ("waits for jobs that go on" in (tmp_path / "said").read_text()) is (number == signal.SIGINT)
    result = verify(*JOBS)
    assert result.stderr.endswith("Compared 1: 1 equivalent with a reservation.\n"), result.output
    assert sorted(times(tmp_path, "started").values()) == [1, 1, 1, 1], result.output
    assert jobs(tmp_path).items() >= before.items()


def jobs(folder: Path) -> dict[str, str]:
    """The last job of each arm, by the arm's key."""
    file = folder / "w/local/jobs.json"
    return json.loads(file.read_text()) if file.exists() else {}


def test_an_arm_whose_jobs_are_lost_each_time_is_inconclusive(tmp_path: Path) -> None:
    program(tmp_path / "lost", f"#!{sys.executable} -IS\nimport os; os.kill(os.getppid(), 9)\n")
    runner, arm = Runner({"0.19.2": Home("0.19.2", str(tmp_path / "lost"))}, tmp_path, print), ARM
    run_as_jobs(runner, [arm], parameters_of(["cluster=local"]))
    result = runner.results[arm.key]
    assert (result.outcome, "its job ended 3 times without a result; logs: " in result.failure) == (MISSING, True)
    assert list((tmp_path / "local").glob("*_log.err"))


def test_an_arm_that_the_clock_stops_is_not_submitted_again_by_the_same_command(tmp_path: Path) -> None:
    stub(tmp_path, seconds=60)
    runner = Runner({"0.19.2": Home("0.19.2", str(tmp_path / "env/bin/python"))}, tmp_path, print, timeout=0.5)
    run_as_jobs(runner, [ARM], parameters_of(["cluster=local"]))
    assert runner.results[ARM.key].outcome == TIMED_OUT
    assert list(times(tmp_path, "started").values()) == [1]


SLURM = table_of(__name__, "SLURM")
"""Stands for Slurm: starts what it gets at once, keeps the batch files, and says which jobs are left."""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in SLURM.items():
        program(tmp_path / "slurm" / name, text.format(python=sys.executable, folder=tmp_path / "slurm"))
    for name in ("batches", "pids"):
        (tmp_path / "slurm" / name).mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'slurm'}:{os.environ['PATH']}")
    monkeypatch.setitem(cluster.POLL_SECONDS, "slurm", 0.2)
    monkeypatch.setattr(cluster, "SHARED_SECONDS", 0.1)
    return tmp_path / "slurm"


def test_slurm_gets_arrays_with_a_cap_and_a_failed_node_costs_its_arm_only(tmp_path: Path, slurm: Path) -> None:
    stub(tmp_path, fifth=2)
    (tmp_path / "env/kill").write_text(str(int(signal.SIGKILL)))
    words = ["--slurm", "partition=batch", "--slurm", "reservation=night", "--slurm", "gpus-per-node=", "--slurm"]
    result = verify("--launcher", "slurm", "--jobs", "2", "--work", "w", *words, "setup=ulimit -c 0")
    assert result.stderr.endswith("Compared 1: 1 equivalent with a reservation.\n"), result.output
    assert sorted(times(tmp_path, "started").values()) == [1, 1, 1, 2], result.output
    first, rest, again = (path.read_text() for path in sorted((slurm / "batches").iterdir()))
    assert "--array" not in first and "--array=0-2%2\n" in rest and "--array" not in again
    for option in ("--partition=batch", "--reservation=night", "--time=9", "--cpus-per-task=2", "--signal=USR2@90"):
        assert f"#SBATCH {option}\n" in rest
    assert "--cpus-per-task=2 /" in rest
    assert "\n#SBATCH --requeue\n" in rest and "--cluster" not in rest
    assert "gpus" not in rest and "\nulimit -c 0\n" in rest


def test_what_sbatch_says_is_the_error(slurm: Path) -> None:
    result = verify("--launcher", "slurm", "--work", "w", "--slurm", "partition=closed")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith("invalid partition specified: closed"), result.output


@from_table
def test_options_that_cannot_be_used(words: tuple[str, ...], message: str) -> None:
    result = verify(*words)
    assert (result.exit_code, message in result.stderr) == (2, True), result.output

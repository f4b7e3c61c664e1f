"""Running arms as processes: what becomes of those that do not end well."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from cgmigrate.verify.arms import CRASHED, MISSING, TIMED_OUT, TRAINING, Arm, Packing, Proxy
from cgmigrate.verify.mcore import Home, installed
from cgmigrate.verify.run import Runner, describe, in_order, telling_line

ARM = Arm("0.19.2", TRAINING, {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn", "mlp"]}, Proxy())


def runner(folder: Path, home: Home, timeout: float = 60.0) -> tuple[Runner, list[str]]:
    told: list[str] = []
    return Runner({ARM.release: home}, folder, told.append, timeout), told


def python_that(folder: Path, does: str) -> Home:
    """A program in Python's place."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{does}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Home(ARM.release, str(path))


def test_the_real_probe_says_what_it_lacks(tmp_path: Path) -> None:
    """Without a GPU the probe still starts, in its own process, with the installed megatron-core."""
    pytest.importorskip("megatron.core")
    home = installed()
    assert home is not None
    arm = Arm(home.version, TRAINING, {}, Proxy())
    told: list[str] = []
    run = Runner({home.version: home}, tmp_path, told.append)
    os.environ["CUDA_VISIBLE_DEVICES"], before = "", os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        found = run.run([arm])[arm.key]
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
    assert (found.outcome, found.telling) == (MISSING, "torch sees no GPU")
    # Inside a git checkout megatron-core appends the commit.
    assert found.environment["megatron-core"].partition("+")[0] == home.version
    assert told[0].endswith("eager …")
    assert "cgmigrate.verify.probe" in found.command
    # What ran is not run again.
    assert Runner({}, tmp_path, told.append).run([arm])[arm.key] == found


def test_a_crash_is_told_by_its_last_error(tmp_path: Path) -> None:
    does = (
        "import sys; print('NCCL INFO fine'); print('RuntimeError: CUDA error: an illegal memory access'); sys.exit(3)"
    )
    run, told = runner(tmp_path, python_that(tmp_path, does))
    found = run.run([ARM])[ARM.key]
    assert found.outcome == CRASHED
    assert found.telling == "ended with 3; RuntimeError: CUDA error: an illegal memory access"
    assert told[-1].startswith(f"{describe(ARM)}: crashed in")


def test_a_silent_death_is_told_too(tmp_path: Path) -> None:
    run, _ = runner(tmp_path, python_that(tmp_path, "import os; os.kill(os.getpid(), 9)"))
    found = run.run([ARM])[ARM.key]
    assert (found.outcome, found.telling) == (CRASHED, "ended with -9; it said nothing")


def test_an_arm_that_hangs_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    does = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
        "print('step 3'); sys.stdout.flush(); time.sleep(600)"
    )
    run, _ = runner(tmp_path, python_that(tmp_path, does), timeout=5.0)
    found = run.run([ARM])[ARM.key]
    assert (found.outcome, found.telling) == (TIMED_OUT, "no end after 5 s; step 3")
    assert not _alive(int(mark.read_text()))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_release_that_is_not_at_hand(tmp_path: Path) -> None:
    found = Runner({}, tmp_path, lambda line: None).run([ARM])[ARM.key]
    assert (found.outcome, found.telling) == (MISSING, "megatron-core 0.19.2 is not at hand")


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("a\nTraceback (most recent call last):\n  File x\nAssertionError: no RNG\n", "AssertionError: no RNG"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        ),
        ("terminate called after throwing an instance of 'c10::Error'\nAborted\n", "terminate called after throwing"),
        ("[rank1]: RuntimeError: NCCL error in: x\nok\n", "RuntimeError: NCCL error in: x"),
        ("step 1\nstep 2\n\n", "step 2"),
        ("", ""),
    ],
)
def test_telling_line(log: str, line: str) -> None:
    assert telling_line(log).startswith(line)
    assert bool(line) == bool(telling_line(log))


def test_arms_that_others_start_from_come_first_and_each_once() -> None:
    eager, other = Arm("0.19.2", TRAINING, {}, Proxy()), Arm("0.19.2", TRAINING, {}, Proxy(layers=2))
    assert in_order([ARM, eager, other, ARM]) == [eager, other, ARM]


def test_an_arm_survives_json_and_keeps_its_key() -> None:
    arm = Arm("0.17.1", TRAINING, {"cuda_graph_scope": ["attn"]}, Proxy(packing=Packing((2, 3), 8), notes=("a",)))
    again = Arm.from_json(json.loads(json.dumps(arm.as_json())))
    assert (again.key, again.proxy.packing) == (arm.key, arm.proxy.packing)
    assert again.model_key == Arm("0.19.2", TRAINING, {}, Proxy()).model_key

"""Running arms as processes: what becomes of those that do not end well."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cgmigrate.verify import arms
from cgmigrate.verify.arms import CRASHED, DONE, MISSING, TIMED_OUT, TRAINING, Arm, Packing, Proxy
from cgmigrate.verify.mcore import Home, installed
from cgmigrate.verify.probe.parent import why_not_fork
from cgmigrate.verify.run import Runner, describe, failure_line, in_order
from cgmigrate.verify.slurm import script
from tests.support.tables import from_table

ARM = Arm("0.19.2", TRAINING, {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn", "mlp"]}, Proxy())


def runner(folder: Path, home: Home, timeout: float = 60.0) -> tuple[Runner, list[str]]:
    message: list[str] = []
    return Runner({ARM.release: home}, folder, message.append, timeout), message


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
    message: list[str] = []
    run = Runner({home.version: home}, tmp_path, message.append)
    os.environ["CUDA_VISIBLE_DEVICES"], before = "", os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        result = run.run([arm])[arm.key]
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
    assert (result.outcome, result.failure) == (MISSING, "torch sees no GPU")
    # Inside a git checkout megatron-core appends the commit.
    assert result.environment["megatron-core"].partition("+")[0] == home.version
    assert message[0].endswith("eager …")
    assert "cgmigrate.verify.probe" in result.command


def test_an_arm_runs_in_its_own_folder_and_imports_nothing_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / "users"
    users.mkdir()
    monkeypatch.chdir(users)
    run, _ = runner(tmp_path, python_that(tmp_path, "import os; print('error:', os.getcwd()); raise SystemExit(1)"))
    result = run.run([ARM])[ARM.key]
    assert str(tmp_path / ARM.key) in result.failure
    assert f"--chdir={tmp_path / ARM.key} " in script(runner(tmp_path, Home(ARM.release, "python"))[0], [ARM])


def test_a_crash_is_reported_with_its_last_error(tmp_path: Path) -> None:
    does = (
        "import sys; print('NCCL INFO fine'); print('RuntimeError: CUDA error: an illegal memory access'); sys.exit(3)"
    )
    run, message = runner(tmp_path, python_that(tmp_path, does))
    result = run.run([ARM])[ARM.key]
    assert result.outcome == CRASHED
    assert result.failure == "ended with 3; RuntimeError: CUDA error: an illegal memory access"
    assert message[-1].startswith(f"{describe(ARM)}: crashed in")


def writes(folder: Path, failure: str, outcome: str = CRASHED) -> str:
    """A program that leaves a result of rank 0 behind, as the probe does."""
    rank = {"outcome": outcome, "failure": failure, "rank": None}
    return f"import sys; open(sys.argv[-1] + '/rank-0.json', 'w').write({json.dumps(rank)!r})"


def test_what_ran_is_not_run_again_but_what_lacked_something_is(tmp_path: Path) -> None:
    home = python_that(tmp_path, writes(tmp_path, "first"))
    assert runner(tmp_path, home)[0].run([ARM])[ARM.key].failure == "first"
    python_that(tmp_path, writes(tmp_path, "second", MISSING))
    again, message = runner(tmp_path, home)
    assert again.run([ARM])[ARM.key].failure == "first"
    assert not message
    other = python_that(tmp_path, writes(tmp_path, "no GPU", MISSING))
    arm = replace(ARM, steps=9)
    assert runner(tmp_path, other)[0].run([arm])[arm.key].outcome == MISSING
    python_that(tmp_path, writes(tmp_path, "third"))
    assert runner(tmp_path, other)[0].run([arm])[arm.key].failure == "third"


def test_an_arm_that_was_stopped_by_the_clock_runs_again(tmp_path: Path) -> None:
    home = python_that(tmp_path, "import time; time.sleep(60)")
    assert runner(tmp_path, home, timeout=1.0)[0].run([ARM])[ARM.key].outcome == TIMED_OUT
    python_that(tmp_path, writes(tmp_path, "it ran"))
    assert runner(tmp_path, home)[0].run([ARM])[ARM.key].failure == "it ran"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda place: (place / "result.json").write_text('{"format": 99}'),
        lambda place: (place / "result.json").write_text('{"format": 1, "arm": {}}'),
        lambda place: (place / "made-by.json").write_text('{"probe": "of another version"}'),
    ],
    ids=["another form", "half a form", "another probe"],
)
def test_a_result_of_another_version_is_not_taken(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    home = python_that(tmp_path, writes(tmp_path, "old"))
    runner(tmp_path, home)[0].run([ARM])
    python_that(tmp_path, writes(tmp_path, "new"))
    spoil(tmp_path / ARM.key)
    assert runner(tmp_path, home)[0].run([ARM])[ARM.key].failure == "new"


def test_a_release_at_another_place_runs_its_own_arms(tmp_path: Path) -> None:
    home = python_that(tmp_path, writes(tmp_path, "here"))
    runner(tmp_path, home)[0].run([ARM])
    python_that(tmp_path, writes(tmp_path, "there"))
    assert runner(tmp_path, replace(home, paths=("/patched",)))[0].run([ARM])[ARM.key].failure == "there"


def test_what_an_interrupted_run_left_is_not_this_runs_result(tmp_path: Path) -> None:
    home = python_that(tmp_path, writes(tmp_path, "", DONE))
    runner(tmp_path, home)[0].run([ARM])
    (tmp_path / ARM.key / "result.json").unlink()
    (tmp_path / ARM.key / "made-by.json").unlink()
    python_that(tmp_path, "print('RuntimeError: it broke')")
    result = runner(tmp_path, home)[0].run([ARM])[ARM.key]
    assert (result.outcome, result.failure) == (CRASHED, "ended with 0; RuntimeError: it broke")


def test_the_probe_of_an_older_version_is_replaced(tmp_path: Path) -> None:
    stale = tmp_path / "program/cgmigrate/verify/arms.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("raise SystemExit('old')\n")
    home = python_that(tmp_path, "pass")
    runner(tmp_path, home)[0].environment(home)
    assert stale.read_bytes() == Path(arms.__file__).read_bytes()
    assert (tmp_path / "program/cgmigrate/verify/probe/__main__.py").exists()


def test_an_interrupt_ends_the_arm_and_leaves_no_result(tmp_path: Path) -> None:
    run, message = runner(tmp_path, python_that(tmp_path, "import time; time.sleep(600)"), timeout=100.0)

    def interrupted() -> None:
        while not run._running:
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    # A shell that starts tests in the background has them ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupted).start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run.run([ARM])
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 50
    assert not (tmp_path / ARM.key / "result.json").exists()
    assert len(message) < 3


def test_a_slurm_script_keeps_other_checkouts_off_the_path_and_shows_every_gpu(tmp_path: Path) -> None:
    run, _ = runner(tmp_path, Home(ARM.release, "python", ("/mcore",)), timeout=301.0)
    text = script(run, [replace(ARM, processes=2)])
    (line,) = (line for line in text.splitlines() if "srun --" in line)
    assert "PYTHONSAFEPATH=1" in text
    assert "--ntasks=2 --gpus-per-task=1 --gpu-bind=none --kill-on-bad-exit=1 --time=6 " in line


def test_what_slurm_left_is_read_without_running_anything(tmp_path: Path) -> None:
    done, broke, never = ARM, replace(ARM, steps=9), replace(ARM, steps=10)
    run, _ = runner(tmp_path, Home(ARM.release, "no such program"))
    script(run, [done, broke, never])
    rank = {"outcome": DONE, "failure": "", "rank": None}
    (tmp_path / done.key / "rank-0.json").write_text(json.dumps(rank))
    (tmp_path / broke.key / "log").write_text("srun: error: task 0: Out Of Memory\n")
    run.read_only = True
    result = run.run([done, broke, never])
    assert [result[arm.key].outcome for arm in (done, broke, never)] == [DONE, CRASHED, MISSING]
    assert "Out Of Memory" in result[broke.key].failure
    assert [run.ran(arm) for arm in (done, broke, never)] == [True, True, False]


def test_a_silent_death_is_reported_too(tmp_path: Path) -> None:
    run, _ = runner(tmp_path, python_that(tmp_path, "import os; os.kill(os.getpid(), 9)"))
    result = run.run([ARM])[ARM.key]
    assert (result.outcome, result.failure) == (CRASHED, "ended with -9; it said nothing")


def test_an_arm_that_hangs_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    does = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
        "print('step 3'); sys.stdout.flush(); time.sleep(600)"
    )
    run, _ = runner(tmp_path, python_that(tmp_path, does), timeout=5.0)
    result = run.run([ARM])[ARM.key]
    assert (result.outcome, result.failure) == (TIMED_OUT, "no end after 5 s; step 3")
    # All were sent the signal at once; a busy machine takes a moment to end those that are not waited for.
    deadline = time.monotonic() + 30
    while _alive(int(mark.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(int(mark.read_text()))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# --- arms that are forked --------------------------------------------------------------------------------


def imports_once(folder: Path, imported: str = "", does: str = "") -> Home:
    """A megatron-core on a CPU: ``imported`` runs when torch is imported, ``does`` when an arm asks it for a GPU."""
    answer = "\n".join(f"        {line}" for line in [*does.splitlines(), "return False"])
    files = {
        "torch/__init__.py": f"import os\n__version__ = '0'\nTensor = None\nHAS_CUDA = False\n{imported}\n"
        "class cuda:\n    @staticmethod\n    def is_initialized():\n        return HAS_CUDA\n"
        f"    @staticmethod\n    def is_available():\n{answer}\n"
        "open(os.path.join(os.path.dirname(__file__), 'imports'), 'a').write('.')\n",
        "megatron/core/__init__.py": "__version__ = '0.19.2'\n",
    }
    for name, text in files.items():
        (folder / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "site" / name).write_text(text)
    return Home(ARM.release, sys.executable, (str(folder / "site"),))


def forked(folder: Path, home: Home, timeout: float = 60.0) -> tuple[list[arms.ArmResult], str, int]:
    """The results of three arms, what was shown, and how often torch was imported."""
    run, shown = runner(folder, home, timeout)
    three = [replace(ARM, steps=steps) for steps in (8, 9, 10)]
    results = run.run(three)
    assert not run._running
    return [results[arm.key] for arm in three], "\n".join(shown), len((folder / "site/torch/imports").read_text())


def test_an_arm_alone_imports_for_itself(tmp_path: Path) -> None:
    run, shown = runner(tmp_path, imports_once(tmp_path))
    run.run([ARM])
    assert "importing" not in "\n".join(shown)


def test_arms_of_a_release_import_once(tmp_path: Path) -> None:
    does = (
        "import time; print('in', os.getcwd(), os.getpgrp() == os.getpid(), os.read(0, 1)); raise OSError(time.time())"
    )
    results, shown, imports = forked(tmp_path, imports_once(tmp_path, does=does))
    assert "importing megatron-core 0.19.2 once for 3 arms of training" in shown
    assert (imports, {result.outcome for result in results}) == (1, {CRASHED})
    assert len({result.failure for result in results}) == 3, "each has a result of its own"
    for result in results:
        place = tmp_path / result.arm.key
        assert f"in {place} True b''" in (place / "log").read_text()
        assert "cgmigrate.verify.probe " in result.command, "its own program does the same"


def test_generation_imports_for_itself_what_training_does_not(tmp_path: Path) -> None:
    home = imports_once(tmp_path)
    run, shown = runner(tmp_path, home)
    run.run(replace(ARM, steps=n, workload=work) for n in (8, 9) for work in (TRAINING, arms.STATIC, arms.DYNAMIC))
    assert "once for 2 arms of training" in "\n".join(shown)
    assert "once for 4 arms of generation" in "\n".join(shown)


@from_table
def test_where_the_imports_cannot_be_shared_each_arm_has_its_own(tmp_path: Path, imported: str, reason: str) -> None:
    own = f"import sys\nif 'cgmigrate.verify.probe.parent' in sys.orig_argv:\n    {imported}"
    results, shown, imports = forked(tmp_path, imports_once(tmp_path, imported=own))
    (line,) = (line for line in shown.splitlines() if "import for themselves" in line)
    assert reason in line
    assert imports >= len(results), "each arm has imported torch"
    assert all("cannot import name 'parallel_state'" in result.failure for result in results), "and has gone on"


@pytest.mark.parametrize(("answer", "reason"), [(3, ""), (0, "an import initialises the driver of the GPU")])
def test_the_driver_of_the_gpu_counts_too(monkeypatch: pytest.MonkeyPatch, answer: int, reason: str) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr("threading.active_count", lambda: 1)
    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace(cuDeviceGetCount=lambda count: answer))
    assert why_not_fork() == reason


@from_table
def test_a_forked_arm_that_does_not_end_well_is_reported_as_any_other(
    tmp_path: Path, does: str, outcome: str, failure: str
) -> None:
    home = imports_once(tmp_path, does=f"import sys\n{does}")
    results, _, imports = forked(tmp_path, home, timeout=3.0)
    assert imports == 1
    assert {(result.outcome, result.failure) for result in results} == {(outcome, failure)}
    (tmp_path / "alone").mkdir()
    alone = runner(tmp_path / "alone", home, timeout=3.0)[0].run([ARM])[ARM.key]
    assert (alone.outcome, alone.failure) == (outcome, failure)


def test_imports_that_hang_are_stopped(tmp_path: Path) -> None:
    home = imports_once(
        tmp_path, imported="import time\nopen(os.path.dirname(__file__) + '/imports', 'a').write('.')\ntime.sleep(600)"
    )
    results, _, _ = forked(tmp_path, home, timeout=1.0)
    assert {result.outcome for result in results} == {TIMED_OUT}


def test_a_release_that_is_not_available(tmp_path: Path) -> None:
    result = Runner({}, tmp_path, lambda line: None).run([ARM])[ARM.key]
    assert (result.outcome, result.failure) == (MISSING, "megatron-core 0.19.2 is not available")


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
        ("/bin/python3: can't open file 'p.py': [Errno 2]\nx.ChildFailedError:\n", "/bin/python3: can't open file"),
        ("p.py: error: unrecognized arguments: --x\nx.ChildFailedError:\n", "p.py: error: unrecognized arguments"),
        ("", ""),
    ],
)
def test_failure_line(log: str, line: str) -> None:
    assert failure_line(log).startswith(line)
    assert bool(line) == bool(failure_line(log))


def test_arms_that_others_start_from_come_first_and_each_once() -> None:
    eager, other = Arm("0.19.2", TRAINING, {}, Proxy()), Arm("0.19.2", TRAINING, {}, Proxy(layers=2))
    assert in_order([ARM, eager, other, ARM]) == [eager, other, ARM]


def test_an_arm_survives_json_and_keeps_its_key() -> None:
    arm = Arm("0.17.1", TRAINING, {"cuda_graph_scope": ["attn"]}, Proxy(packing=Packing((2, 3), 8), notes=("a",)))
    again = Arm.from_json(json.loads(json.dumps(arm.as_json())))
    assert (again.key, again.proxy.packing) == (arm.key, arm.proxy.packing)
    assert again.model_key == Arm("0.19.2", TRAINING, {}, Proxy()).model_key

"""A process that a signal ends while it writes: files are whole, and it leaves no temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cgmigrate.project.cache_folder import records
from cgmigrate.project.recovery import recover
from cgmigrate.project.temporary_files import remove_leftovers
from cgmigrate.project.write import write
from tests.support.nightly import NIGHTLY

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such signals")

OLD = b"model:\n  external_cuda_graph: true\n  hidden_size: 8\n"
KILLS = 400 if NIGHTLY else 40

# A fork for each run: a process of its own would take most of the time. The signal comes at a line of a package, which
# is any point between two lines of Python: of mkstemp, before and after each system call, in the clean-up.
PROGRAM = """
import os, signal, sys

from cgmigrate.project import journal, output_files, recovery, revert, set_record, transaction, write, write_lock
from cgmigrate.project.edit_sets import ChangeSet, FileChange

OLD, PROJECT = {old!r}, os.sep + "project" + os.sep

def work(names):
    new = OLD.replace(b"external_cuda_graph: true", b"cuda_graph_impl: local")
    changes = [FileChange(name, OLD, new) for name in names]
    transaction.write_set(ChangeSet("x", tuple(changes)), journal.Journal())
    output_files.write_file("report.json", b"after")

def child(names, at, number, again):
    os.fsync = lambda descriptor: None
    count = 0
    def trace(frame, event, argument):
        nonlocal count
        if PROJECT not in frame.f_code.co_filename:
            return None
        if event == "line":
            count += 1
            if count == at or count == again:
                os.kill(os.getpid(), number)
        return trace
    status = 0
    sys.settrace(trace)
    try:
        work(names)
    except KeyboardInterrupt:
        status = 130
    except SystemExit as end:
        status = end.code
    finally:
        sys.settrace(None)
        print(status, count, flush=True)
        os._exit(0)

for line in sys.stdin:
    at, number, again, *names = line.split()
    process = os.fork()
    if process == 0:
        child(names, int(at), int(number), int(again))
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        print(128 + os.WTERMSIG(status), 0, flush=True)
"""


@pytest.fixture
def interrupted(project: Path):
    """Return a function that interrupts a run at a line, and perhaps again; it returns the status and the lines."""
    command = [sys.executable, "-c", PROGRAM.format(old=OLD)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    server = subprocess.Popen(
        command, cwd=project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert server.stdin is not None and server.stdout is not None

    def run(names: list[str], at: int = 0, number: int = signal.SIGINT, again: int = 0) -> tuple[int, int]:
        for name in names:
            Path(name).write_bytes(OLD)
        Path("report.json").write_bytes(b"before")
        print(at, int(number), again, *names, file=server.stdin, flush=True)
        status, lines = map(int, server.stdout.readline().split())
        return status, lines

    yield run
    server.stdin.close()
    server.wait(timeout=60)


Interrupted = Callable[..., tuple[int, int]]


def temporary(project: Path) -> list[str]:
    return sorted(path.name for path in project.rglob(".cgmigrate-*"))


def is_whole(names: list[str]) -> bool:
    return len({Path(name).read_bytes() for name in names}) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("names", [["a.yaml"], ["a.yaml", "b.yaml", "c.yaml"]], ids=["one file", "a set"])
def test_an_interrupted_run_leaves_whole_files_and_no_others(
    project: Path, interrupted: Interrupted, names: list[str], number: signal.Signals
) -> None:
    interrupted(names)
    status, lines = interrupted(names)
    assert (status, lines > 100) == (0, True)
    step = max(1, lines // KILLS)
    ends = set()
    for at in range(1, lines, step):
        status, _ = interrupted(names, at, number)
        ends.add(status)
        assert temporary(project) == [], f"at line {at}"
        assert is_whole(names) and Path("report.json").read_bytes() in (b"before", b"after")
        # A record that was not complete yet is removed by the next command.
        assert all(not one.reverted.files for one in recover([str(project)])), "nothing is left to revert"
        assert records() == []
    assert ends <= {0, 128 + number} and 128 + number in ends


def test_what_a_second_interrupt_leaves_is_ended_by_the_next_run(project: Path, interrupted: Interrupted) -> None:
    names = ["a.yaml", "b.yaml", "c.yaml"]
    interrupted(names)
    _, lines = interrupted(names)
    for at in range(1, lines, max(1, lines // KILLS)):
        for later in (1, 3, 10, 30):
            interrupted(names, at, signal.SIGINT, at + later)
            list(recover([str(project)]))
            assert is_whole(names) and records() == []
    # The next run that writes there removes what is left.
    remove_leftovers(str(project))
    assert temporary(project) == []


def test_the_signals_of_a_program_that_uses_cgmigrate_stay_its_own(project: Path) -> None:
    seen = []
    Path("a.yaml").write_bytes(OLD)
    former = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    try:
        write("a.yaml", OLD, b"new")
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, former)
    assert seen == [1] and signal.getsignal(signal.SIGTERM) is former
    write("a.yaml", b"new", OLD)
    assert signal.getsignal(signal.SIGTERM) is former

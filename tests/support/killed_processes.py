"""Processes that write files and are killed in between.

Run as a script, this is a server: each line on stdin is a job, done by a forked process that is killed as the job says.
A fork of the test process itself would copy its threads' locks; a fresh process for each job would take too long.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CALLS = ("open", "close", "write", "fsync", "replace", "unlink", "fchmod", "ftruncate", "lseek", "mkdir", "fstat")
KINDS = ("call", "after_call", "rename", "line", "half_write")
PROJECT = f"{os.sep}project{os.sep}"


class Processes:
    """A running server; `run` does one job."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._server = subprocess.Popen(
            [sys.executable, __file__], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, action: str, sets: list[Any] | None = None, **kill: object) -> dict[str, Any]:
        """Do one job: ``write`` sets of [path, before, after], ``recover`` or ``undo``.

        The process is killed before or after the n-th of its system calls (``call=n``, ``after_call=n``), after the
        n-th rename (``rename=n``), at the n-th line that it executes (``line=n``), when its n-th write is half done
        (``half_write=n``) or after some seconds (``delay``). Return whether it was, and what it has counted.
        """
        self.start(action, sets, **kill)
        return self.end()

    def start(self, action: str, sets: list[Any] | None = None, **kill: object) -> None:
        """Start a job. With ``stop_after_rename=n`` it stops after that rename until a file named ``go`` exists."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({"action": action, "sets": sets, **kill}).encode() + b"\n")
        self._server.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Wait until the job ends."""
        assert self._server.stdout is not None
        return json.loads(self._server.stdout.readline())

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=60)


def as_job(sets: list[list[tuple[str, bytes, bytes]]]) -> list[Any]:
    return [[[path, before.hex(), after.hex()] for path, before, after in members] for members in sets]


def wait_for(path: str) -> None:
    """Wait until a file exists."""
    end = time.monotonic() + 30
    while not os.path.exists(path):
        assert time.monotonic() < end
        time.sleep(0.01)


def _do(job: dict[str, Any]) -> None:
    from cgmigrate.project import recovery
    from cgmigrate.project.edit_sets import ChangeSet, FileChange
    from cgmigrate.project.journal import Journal
    from cgmigrate.project.undo import undo
    from tests.support.written_sets import write_sets

    if job["action"] == "write":
        sets = [
            ChangeSet(str(number), tuple(FileChange(p, bytes.fromhex(b), bytes.fromhex(a)) for p, b, a in members))
            for number, members in enumerate(job["sets"])
        ]
        for error in filter(None, write_sets(sets, Journal())):
            print(error, file=sys.stderr)
    elif job["action"] == "undo":
        undo()
    else:
        list(recovery.recover(["."]))


class _Counter:
    """Counts, and kills its process at a number."""

    def __init__(self, number: int) -> None:
        self.number, self.count = number, 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.number:
            os.kill(os.getpid(), signal.SIGKILL)


class _Stop:
    """Counts, and at a number waits for the file ``go``."""

    def __init__(self, number: int) -> None:
        self.number, self.count = number, 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.number:
            Path("stopped").touch()
            while not os.path.exists("go"):
                time.sleep(0.01)


def _write_half(counter: _Counter) -> None:
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if counter.count + 1 == counter.number:
            write(descriptor, data[: len(data) // 2])
        counter()
        return write(descriptor, data)

    os.write = half


def _count_calls(counter: Callable[[], None], names: Sequence[str], after: bool) -> None:
    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if not after:
                counter()
            result = real(*arguments, **named)
            if after:
                counter()
            return result

        return call

    for name in names:
        setattr(os, name, counted(getattr(os, name)))


def _count_lines(counter: _Counter) -> None:
    def trace(frame: Any, event: str, _: object) -> Any:
        if PROJECT not in frame.f_code.co_filename:
            return None
        if event == "line":
            counter()
        return trace

    sys.settrace(trace)


def _child(job: dict[str, Any], report: int) -> None:
    write = os.write
    # A killed process loses nothing that the system has; waiting for the disk would take most of the time.
    os.fsync = lambda descriptor: None
    counter = _Counter(next((job[kind] for kind in KINDS if kind in job), 0))
    if "line" in job:
        _count_lines(counter)
    elif "half_write" in job:
        _write_half(counter)
    elif "stop_after_rename" in job:
        _count_calls(_Stop(job["stop_after_rename"]), ["replace"], after=True)
    else:
        _count_calls(counter, ["replace"] if "rename" in job else CALLS, after="call" not in job)
    try:
        _do(job)
    finally:
        sys.settrace(None)
        write(report, json.dumps(counter.count).encode())
        os._exit(0)


def _serve() -> None:
    # Imported before the first fork.
    from cgmigrate.project import recovery, transaction, undo  # noqa: F401

    for line in sys.stdin:
        job = json.loads(line)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            _child(job, write)
        os.close(write)
        if job.get("delay") is not None:
            time.sleep(job["delay"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        counted = os.read(read, 100)
        os.close(read)
        print(json.dumps({"killed": os.WIFSIGNALED(status), "count": json.loads(counted or "null")}), flush=True)


if __name__ == "__main__":
    _serve()

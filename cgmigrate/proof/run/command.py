"""One run of the user's command, within limits, in a tree of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cgmigrate.proof.run import launcher

_LAUNCHER = os.path.abspath(launcher.__file__)
OBSERVER = os.path.join(os.path.dirname(_LAUNCHER), "observer")
"""The folder whose `sitecustomize` starts an observer in each process."""
_MARK = "CGMIGRATE_RUN"
_SHOWN = 4096
"""Bytes of a command's output that are kept: the last ones."""
_MOST_MEMORY = 0.9
"""The share of the machine's memory that its processes may have together."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit status, negative for a signal, why it was stopped, and the end of its output."""

    status: int
    stopped: str = ""
    output: str = ""


def has_offline() -> bool:
    """Return whether a command can be run without a network."""
    return subprocess.run([sys.executable, "-IS", _LAUNCHER, "offline"], check=False).returncode == 0


def run(command: Sequence[str], folder: str, variables: Mapping[str, str], *, offline: bool, seconds: float) -> Ended:
    """Run a command in a folder until it ends, or takes too long or too much memory; none of its processes is left."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    # A repository that such a variable names would be the user's own.
    outer = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**outer, **variables, _MARK: mark, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [OBSERVER, environment.get("PYTHONPATH", "")]))
    environment["PYTEST_PLUGINS"] = ",".join(filter(None, ["cgmigrate_pytest", environment.get("PYTEST_PLUGINS", "")]))
    words = [sys.executable, "-IS", _LAUNCHER, "offline" if offline else "online", *command]
    tail = bytearray()
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    # Read to the end, whatever it prints: a full pipe would stop it, and a file the disk.
    reader = threading.Thread(target=_keep_end, args=(process.stdout.fileno(), tail), daemon=True)
    reader.start()
    try:
        stopped = _stopped(process, mark, seconds)
    finally:
        _end(process, mark)
    reader.join(5)
    process.stdout.close()
    return Ended(process.returncode, stopped, tail.decode("utf-8", "replace"))


def _keep_end(descriptor: int, tail: bytearray) -> None:
    with contextlib.suppress(OSError):
        while piece := os.read(descriptor, 1 << 16):
            tail += piece
            del tail[:-_SHOWN]


def _stopped(process: subprocess.Popen[bytes], mark: str, seconds: float) -> str:
    """Wait until a command ends; return why it has to be stopped, empty if it ended by itself."""
    end, most = time.monotonic() + seconds, _MOST_MEMORY * _memory_of_machine()
    while True:
        try:
            process.wait(0.5)
            return ""
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                return f"it did not end within {seconds:g} s"
            if sum(map(_memory_of, _processes(mark))) > most:
                return f"its processes use more than {_MOST_MEMORY:.0%} of the memory"


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End all processes of a command: its group, and those that left it."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    for _ in range(10):
        left = [one for one in _processes(mark) if one != process.pid]
        for one in left:
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
        if not left:
            break
        time.sleep(0.05)
    process.wait()


def _processes(mark: str) -> Iterator[int]:
    """Yield the processes that inherited the mark of a run. (Linux only: elsewhere there is the group.)"""
    named = f"{_MARK}={mark}".encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):
            if name.isdigit() and named in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                yield int(name)


def _memory_of(process: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc", str(process), "statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _memory_of_machine() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

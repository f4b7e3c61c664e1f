"""Processes that have imported what arms import, and fork each arm (``probe.parent``)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_END_SECONDS = 30.0
"""How long a killed arm may take to end: the driver frees its memory first."""


class ForkError(Exception):
    """An arm was not forked; the message says why."""


class Parent:
    """A process that forks the arms of one workload under one release, with one environment.

    It starts at once, and its imports take as long as those of one arm. ``place`` gets its log. ``running`` takes the
    processes that an interrupt ends.
    """

    def __init__(self, words: Sequence[str], variables: Mapping[str, str], place: Path, running: set[int]) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self._running = running
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other, (place / "log").open("wb") as output:
            self._process = subprocess.Popen(
                words,
                stdin=other.fileno(),
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(variables),
                cwd=place,
                start_new_session=True,
            )
        running.add(self._process.pid)

    def run(self, words: Sequence[str], place: Path, timeout: float) -> int | None:
        """Run an arm; return its exit status, as ``subprocess`` has it, None after ``timeout`` seconds, killed.

        Raises ForkError where no arm was started.
        """
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with own, other:
            message = json.dumps({"words": list(words), "place": str(place)}).encode()
            try:
                socket.send_fds(self._control, [message], [other.fileno()])
            except OSError as error:
                raise ForkError("the process that imports for them has ended") from error
            # The end of the other process is to show.
            other.close()
            return self._end_of_arm(own, time.monotonic() + timeout)

    def _end_of_arm(self, own: socket.socket, deadline: float) -> int | None:
        first = _answer(own, deadline)
        if first is None:
            # It still imports.
            self.close()
            return None
        if "pid" not in first:
            raise ForkError(str(first.get("refused", "the process that imports for them has ended")))
        pid = int(first["pid"])
        self._running.add(pid)
        try:
            last = _answer(own, deadline)
        finally:
            # Whatever a failed arm leaves behind would hold the GPU's memory.
            kill(pid)
            self._running.discard(pid)
        if last is None:
            _answer(own, time.monotonic() + _END_SECONDS)
            return None
        return int(last.get("status", -signal.SIGKILL))

    def close(self) -> None:
        """End the process; arms that it forked go on."""
        self._control.close()
        kill(self._process.pid)
        self._process.wait()
        self._running.discard(self._process.pid)


def _answer(own: socket.socket, deadline: float) -> dict[str, Any] | None:
    """Return the next answer, None after the deadline; it is empty where the other process has ended."""
    own.settimeout(max(0.001, deadline - time.monotonic()))
    try:
        text = own.recv(1 << 16)
    except TimeoutError:
        return None
    except OSError:
        text = b""
    answer: dict[str, Any] = json.loads(text or "{}")
    return answer


def kill(leader: int) -> None:
    """End a process that leads a group, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)

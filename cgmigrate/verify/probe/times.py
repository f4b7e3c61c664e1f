"""The times of a job without the observer's hooks: of some steps, and what the GPU does in one of them.

One job at a time times its steps, by a lock of a file: others on the same GPU would change its times.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from typing import Any

_LOCK = "cgmigrate-timed-steps.lock"


class Times:
    """Times ``steps`` steps, then profiles one; does nothing without steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.seconds: list[float] = []
        self.busy = 0.0
        self.launched = 0
        self._start = 0.0
        self._lock: Any = None
        self._profiler: Any = None

    def goes_on(self) -> bool:
        """Take the end of a step; return whether the job has to run another one."""
        import torch

        if not self.steps or not torch.cuda.is_available():
            return False
        torch.cuda.synchronize()
        now = time.perf_counter()
        if self._profiler is not None:
            self._read_profile()
            self._unlock()
            return False
        if self._start:
            self.seconds.append(now - self._start)
        else:
            self._wait_for_others()
        if len(self.seconds) == self.steps:
            self._profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
            self._profiler.__enter__()
        self._start = time.perf_counter()
        return True

    def measured(self) -> dict[str, Any]:
        """Return the figures by the names that ``arms.Rank`` has for them."""
        return {"timed": tuple(self.seconds), "busy": self.busy, "launched": self.launched}

    def _wait_for_others(self) -> None:
        """Wait until no other job times its steps; the first rank waits for all of them."""
        import torch

        group = torch.distributed.is_initialized()
        if not group or torch.distributed.get_rank() == 0:
            self._lock = open(os.path.join(tempfile.gettempdir(), _LOCK), "a")  # noqa: SIM115
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        if group:
            torch.distributed.barrier()
            torch.cuda.synchronize()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def _read_profile(self) -> None:
        self._profiler.__exit__(None, None, None)
        spans = []
        for event in self._profiler.profiler.kineto_results.events():
            if "CUDA" in str(event.device_type()) and event.duration_ns() > 0:
                spans.append((event.start_ns(), event.start_ns() + event.duration_ns()))
        self.launched = len(spans)
        self.busy = _union(sorted(spans)) / 1e9


def _union(spans: list[tuple[int, int]]) -> int:
    """Return how long at least one of some spans lasts, which are in the order of their starts."""
    total, end = 0, 0
    for first, last in spans:
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


def pool_bytes() -> int:
    """Return the memory of all pools but the usual one: those of graphs."""
    import torch

    memory: Any = torch.cuda.memory
    segments = memory.memory_snapshot()
    return sum(one["total_size"] for one in segments if tuple(one.get("segment_pool_id", (0, 0))) != (0, 0))

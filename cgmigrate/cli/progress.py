"""A line on the terminal that says how far a long run is.

A thread of its own looks at the run's counters, so the work itself is not slowed. There is none unless a person
watches (stderr is a terminal), and nothing is drawn before the run has taken a second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    import threading

    from cgmigrate.project.discovery import Buffer, Discovery

AFTER = 1.0
"""Seconds before the line is drawn first."""
EVERY = 0.1
WIDTH = 30
_CLEAR = "\r\x1b[K"
_PLAIN = str.maketrans({"█": "#", "░": ".", "…": "..."})


class Watched(Protocol):
    """A run's counters."""

    discovery: Discovery | Buffer
    examined: int
    to_examine: int


@contextmanager
def shown(
    run: Watched, stream: TextIO | None = None, after: float = AFTER
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Show the progress of what is done inside if somebody watches; yields what keeps the line away while printing."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield nullcontext
        return
    import threading

    bar = Bar(run, stream)
    over = threading.Event()
    thread = threading.Thread(target=bar.draw_until, args=(over, after), daemon=True)
    thread.start()
    try:
        yield bar.away
    finally:
        over.set()
        thread.join()
        bar.clear()


class Bar:
    """The line."""

    def __init__(self, run: Watched, stream: TextIO) -> None:
        import threading

        self._run, self._stream = run, stream
        self._lock = threading.RLock()
        self._drawn = False

    def draw_until(self, over: threading.Event, after: float) -> None:
        """Draw now and then, first after ``after`` seconds."""
        pause = after
        while not over.wait(pause):
            pause = EVERY
            with self._lock:
                shown = line(self._run)
                plain = not (self._stream.encoding or "").lower().startswith("utf")
                self._stream.write(_CLEAR + (shown.translate(_PLAIN) if plain else shown))
                self._stream.flush()
                self._drawn = True

    def clear(self) -> None:
        """Take the line away."""
        with self._lock:
            if self._drawn:
                self._stream.write(_CLEAR)
                self._stream.flush()
                self._drawn = False

    @contextmanager
    def away(self) -> Iterator[None]:
        """Keep the line away while something else is printed."""
        with self._lock:
            self.clear()
            yield


def line(run: Watched) -> str:
    """How far the run is: names are looked for in all files, then those that hold some are examined."""
    if run.to_examine:
        return _bar(run.examined, run.to_examine, "files that hold CUDA-graph settings examined")
    if run.discovery.files_listed:
        return _bar(run.discovery.files_seen, run.discovery.files_listed, "files looked at")
    return "Listing files …"


def _bar(done: int, total: int, what: str) -> str:
    filled = WIDTH * min(done, total) // total
    return f"{'█' * filled}{'░' * (WIDTH - filled)} {done:,} of {total:,} {what}"

"""A progress bar for long runs.

A thread reads the run's counters, so the work itself is not slowed. There is no thread unless stderr is a terminal, and
nothing is drawn during the first second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    import threading

    from cgmigrate.project.buffer import Buffer
    from cgmigrate.project.discovery import Discovery

AFTER = 1.0
"""Seconds before the bar is drawn for the first time."""
EVERY = 0.1
"""Seconds between two drawings."""
WIDTH = 30
_CLEAR = "\r\x1b[K"
_PLAIN = str.maketrans({"█": "#", "░": ".", "…": "..."})


class Watched(Protocol):
    """The counters of a run."""

    discovery: Discovery | Buffer
    examined: int
    to_examine: int

    @property
    def following(self) -> int:
        """The number of files of code with settings whose objects are followed now; 0 if none are."""


@contextmanager
def shown(
    run: Watched, stream: TextIO | None = None, after: float = AFTER
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Show the progress of the run on a terminal. Yields a function whose context hides the bar while printing."""
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
        yield bar.hidden
    finally:
        over.set()
        thread.join()
        bar.clear()


class Bar:
    """The progress bar: one line of the terminal."""

    def __init__(self, run: Watched, stream: TextIO) -> None:
        import threading

        self._run, self._stream = run, stream
        self._lock = threading.RLock()
        self._drawn = False

    def draw_until(self, over: threading.Event, after: float) -> None:
        """Draw the bar every `EVERY` seconds, for the first time after ``after`` seconds."""
        pause = after
        while not over.wait(pause):
            pause = EVERY
            with self._lock:
                bar = line(self._run)
                plain = not (self._stream.encoding or "").lower().startswith("utf")
                self._stream.write(_CLEAR + (bar.translate(_PLAIN) if plain else bar))
                self._stream.flush()
                self._drawn = True

    def clear(self) -> None:
        """Remove the bar."""
        with self._lock:
            if self._drawn:
                self._stream.write(_CLEAR)
                self._stream.flush()
                self._drawn = False

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the bar, and draw nothing in this context."""
        with self._lock:
            self.clear()
            yield


def line(run: Watched) -> str:
    """Return the bar: first all files are searched for the settings, then the files with settings are checked.

    Following the objects of a large checkout takes a minute, in which no file is done.
    """
    if run.following:
        return f"Following objects across {run.following:,} files of code with settings …"
    if run.to_examine:
        return _bar(run.examined, run.to_examine, "files with CUDA-graph settings checked")
    if run.discovery.files_listed:
        return _bar(run.discovery.files_seen, run.discovery.files_listed, "files searched")
    return "Listing files …"


def _bar(done: int, total: int, unit: str) -> str:
    filled = WIDTH * min(done, total) // total
    return f"{'█' * filled}{'░' * (WIDTH - filled)} {done:,} of {total:,} {unit}"

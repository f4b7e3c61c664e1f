"""How many files are checked: one line of a terminal, which is removed before anything else is printed.

Elsewhere, in a log, a line every ten seconds, also while many files are planned together.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TextIO

_CLEAR = "\r\x1b[K"
_SECONDS = 10.0


class ProgressLine:
    """Progress on a stream while it is open; nothing with --quiet."""

    def __init__(self, stream: TextIO, is_quiet: bool) -> None:
        is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stream = stream if is_terminal and not is_quiet else None
        self._log = stream if not is_terminal and not is_quiet else None
        self._text, self._ended = "searching for files with settings", threading.Event()

    def __enter__(self) -> ProgressLine:
        if self._log is not None:
            threading.Thread(target=self._write, args=(self._log,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _write(self, log: TextIO) -> None:
        while not self._ended.wait(_SECONDS):
            with contextlib.suppress(OSError, ValueError):
                log.write(self._text + "\n")
                log.flush()

    def show(self, done: int, total: int) -> None:
        """Show that some of all files with settings are checked, and the next one is under way."""
        self._text = f"{done:,} of {total:,} files with settings checked"
        if self._stream is not None and done < total:
            self._stream.write(_CLEAR + self._text)
            self._stream.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._stream is not None:
            self._stream.write(_CLEAR)
            self._stream.flush()

"""One line of a terminal that says how many files are checked; it is removed before anything else is printed."""

from __future__ import annotations

import os
from typing import TextIO

_CLEAR = "\r\x1b[K"


class ProgressLine:
    """A line on a stream; nothing where the stream is no terminal."""

    def __init__(self, stream: TextIO, is_quiet: bool) -> None:
        is_shown = not is_quiet and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stream = stream if is_shown else None

    def show(self, done: int, total: int) -> None:
        """Show that some of all files with settings are checked, and the next one is under way."""
        if self._stream is not None and done < total:
            self._stream.write(f"{_CLEAR}{done:,} of {total:,} files with CUDA-graph settings checked")
            self._stream.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._stream is not None:
            self._stream.write(_CLEAR)
            self._stream.flush()

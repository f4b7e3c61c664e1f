"""Lines of YAML text, by YAML's own line breaks."""

from __future__ import annotations

import re
from bisect import bisect_right

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
"""The line breaks of YAML 1.1; editors and ``str.splitlines`` differ in the rare ones."""


class Lines:
    """Where the lines of a text are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def start(self, at: int) -> int:
        """Return where the line of an offset begins."""
        return self.starts[bisect_right(self.starts, at) - 1]

    def end(self, at: int) -> int:
        """Return the offset behind the line break of the line of an offset, or the end of the text."""
        following = bisect_right(self.starts, at)
        return self.starts[following] if following < len(self.starts) else len(self.text)

    def content_end(self, at: int) -> int:
        """Return the offset before the line break of the line of an offset."""
        return self.end(at) - len(self.break_before(self.end(at)))

    def break_before(self, at: int) -> str:
        """Return the line break that ends at an offset, empty when none does."""
        tail = self.text[max(0, at - 2) : at]
        if tail == "\r\n":
            return tail
        return tail[-1:] if _BREAK.fullmatch(tail[-1:]) else ""

    def newline(self, at: int) -> str:
        """Return the line break in use at an offset: of its line, else of the line before."""
        return self.break_before(self.end(at)) or self.break_before(self.start(at)) or "\n"

    def is_blank(self, start: int, end: int) -> bool:
        """Whether a span is only white space."""
        return not self.text[start:end].strip(" \t\n\r\x85\u2028\u2029")

"""A range of a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of the text."""

    start: int
    end: int

    def lines(self, text: str) -> range:
        """Return the numbers of the lines of the range, from 1."""
        first = text.count("\n", 0, self.start) + 1
        return range(first, first + text.count("\n", self.start, self.end) + 1)


def line_start(text: str, at: int) -> int:
    """Return where the line of an offset begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the offset behind the line break of a line, or the end of the text."""
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1

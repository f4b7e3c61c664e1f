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

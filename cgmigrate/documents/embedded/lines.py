"""The lines of a file with instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"(?P<code>[^\n]*?)\r?(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: ``end`` is where its text ends, and ``after`` where the next line begins."""

    start: int
    end: int
    after: int


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text."""
    matches = (match for match in _LINE.finditer(text) if match.group())
    return [Line(match.start(), match.end("code"), match.end()) for match in matches]

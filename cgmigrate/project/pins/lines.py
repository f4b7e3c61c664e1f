"""Line numbers (1-based) of places in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


def line_containing(text: str, part: str) -> int:
    """Return the first line outside comment lines that contains ``part``; 1 if there is none."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#") and part in line:
            return number
    return 1


def line_at(text: str, position: int) -> int:
    """Return the line of a position."""
    return text.count("\n", 0, position) + 1


def lines_at(text: str, positions: Iterable[int]) -> Iterator[int]:
    """Yield the line of each position. The positions must be in order, so that the text is read once."""
    line, before = 1, 0
    for position in positions:
        line += text.count("\n", before, position)
        before = position
        yield line


def quoted_lines(text: str) -> dict[str, int]:
    """Return the first line of each quoted text outside comment lines, by the text between the quotes."""
    quoted = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'")
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#"):
            for match in quoted.finditer(line):
                lines.setdefault(match[match.lastindex or 0], number)
    return lines


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its continuation lines, as pip joins them, and the number of its first line."""
    parts: list[str] = []
    first = 1
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if not parts:
            first = number
        # A comment line ends a continued line.
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            parts.append(line[:-1])
            continue
        parts.append(f" {line}" if is_comment else line)
        yield first, "".join(parts)
        parts = []
    if parts:
        yield first, "".join(parts)

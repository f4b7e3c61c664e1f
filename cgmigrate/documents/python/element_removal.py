"""Removal of elements from a call, dict, list or tuple, with their commas, lines and comments."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cgmigrate.documents.python.lines import line_start
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_BLANKS = re.compile(r"[ \t]*")
_COMMA = re.compile(r"[ \t]*,")
END_OF_LINE = re.compile(r"[ \t]*,?[ \t]*(?:#[^\r\n]*)?(?:\r?\n)")
"""What may follow the last element of a line."""


def remove_elements(text: str, removed: Sequence[int], spans: Sequence[Span]) -> list[Edit]:
    """Return edits that remove elements by position, neighbours at once; ``spans`` are those of all elements."""
    edits: list[Edit] = []
    for at in removed:
        if at - 1 in removed:
            continue
        last = at
        while last + 1 in removed:
            last += 1
        edits.append(_cut(text, at, last, spans))
    return edits


def _cut(text: str, at: int, last: int, spans: Sequence[Span]) -> Edit:
    """Return the edit that removes the elements from ``at`` to ``last``."""
    start, end = spans[at].start, spans[last].end
    first = line_start(text, start)
    tail = END_OF_LINE.match(text, end)
    if not text[first:start].strip() and tail:
        return Edit(first, tail.end(), "")
    if last + 1 < len(spans):
        following = text[end : spans[last + 1].start]
        if "#" not in following and "\n" not in following:
            return Edit(start, spans[last + 1].start, "")
        behind = _BLANKS.match(text, text.index(",", end) + 1).end()  # type: ignore[union-attr]
        if text.startswith(("\n", "\r\n"), behind):
            # No blank stays at the end of the line.
            start = len(text[:start].rstrip(" \t"))
        # The rest of the line, a comment perhaps, stays with what is before.
        return Edit(start, behind, "")
    if at and "#" not in text[spans[at - 1].end : start]:
        return Edit(spans[at - 1].end, end, "")
    comma = _COMMA.match(text, end)
    return Edit(start, comma.end() if comma and not at else end, "")

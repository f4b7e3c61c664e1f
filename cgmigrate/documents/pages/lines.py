"""The lines of a page, and the code of a block without what the page has in front of its lines.

That is the indentation of a list, the `>` of a quotation, or a prompt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from cgmigrate.documents.code import CodeText

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class PageLine:
    """One line of a page: ``first`` and ``after`` are where it begins and where the next one does.

    ``start`` and ``end`` enclose the part of it that is code; at first that is all of it but the line break.
    """

    first: int
    start: int
    end: int
    after: int

    def ending_in(self, content: str, text: str) -> PageLine | None:
        """Return the line whose code is ``content``, None if it does not end in that."""
        start = self.end - len(content)
        is_end = start >= self.first and text.startswith(content, start)
        return PageLine(self.first, start, self.end, self.after) if is_end else None

    def shortened(self, count: int) -> PageLine:
        """Return the line without the first characters of its code."""
        return PageLine(self.first, min(self.start + count, self.end), self.end, self.after)


def lines_of(text: str) -> list[PageLine]:
    """Return the lines of a page."""
    result = []
    for match in _LINE.finditer(text):
        if match.group():
            content = match.group().rstrip("\r\n")
            result.append(PageLine(match.start(), match.start(), match.start() + len(content), match.end()))
    return result


def dedented(lines: Sequence[PageLine], text: str) -> tuple[PageLine, ...]:
    """Return lines without the indentation that all of them have in common."""
    indents = [_INDENT.match(text, one.start, one.end).group() for one in lines]  # type: ignore[union-attr]
    known = [indent for indent, one in zip(indents, lines, strict=True) if one.start + len(indent) < one.end]
    common = os.path.commonprefix(known)  # noqa: RUF071 (of blanks, not of paths)
    return tuple(
        one.shortened(len(common) if indent.startswith(common) else len(indent))
        for one, indent in zip(lines, indents, strict=True)
    )


def code_of(lines: Sequence[PageLine], text: str) -> CodeText:
    """Return the code of lines, with a line feed behind each; it has what is in front of the code of the next line."""
    parts: list[CodeText] = []
    for one, other in zip_longest(lines, lines[1:]):
        is_adjacent = other is not None and other.first == one.after
        parts += [
            CodeText.of(text, one.start, one.end),
            CodeText.written_as("\n", one.end, other.start if is_adjacent else one.after),
        ]
    return CodeText.joined(parts)

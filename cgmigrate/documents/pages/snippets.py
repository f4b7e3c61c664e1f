"""Snippets: the code of a block without what a page has in front of its lines, and the way back to the page.

A line of a block may have the indentation of a list, the `>` of a quotation or a prompt in front of it. A snippet is
the text without that, with line feeds as line breaks. Its spans and edits are mapped to those of the page.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_INDENT = re.compile(r"[ \t]*")


class CannotMapError(ValueError):
    """An edit of a snippet has no counterpart in the page; the message says why."""


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
        return PageLine(self.first, start, self.end, self.after) if self._is(content, start, text) else None

    def _is(self, content: str, start: int, text: str) -> bool:
        return start >= self.first and text.startswith(content, start)

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
    common = _common_start(known)
    return tuple(
        one.shortened(len(common) if indent.startswith(common) else len(indent))
        for one, indent in zip(lines, indents, strict=True)
    )


def _common_start(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    low, high = min(texts), max(texts)
    at = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    return low[:at]


@dataclass(frozen=True)
class Snippet:
    """The code of some lines of a page."""

    lines: tuple[PageLine, ...]
    page: str

    @cached_property
    def text(self) -> str:
        """The code, with a line feed behind each line."""
        return "".join(f"{self.page[one.start : one.end]}\n" for one in self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(one.end - one.start + 1 for one in self.lines)]

    def _line_at(self, offset: int) -> int:
        """Return the number of the line with an offset; that behind the last line is the number of lines."""
        return bisect_right(self._starts, offset) - 1

    def offset(self, offset: int) -> int:
        """Return where an offset of the snippet is in the page."""
        at = self._line_at(offset)
        if at == len(self.lines):
            return self.lines[-1].after
        return self.lines[at].start + offset - self._starts[at]

    def span(self, span: Span) -> Span:
        """Return where a span of the snippet is in the page; the end of a line belongs to that line."""
        at = self._line_at(span.end)
        if span.end > span.start and span.end == self._starts[at]:
            return Span(self.offset(span.start), self.lines[at - 1].end)
        return Span(self.offset(span.start), self.offset(span.end))

    def inner_offset(self, offset: int) -> int | None:
        """Return where an offset of the page is in the snippet, None if it is not in the code."""
        at = bisect_right(self.lines, offset, key=lambda one: one.start) - 1
        if at < 0 or offset > self.lines[at].end:
            return None
        return self._starts[at] + offset - self.lines[at].start

    # --- edits --------------------------------------------------------------------------------------

    def edit(self, edit: Edit) -> Edit:
        """Return the edit of the page that makes an edit of the snippet. Raises CannotMapError."""
        first, last = self._line_at(edit.start), self._line_at(edit.end)
        if first == last < len(self.lines) and "\n" not in edit.text:
            return Edit(self.offset(edit.start), self.offset(edit.end), edit.text)
        is_whole = edit.start == self._starts[first] and edit.end == self._starts[last]
        if is_whole and (not edit.text or edit.text.endswith("\n")):
            return self._lines_edit(first, last, edit.text)
        if last == len(self.lines):
            raise CannotMapError("the end of the block would change")
        self._check_adjacent(first, last)
        text = edit.text.replace("\n", self._break(first) + self._prefix(first))
        return Edit(self.offset(edit.start), self.offset(edit.end), text)

    def _lines_edit(self, first: int, last: int, text: str) -> Edit:
        """Return the edit that replaces whole lines, from ``first`` up to but without ``last``, by others."""
        if first == last:
            # An insertion goes below the line above it, or else above the first one.
            model = max(first - 1, 0)
            at = self.lines[model].after if first else self.lines[0].first
        else:
            self._check_adjacent(first, last - 1)
            model, at = first, self.lines[first].first
        end = at if first == last else self.lines[last - 1].after
        ending = self._break(model)
        if text and self.lines[max(last - 1, 0)].end == self.lines[max(last - 1, 0)].after:
            raise CannotMapError("the last line of the page has no line break")
        prefix = self._prefix(model) if text else ""
        return Edit(at, end, "".join(f"{prefix}{line}{ending}" for line in text.split("\n")[:-1]))

    def _check_adjacent(self, first: int, last: int) -> None:
        for one, other in zip(self.lines[first:last], self.lines[first + 1 : last + 1], strict=True):
            if one.after != other.first:
                raise CannotMapError("the lines of a command are not adjacent in the page")

    def _break(self, at: int) -> str:
        return self.page[self.lines[at].end : self.lines[at].after] or "\n"

    def _prefix(self, at: int) -> str:
        prefix = self.page[self.lines[at].first : self.lines[at].start]
        if prefix.strip(" \t>"):
            raise CannotMapError("a new line would need a prompt")
        return prefix

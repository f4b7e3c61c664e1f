"""The outline of a page: its paragraphs, tables and headings, and which of them document deprecated names on purpose.

A table of old and new names, a block of code below "Before", a table of measurements: these stay as they are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from cgmigrate.documents.pages.lines import PageLine, lines_of
from cgmigrate.documents.uses import Appearance
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import INFERENCE, MODULES, SCOPE
from cgmigrate.text.spans import Span

_FORMER = re.compile(
    r"\b(?:deprecat\w*|legacy|older|formerly|renam\w*|migrat\w*|no longer|replac\w*|obsolete|superseded|removed|"
    r"backwards?[- ]compat\w*|(?:before|old) and (?:after|new))\b|(?:(?<!-)->|=>|→|⇒)|\b0\.1[0-7]\b",
    re.IGNORECASE,
)
"""Words of a text that documents what was renamed or removed."""
_CONTRAST = re.compile(
    r"\b(?:old|before|former|previous(?:ly)?|up to|prior|until|instead|wrong|don'?t|do not|never|avoid|invalid|"
    r"error|fails?|bad|incorrect|(?:is|are) now|after|new)\b",
    re.IGNORECASE,
)
"""Words above a block of code that shows what not to write."""
_RESULT = re.compile(r"[ \t>*_]*(?:becomes|is now|now|instead|after|new|use|turns into|is rewritten)\b", re.IGNORECASE)
"""Words below a block of code that begin the text about what to write today."""


def is_former(text: str) -> bool:
    """Return whether a text documents what was renamed or removed."""
    return _FORMER.search(text) is not None


def is_contrast(text: str) -> bool:
    """Return whether a text compares former code with other code, or says what not to write."""
    return is_former(text) or _CONTRAST.search(text) is not None


def begins_result(line: str) -> bool:
    """Return whether a line begins the text about what to write today."""
    return _RESULT.match(line) is not None


_HEADING = re.compile(r"(?P<level>#{1,6})[ \t]")
_UNDERLINE = re.compile(r"(?P<mark>[=\-~^\"'`#*+.])(?P=mark){2,}[ \t]*$")
_LEVELS = "#*=-~^\"'`+."
"""Marks of headings below their text, from the highest level."""
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])[ \t]")
_ROW = re.compile(r"[ \t>]*\|")
_NUMBER = re.compile(r"[^\w|]*\d[\d.,]*[^\w|]*(?:\w{1,8}(?:/\w+)*)?[^\w|]*")
_MOST_LINES = 12
"""Of the paragraph above a block of code."""


class Outline:
    """The parts of a page outside of its code blocks, whose spans are ``code``."""

    def __init__(self, text: str, code: Iterable[Span], catalogue: Catalogue) -> None:
        self.text, self.catalogue = text, catalogue
        self.lines = lines_of(text)
        self._code = _numbers_of(self.lines, code)
        self._headings = list(self._read_headings())
        self._kept: dict[int, bool] = {}
        """Whether the names of a line stay, for lines whose part was read."""

    def line_of(self, offset: int) -> int:
        """Return the number of the line of an offset, from 0."""
        return max(bisect_right(self.lines, offset, key=lambda one: one.first) - 1, 0)

    def shows_former(self, span: Span) -> bool:
        """Return whether the text around a block of code says that it is not what to write today."""
        first = self.line_of(span.start)
        if begins_result(self._below(self.line_of(span.end))):
            return True
        above = first - 1
        while above >= 0 and (above in self._code or not self._written(above).strip() or self._is_fence(above)):
            if above in self._code:
                # The text between two blocks is about the second one only if it is between them.
                return self._headed_by_former(first)
            above -= 1
        lead: list[str] = []
        while above >= 0 and above not in self._code and self._written(above).strip() and len(lead) < _MOST_LINES:
            lead.append(self._written(above))
            above -= 1
        text = "\n".join(reversed(lead))
        return is_contrast(text) or self._headed_by_former(first)

    def _below(self, number: int) -> str:
        """Return the first line of text below a block of code, empty if another block is there."""
        at = number + 1
        while at < len(self.lines) and at not in self._code and (not self._written(at).strip() or self._is_fence(at)):
            at += 1
        return self._written(at) if at < len(self.lines) and at not in self._code else ""

    def keeps(self, name: Appearance) -> bool:
        """Return whether a name outside of code is in a text that documents it as a former one, or in measurements."""
        number = self.line_of(name.span.start)
        if number not in self._kept:
            part = self._part_at(number)
            self._kept |= dict.fromkeys(part, self._is_kept(part) or self._headed_by_former(part.start))
        return self._kept[number]

    def _is_kept(self, part: range) -> bool:
        rows = list(map(self._written, part))
        if self._is_row(part.start):
            return any(map(self.names_both, rows)) or _is_measured(rows) or is_former(rows[0])
        written = "\n".join(rows)
        return self.names_both(written) or is_former(written)

    def names_both(self, written: str) -> bool:
        """Return whether a text names a deprecated setting and what replaced it."""
        plain = written.replace("-", "_")
        return any(
            re.search(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", plain)
            and any(re.search(rf"(?<![A-Za-z0-9]){new}(?![A-Za-z0-9])", plain) for new in self._replaced_by(name))
            for name in self.catalogue.deprecated
        )

    def _replaced_by(self, name: str) -> Sequence[str]:
        # The implementation is a setting of its own beside the scope.
        return (MODULES, INFERENCE) if name == SCOPE else self.catalogue[name].replaced_by

    def _part_at(self, number: int) -> range:
        """Return the lines of the paragraph, item of a list or table of a line."""
        is_row = self._is_row(number)
        first, end = number, number + 1
        while first > 0 and not self._is_item(first) and self._continues(first - 1, is_row):
            first -= 1
        while end < len(self.lines) and not self._is_item(end) and self._continues(end, is_row):
            end += 1
        return range(first, end)

    def _continues(self, number: int, is_row: bool) -> bool:
        if number in self._code or not self._written(number).strip():
            return False
        return self._is_row(number) == is_row

    def _is_item(self, number: int) -> bool:
        return _ITEM.match(self._written(number)) is not None

    def _is_row(self, number: int) -> bool:
        return _ROW.match(self._written(number)) is not None

    def _is_fence(self, number: int) -> bool:
        return self._written(number).lstrip(" \t>-*+0123456789.").startswith(("```", "~~~"))

    def _written(self, number: int) -> str:
        return self.text[self.lines[number].start : self.lines[number].end]

    # --- headings -----------------------------------------------------------------------------------

    def _read_headings(self) -> Iterable[tuple[int, bool]]:
        """Yield the first line of each section, and whether a heading around it is about former names."""
        open_headings: list[tuple[int, bool]] = []
        for number in range(len(self.lines)):
            if number in self._code:
                continue
            written = self._written(number)
            if match := _HEADING.match(written):
                level, title = len(match["level"]), written
            elif number and (match := _UNDERLINE.match(written)) and self._written(number - 1).strip():
                level, title = 1 + _LEVELS.index(match["mark"]), self._written(number - 1)
            else:
                continue
            while open_headings and open_headings[-1][0] >= level:
                open_headings.pop()
            about_former = is_former(title) or any(former for _, former in open_headings)
            open_headings.append((level, about_former))
            yield number, about_former

    def _headed_by_former(self, number: int) -> bool:
        above = bisect_right(self._headings, number, key=lambda one: one[0])
        return above > 0 and self._headings[above - 1][1]


def _numbers_of(lines: Sequence[PageLine], code: Iterable[Span]) -> frozenset[int]:
    """Return the numbers of the lines that are code."""
    result, at = set(), 0
    for span in sorted(code, key=lambda one: one.start):
        while at < len(lines) and lines[at].first < span.end:
            if lines[at].first >= span.start:
                result.add(at)
            at += 1
    return frozenset(result)


def _is_measured(rows: Sequence[str]) -> bool:
    """Return whether most rows of a table have two or more numbers as cells."""
    measured = sum(sum(bool(_NUMBER.fullmatch(cell.strip())) for cell in row.split("|")) >= 2 for row in rows)
    return measured * 2 >= len(rows)

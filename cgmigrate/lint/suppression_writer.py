"""Writing comments that suppress diagnostics (``--add-ignore``); see ``suppressions`` for what they mean.

A comment is tried at the end of the first line of a diagnostic, at the end of the last, and on a line before. What is
kept is proven: the text reads as before, and the comment suppresses the diagnostic.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate

from cgmigrate.documents.sites import Document
from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.lint.kinds import UNREADABLE, CheckKind
from cgmigrate.lint.suppressions import Suppression, SuppressionComments
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.spans import Span

_WITHOUT_COMMENT = frozenset((*UNREADABLE, CheckKind.UNUSED_SUPPRESSION))
"""What no comment is written for."""


class _Placement(Enum):
    FIRST = "at the end of the first line"
    LAST = "at the end of the last line"
    BEFORE = "on a line before"


@dataclass(frozen=True, slots=True)
class Added:
    """The text with comments, the diagnostics that they suppress, and those for which there is no place."""

    text: str
    suppressed: tuple[LintDiagnostic, ...]
    remaining: tuple[LintDiagnostic, ...]


def add_suppressions(
    document: Document, diagnostics: Sequence[LintDiagnostic], read: Callable[[str], Document], reason: str = ""
) -> Added:
    """Write comments for diagnostics of a document; ``read`` reads an edited text like the document."""
    writer = _Writer(document, read, reason)
    if not _is_unreadable(document):
        writer.waiting = [(item, item) for item in diagnostics if item.reports not in _WITHOUT_COMMENT]
    for placement in _Placement:
        writer.write_all(placement)
    ids = {id(diagnostic) for diagnostic in writer.suppressed}
    remaining = tuple(diagnostic for diagnostic in diagnostics if id(diagnostic) not in ids)
    return Added(writer.document.text, tuple(writer.suppressed), remaining)


@dataclass(slots=True)
class _Writer:
    """The document as far as comments are written, and the diagnostics that wait for theirs."""

    document: Document
    read: Callable[[str], Document]
    reason: str
    waiting: list[tuple[LintDiagnostic, LintDiagnostic]] = field(default_factory=list)
    """Each diagnostic of the original text, and the same one in the current text."""
    suppressed: list[LintDiagnostic] = field(default_factory=list)

    def write_all(self, placement: _Placement) -> None:
        """Write a comment at one placement for every diagnostic for which that is possible."""
        if not self.waiting:
            return
        comments = SuppressionComments(self.document)
        # All lines at once nearly always works; else each half is tried, the last one first, so that lines above stay.
        groups = [sorted({_line(comments, current, placement) for _, current in self.waiting})]
        while groups and self.waiting:
            lines = groups.pop()
            if not self._write(placement, frozenset(lines)) and len(lines) > 1:
                groups += [lines[: len(lines) // 2], lines[len(lines) // 2 :]]

    def _write(self, placement: _Placement, lines: frozenset[int]) -> bool:
        """Write comments for what waits on some lines; change nothing and return False if that does not work."""
        comments = SuppressionComments(self.document)
        codes: dict[int, set[str]] = {}
        for _, current in self.waiting:
            if (line := _line(comments, current, placement)) in lines:
                codes.setdefault(line, set()).add(current.rule)
        if not codes:
            return False
        edits = [self._edit(comments, line, sorted(rules), placement) for line, rules in codes.items()]
        edited = self._read_again(apply(self.document.text, edits))
        if edited is None:
            return False
        offsets = _Offsets(edits)
        moved = [(first, replace(current, span=offsets.span(current.span))) for first, current in self.waiting]
        edited_comments = SuppressionComments(edited)
        waiting = [pair for pair in moved if not edited_comments.of(pair[1])]
        ids = {id(first) for first, _ in waiting}
        if any(id(first) in ids and _line(comments, current, placement) in codes for first, current in self.waiting):
            return False
        self.suppressed += [first for first, _ in self.waiting if id(first) not in ids]
        self.document, self.waiting = edited, waiting
        return True

    def _read_again(self, text: str) -> Document | None:
        """Return the document of an edited text, None unless it reads like the current one."""
        edited = self.read(text)
        return None if _is_unreadable(edited) or self.document.check(text, {}) else edited

    def _edit(self, comments: SuppressionComments, line: int, codes: Sequence[str], placement: _Placement) -> Edit:
        """Return the edit that suppresses codes on a line: in a comment that suppresses others, or in a new one."""
        text, before = self.document.text, placement is _Placement.BEFORE
        for suppression in comments.above(line) if before else comments.on(line):
            if _can_take_codes(suppression) and (before or not suppression.alone):
                at = text.rindex("]", suppression.span.start, suppression.span.end)
                return Edit(at, at, "".join(f", {code}" for code in codes))
        ignored = f"cgmigrate: ignore[{', '.join(codes)}]{' ' + self.reason if self.reason else ''}"
        comment = self.document.comment_form.comment(ignored)
        start, end = comments.bounds(line)
        if not before:
            return Edit(end, end, f"  {comment}")
        indent = text[start : start + len(text[start:end]) - len(text[start:end].lstrip(" \t"))]
        return Edit(start, start, f"{indent}{comment}{comments.line_break}")


def _can_take_codes(suppression: Suppression) -> bool:
    return bool(suppression.codes) and not suppression.whole_file and not suppression.input_error


def _is_unreadable(document: Document) -> bool:
    return any(problem.kind in UNREADABLE for problem in document.problems)


def _line(comments: SuppressionComments, diagnostic: LintDiagnostic, placement: _Placement) -> int:
    first, last = comments.lines_of(diagnostic.span)
    return last if placement is _Placement.LAST else first


class _Offsets:
    """Where parts of the text are after comments have been written before them or inside them."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        ordered = sorted(edits, key=lambda edit: edit.start)
        self._starts = [edit.start for edit in ordered]
        self._added = [0, *accumulate(len(edit.text) for edit in ordered)]

    def span(self, span: Span) -> Span:
        """Return a part of the text; what is written at its beginning is before it."""
        first, last = bisect_right(self._starts, span.start), bisect_left(self._starts, span.end)
        return Span(span.start + self._added[first], span.end + self._added[last])

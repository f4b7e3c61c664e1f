"""Writing the comments that leave diagnostics out (``--add-ignore``); see ``suppressions`` for what they mean.

A comment is tried at the end of the line, at the end of the diagnostic, on the line before. What is kept is proven:
the text reads as before, and the comment leaves the diagnostic out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import Syntax
from cgmigrate.lint.diagnostics import UNREADABLE, Diagnostic
from cgmigrate.lint.suppressions import WITHOUT_EFFECT, Requests
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.spans import Span


class _Place(Enum):
    FIRST = "at the end of the first line"
    LAST = "at the end of the last line"
    BEFORE = "on a line before"


@dataclass(frozen=True, slots=True)
class Added:
    """The text with comments, the diagnostics that they leave out, and those for which there is no place."""

    text: str
    hidden: tuple[Diagnostic, ...]
    left: tuple[Diagnostic, ...]


def add_ignores(
    document: Document,
    syntax: Syntax,
    diagnostics: Sequence[Diagnostic],
    read: Callable[[str], Document],
    reason: str = "",
) -> Added:
    """Write comments for diagnostics of a document; ``read`` reads an edited text like the document."""
    fixed = frozenset((*UNREADABLE, WITHOUT_EFFECT))
    # What was said of the text as it was, with the place where it stands now.
    waiting = [] if _unreadable(document) else [(f, f) for f in diagnostics if f.rule not in fixed]
    hidden: list[Diagnostic] = []
    for place in _Place:
        if not waiting:
            break
        requests = Requests(document.text, syntax, document)
        # All at once nearly always does; else each half is tried, the last one first, so that lines above stay.
        groups = [sorted({_line(requests, now, place) for _, now in waiting})]
        while groups and waiting:
            some = groups.pop()
            done = _attempt(document, syntax, waiting, place, frozenset(some), read, reason)
            if done is not None:
                document, waiting, settled = done
                hidden += settled
            elif len(some) > 1:
                groups += [some[: len(some) // 2], some[len(some) // 2 :]]
    settled_ids = {id(diagnostic) for diagnostic in hidden}
    left = tuple(diagnostic for diagnostic in diagnostics if id(diagnostic) not in settled_ids)
    return Added(document.text, tuple(hidden), left)


def _unreadable(document: Document) -> bool:
    return any(problem.rule in UNREADABLE for problem in document.problems)


def _line(requests: Requests, diagnostic: Diagnostic, place: _Place) -> int:
    first, last = requests.lines_of(diagnostic.span)
    return last if place is _Place.LAST else first


_Waiting = list[tuple[Diagnostic, Diagnostic]]


def _attempt(
    document: Document,
    syntax: Syntax,
    waiting: _Waiting,
    place: _Place,
    lines: frozenset[int],
    read: Callable[[str], Document],
    reason: str,
) -> tuple[Document, _Waiting, list[Diagnostic]] | None:
    """Write comments for what waits on some lines; None when the text would read otherwise, or one does not help."""
    before = Requests(document.text, syntax, document)
    codes: dict[int, set[str]] = {}
    for _, now in waiting:
        if (line := _line(before, now, place)) in lines:
            codes.setdefault(line, set()).add(now.rule)
    if not codes:
        return None
    edits = [_comment(document.text, before, line, sorted(rules), place, reason) for line, rules in codes.items()]
    text = apply(document.text, edits)
    again = read(text)
    if _unreadable(again) or document.check(text, {}):
        return None
    requests = Requests(text, syntax, again)
    move = _Move(edits)
    moved = [(said, replace(now, span=move.span(now.span))) for said, now in waiting]
    left = [pair for pair in moved if not requests.holding(pair[1])]
    open_ids = {id(said) for said, _ in left}
    if any(id(said) in open_ids and _line(before, now, place) in codes for said, now in waiting):
        return None
    return again, left, [said for said, _ in waiting if id(said) not in open_ids]


def _comment(text: str, requests: Requests, line: int, codes: Sequence[str], place: _Place, reason: str) -> Edit:
    """The edit that asks for some codes on a line: in a comment that asks for others already, else in a new one."""
    start, end = requests.bounds(line)
    above = place is _Place.BEFORE
    for suppression in requests.over(line) if above else requests.on(line):
        beside = above or not suppression.alone
        if suppression.codes and not suppression.whole_file and not suppression.input_error and beside:
            at = text.rindex("]", suppression.span.start, suppression.span.end)
            missing = [code for code in codes if code not in suppression.codes]
            return Edit(at, at, "".join(f", {code}" for code in missing))
    request = f"# cgmigrate: ignore[{', '.join(codes)}]{' ' + reason if reason else ''}"
    if not above:
        return Edit(end, end, f"  {request}")
    indent = text[start : start + len(text[start:end]) - len(text[start:end].lstrip(" \t"))]
    return Edit(start, start, f"{indent}{request}{requests.line_break}")


class _Move:
    """Where parts of the text are when comments have been written before them or inside them."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        ordered = sorted(edits, key=lambda edit: edit.start)
        self._starts = [edit.start for edit in ordered]
        self._added = [0, *accumulate(len(edit.text) for edit in ordered)]

    def span(self, span: Span) -> Span:
        """A part of the text; what is written at its beginning is before it."""
        first, last = bisect_right(self._starts, span.start), bisect_left(self._starts, span.end)
        return Span(span.start + self._added[first], span.end + self._added[last])

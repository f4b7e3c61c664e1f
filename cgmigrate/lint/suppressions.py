"""Comments that suppress diagnostics: ``cgmigrate: ignore[CG301] reason``, ``cgmigrate: ignore-file``.

A comment at the end of a line suppresses the diagnostics on that line, also those of which only a part is on it; one
on a line of its own also those that begin on the next line that is no comment. A value of several lines (a block
scalar, a string in quotes) counts as one with its key or statement, since no comment can be inside it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from itertools import accumulate

from cgmigrate.documents.comments import LINE_BREAK, Commented, CommentForm
from cgmigrate.documents.sites import Document
from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.lint.kinds import UNREADABLE, CheckKind
from cgmigrate.lint.rules import Rule
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.spans import Span

_FORMS = "`cgmigrate: ignore[CODE] reason` or `cgmigrate: ignore-file`"
_SUPPRESSION = r"[ \t]*cgmigrate:[ \t]*(?P<keyword>[\w-]*)[ \t]*(?P<codes>\[[^\]\n\r]*\]?)?"
"""What follows the sign that begins a comment."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment, or a part of it. ``codes`` is empty for all rules; ``input_error`` says why it has no effect.

    ``line`` counts from 0; ``alone`` says that nothing else is on the line.
    """

    span: Span
    line: int
    alone: bool
    whole_file: bool
    codes: tuple[str, ...]
    input_error: str = ""


@dataclass(frozen=True, slots=True)
class Suppressed:
    """The diagnostics to show, those that are hidden, and the diagnostics about unused suppressions."""

    shown: tuple[LintDiagnostic, ...]
    hidden: tuple[LintDiagnostic, ...]
    unused: tuple[LintDiagnostic, ...]


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of rules: all, those that are evaluated for a file, and those in preview."""

    known: Collection[str]
    evaluated: Collection[str]
    preview: Collection[str] = ()

    def evaluates(self, rules: Sequence[str]) -> bool:
        """Return whether a run evaluates these rules. One in preview does not count beside others."""
        return set([rule for rule in rules if rule not in self.preview] or rules) <= set(self.evaluated)


class SuppressionComments:
    """All suppressions of one file."""

    def __init__(self, document: Commented) -> None:
        self._text = text = document.text
        self._starts = [0, *(match.end() for match in LINE_BREAK.finditer(text))]
        comments = document.comments()
        self._joined = _merged(document.joined_lines())
        self._alone = {self.line_of(comment.span.start) for comment in comments if comment.alone}
        self._below: dict[int, int] = {}
        for line in sorted(self._alone, reverse=True):
            self._below[line] = self._below.get(line + 1, line + 1)
        pattern = _pattern(document.comment_form)
        self.suppressions = [
            self._suppression(match)
            for comment in comments
            for match in pattern.finditer(text, comment.span.start, comment.span.end)
            if match["keyword"].lower().startswith("ig") or match["codes"]
        ]
        self._on: dict[int, list[Suppression]] = {}
        self._above: dict[int, list[Suppression]] = {}
        for suppression in self.suppressions:
            self._on.setdefault(suppression.line, []).append(suppression)
            if suppression.alone:
                self._above.setdefault(self._line_below(suppression.line), []).append(suppression)
        self._whole_file = [suppression for suppression in self.suppressions if suppression.whole_file]

    def on(self, line: int) -> Sequence[Suppression]:
        """Return the suppressions on a line."""
        return self._on.get(line, ())

    def above(self, line: int) -> Sequence[Suppression]:
        """Return the suppressions on lines of their own above a line."""
        return self._above.get(line, ())

    def of(self, diagnostic: LintDiagnostic) -> list[Suppression]:
        """Return the suppressions of a diagnostic, in the order of the text."""
        first, last = self.lines_of(diagnostic.span)
        near = {id(suppression): suppression for line in range(first, last + 1) for suppression in self.on(line)}
        near |= {id(suppression): suppression for suppression in (*self.above(first), *self._whole_file)}
        return sorted(
            (suppression for suppression in near.values() if self._applies(suppression, diagnostic)),
            key=lambda suppression: suppression.span.start,
        )

    def line_of(self, offset: int) -> int:
        """Return the line of an offset, from 0, as YAML and Python count."""
        return bisect_right(self._starts, offset) - 1

    def bounds(self, line: int) -> tuple[int, int]:
        """Return where a line starts, and where its text ends: before the line break."""
        match = LINE_BREAK.search(self._text, self._starts[line])
        return self._starts[line], match.start() if match else len(self._text)

    @property
    def line_break(self) -> str:
        """How lines end in this file."""
        match = LINE_BREAK.search(self._text)
        return match.group() if match else "\n"

    def lines_of(self, span: Span) -> tuple[int, int]:
        """Return the first and last line of what counts as one with a part of the text."""
        start, end = span.start, max(span.start, span.end - 1)
        at = bisect_right(self._joined, start, key=lambda joined: joined.start) - 1
        if at >= 0 and start < self._joined[at].end:
            start, end = self._joined[at].start, max(end, self._joined[at].end - 1)
        return self.line_of(start), self.line_of(end)

    def apply(self, diagnostics: Sequence[LintDiagnostic], rule: Rule, codes: Codes) -> Suppressed:
        """Divide diagnostics into shown and hidden ones; ``rule`` reports unused suppressions."""
        shown: list[LintDiagnostic] = []
        hidden: list[LintDiagnostic] = []
        # Whether a comment that names the rule of these very diagnostics has an effect is known only after them.
        used = {(suppression, rule.id) for suppression in self.suppressions}
        for diagnostic in diagnostics:
            by = self.of(diagnostic)
            (hidden if by else shown).append(diagnostic)
            for suppression in by:
                used |= {(suppression, code) for code in suppression.codes or ("",) if diagnostic.rule.startswith(code)}
        unused = [
            LintDiagnostic(rule.id, rule.severity, suppression.span, message, help=advice, reports=rule.reports)
            for suppression in self.suppressions
            for message, advice in _unused(suppression, used, codes)
        ]
        return Suppressed(tuple(shown), tuple(hidden), tuple(self._not_named(unused, rule.id)))

    def _not_named(self, unused: Iterable[LintDiagnostic], code: str) -> Iterator[LintDiagnostic]:
        """The diagnostics about unused suppressions, less those that a comment names by their code."""
        named = [suppression for suppression in self.suppressions if code in suppression.codes]
        for diagnostic in unused:
            if not any(self._applies(suppression, diagnostic) for suppression in named):
                yield diagnostic

    def _line_below(self, line: int) -> int:
        """Return the line that a comment on a line of its own is about."""
        return self._below.get(line + 1, line + 1)

    def _suppression(self, match: re.Match[str]) -> Suppression:
        keyword, listed, line = match["keyword"].lower(), match["codes"] or "", self.line_of(match.start())
        codes = tuple(code.upper() for code in re.split(r"[,\s]+", listed.strip("[]")) if code)
        error = _input_error(match["keyword"], listed, codes)
        return Suppression(Span(*match.span()), line, line in self._alone, keyword == "ignore-file", codes, error)

    def _applies(self, suppression: Suppression, diagnostic: LintDiagnostic) -> bool:
        if suppression.input_error or (suppression.codes and not diagnostic.rule.startswith(suppression.codes)):
            return False
        first, last = self.lines_of(diagnostic.span)
        return (
            suppression.whole_file
            or first <= suppression.line <= last
            or (suppression.alone and self._line_below(suppression.line) == first)
        )


@cache
def _pattern(form: CommentForm) -> re.Pattern[str]:
    starts = "|".join(re.escape(start) for start in (form.start, form.inside) if start)
    return re.compile(f"(?:{starts}){_SUPPRESSION}", re.IGNORECASE)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if result and span.start < result[-1].end:
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result


def _input_error(keyword: str, listed: str, codes: Sequence[str]) -> str:
    """Return why a suppression has no effect, empty if it may have one."""
    if keyword.lower() not in ("ignore", "ignore-file"):
        return f"`{keyword}` is not a suppression; write {_FORMS}"
    if listed and not listed.endswith("]"):
        return "the bracket is not closed"
    if not codes and (listed or keyword.lower() == "ignore"):
        return f"it has no rule code; write {_FORMS}"
    return ""


def _unused(suppression: Suppression, used: set[tuple[Suppression, str]], codes: Codes) -> Iterator[tuple[str, str]]:
    """What is wrong with a suppression, and what to do; nothing if it has an effect, or may have in another run."""
    if suppression.input_error:
        yield f"this comment suppresses nothing: {suppression.input_error}", f"write {_FORMS}, or delete the comment"
        return
    place = "in the file" if suppression.whole_file else "at this line"
    for code in suppression.codes or ("",):
        rules = [rule for rule in codes.known if rule.startswith(code)]
        subject = f"{code} in this comment" if code else "this comment"
        if not rules:
            yield f"{subject} suppresses nothing: no rule's code begins with it", "`cgmigrate rules` lists them"
        elif (suppression, code) not in used and codes.evaluates(rules):
            yield f"{subject} suppresses nothing: there is no such diagnostic {place}", f"remove {code or 'it'}"


# --- writing comments -----------------------------------------------------------------------------

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
            is_of_codes = suppression.codes and not suppression.whole_file and not suppression.input_error
            if is_of_codes and (before or not suppression.alone):
                at = text.rindex("]", suppression.span.start, suppression.span.end)
                return Edit(at, at, "".join(f", {code}" for code in codes))
        ignored = f"cgmigrate: ignore[{', '.join(codes)}]{' ' + self.reason if self.reason else ''}"
        comment = self.document.comment_form.comment(ignored)
        start, end = comments.bounds(line)
        if not before:
            return Edit(end, end, f"  {comment}")
        indent = text[start : start + len(text[start:end]) - len(text[start:end].lstrip(" \t"))]
        return Edit(start, start, f"{indent}{comment}{comments.line_break}")


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

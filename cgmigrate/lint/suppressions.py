"""Comments that ask for diagnostics to be left out: ``cgmigrate: ignore[CG301] reason``, ``cgmigrate: ignore-file``.

A comment at the end of a line holds for the diagnostics that lie on that line, also in part; one on a line of its
own also for those that begin on the next line that is no comment. A value of several lines (a block scalar, a
string in quotes) counts as one with the key or statement that it belongs to, since no comment can stand in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import Syntax
from cgmigrate.lint.diagnostics import UNREADABLE, Diagnostic
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.yaml.tree import Node

WITHOUT_EFFECT = "CG012"
MARK = "cgmigrate:"
_FORMS = "`cgmigrate: ignore[CODE] reason` or `cgmigrate: ignore-file`"
_BREAK = re.compile(r"\r\n|\r|\n")
_DIRECTIVE = re.compile(r"#[ \t]*cgmigrate:[ \t]*(?P<what>[\w-]*)[ \t]*(?P<codes>\[[^\]\n\r]*\]?)?", re.IGNORECASE)
_OWN_LINE = re.compile(r"^[ \t]*(?P<comment>#[^\n\r]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Suppression:
    """One request. ``codes`` is empty for all rules; ``trouble`` says why the request is none.

    ``line`` counts from 0; ``alone`` says that nothing but a comment stands on it.
    """

    span: Span
    line: int
    alone: bool
    whole_file: bool
    codes: tuple[str, ...]
    input_error: str = ""


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Diagnostics parted into those to show and those left out, and what is said of requests without effect."""

    shown: tuple[Diagnostic, ...]
    hidden: tuple[Diagnostic, ...]
    idle: tuple[Diagnostic, ...]


class Requests:
    """All requests of one file. ``document`` is None where the file could not be read as what it is."""

    def __init__(self, text: str, syntax: Syntax, document: Document | None) -> None:
        unreadable = document is None or any(problem.rule in UNREADABLE for problem in document.problems)
        self._text = text
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        comments, self._joined = _by_line(text), list[Span]()
        if not unreadable:
            comments, joined = _in_python(text) if syntax is Syntax.PYTHON else _in_yaml(text, document)
            self._joined = _merged(joined)
        self._alone = {self.line_of(span.start) for span in comments if not self._before(text, span.start).strip()}
        self.suppressions = [
            self._suppression(found, self.line_of(span.start))
            for span in comments
            for found in _DIRECTIVE.finditer(text, span.start, span.end)
            if found["what"].lower().startswith("ig") or found["codes"]
        ]

        self._below: dict[int, int] = {}
        for line in sorted(self._alone, reverse=True):
            self._below[line] = self._below.get(line + 1, line + 1)
        self._on: dict[int, list[Suppression]] = {}
        self._over: dict[int, list[Suppression]] = {}
        for suppression in self.suppressions:
            self._on.setdefault(suppression.line, []).append(suppression)
            if suppression.alone:
                self._over.setdefault(self.line_below(suppression.line), []).append(suppression)
        self._whole_file = [suppression for suppression in self.suppressions if suppression.whole_file]

    def on(self, line: int) -> Sequence[Suppression]:
        """The requests that are written on a line."""
        return self._on.get(line, ())

    def over(self, line: int) -> Sequence[Suppression]:
        """The requests on lines of their own above a line."""
        return self._over.get(line, ())

    def holding(self, diagnostic: Diagnostic) -> list[Suppression]:
        """The requests that concern a diagnostic, in the order of the text."""
        first, last = self.lines_of(diagnostic.span)
        near = {id(suppression): suppression for line in range(first, last + 1) for suppression in self.on(line)}
        near |= {id(suppression): suppression for suppression in (*self.over(first), *self._whole_file)}
        return sorted(
            (suppression for suppression in near.values() if self.holds_for(suppression, diagnostic)),
            key=lambda suppression: suppression.span.start,
        )

    def line_of(self, offset: int) -> int:
        """The line of an offset, from 0, as YAML and Python count."""
        return bisect_right(self._starts, offset) - 1

    def bounds(self, line: int) -> tuple[int, int]:
        """Where a line starts, and where its text ends: before the line break."""
        found = _BREAK.search(self._text, self._starts[line])
        return self._starts[line], found.start() if found else len(self._text)

    @property
    def line_break(self) -> str:
        """How lines end in this file."""
        found = _BREAK.search(self._text)
        return found.group() if found else "\n"

    def _before(self, text: str, offset: int) -> str:
        return text[self._starts[self.line_of(offset)] : offset]

    def _suppression(self, found: re.Match[str], line: int) -> Suppression:
        what, listed = found["what"].lower(), found["codes"] or ""
        codes = tuple(code.upper() for code in re.split(r"[,\s]+", listed.strip("[]")) if code)
        input_error = ""
        if what not in ("ignore", "ignore-file"):
            input_error = f"`{found['what']}` is no request; write {_FORMS}"
        elif listed and not listed.endswith("]"):
            input_error = "the bracket is not closed"
        elif not codes and (listed or what == "ignore"):
            input_error = f"it names no rule; write {_FORMS}"
        return Suppression(Span(*found.span()), line, line in self._alone, what == "ignore-file", codes, input_error)

    def lines_of(self, span: Span) -> tuple[int, int]:
        """The first and last line of what counts as one with a part of the text."""
        start, end = span.start, max(span.start, span.end - 1)
        at = bisect_right(self._joined, start, key=lambda joined: joined.start) - 1
        if at >= 0 and start < self._joined[at].end:
            start, end = self._joined[at].start, max(end, self._joined[at].end - 1)
        return self.line_of(start), self.line_of(end)

    def holds_for(self, suppression: Suppression, diagnostic: Diagnostic) -> bool:
        """Whether a request concerns a diagnostic."""
        if suppression.input_error or (suppression.codes and not diagnostic.rule.startswith(suppression.codes)):
            return False
        if suppression.whole_file:
            return True
        first, last = self.lines_of(diagnostic.span)
        if first <= suppression.line <= last:
            return True
        return suppression.alone and self.line_below(suppression.line) == first

    def line_below(self, line: int) -> int:
        """The line that a comment on a line of its own stands over."""
        return self._below.get(line + 1, line + 1)

    def apply(
        self, diagnostics: Sequence[Diagnostic], severity: str, known: Sequence[str], selected: Sequence[str]
    ) -> Suppressed:
        """Part diagnostics. ``known`` are the codes of all rules, ``selected`` of those that are looked for here."""
        shown: list[Diagnostic] = []
        hidden: list[Diagnostic] = []
        used: set[tuple[Suppression, str]] = set()
        for diagnostic in diagnostics:
            by = self.holding(diagnostic)
            (hidden if by else shown).append(diagnostic)
            for suppression in by:
                used |= {(suppression, code) for code in suppression.codes or ("",) if diagnostic.rule.startswith(code)}
        idle = [
            Diagnostic(WITHOUT_EFFECT, severity, suppression.span, reason, help=advice)
            for suppression in self.suppressions
            for reason, advice in _idle(suppression, used, known, selected)
        ]
        named = [suppression for suppression in self.suppressions if WITHOUT_EFFECT in suppression.codes]
        idle = [
            diagnostic
            for diagnostic in idle
            if not any(self.holds_for(suppression, diagnostic) for suppression in named)
        ]
        return Suppressed(tuple(shown), tuple(hidden), tuple(idle))


def _idle(
    suppression: Suppression, used: set[tuple[Suppression, str]], known: Sequence[str], selected: Sequence[str]
) -> Iterable[tuple[str, str]]:
    """What is wrong with a request, and what to do; nothing where it has an effect, or may have in another run."""
    if suppression.input_error:
        yield f"this comment suppresses nothing: {suppression.input_error}", f"write {_FORMS}, or delete the comment"
        return
    where = "in the file" if suppression.whole_file else "here"
    for code in suppression.codes or ("",):
        concerned = [rule for rule in known if rule.startswith(code)]
        told = f"{code} in this comment" if code else "this comment"
        if not concerned:
            yield f"{told} suppresses nothing: no rule's code begins with it", "`cgmigrate rules` lists them"
        elif (suppression, code) not in used and code != WITHOUT_EFFECT and set(concerned) <= set(selected):
            yield f"{told} suppresses nothing: there is no such diagnostic {where}", f"take {code or 'it'} out"


# --- comments ---------------------------------------------------------------------------------------


def _by_line(text: str) -> list[Span]:
    """Comments of a file that cannot be read: only those that have a line to themselves are sure."""
    return [Span(*found.span("comment")) for found in _OWN_LINE.finditer(text)]


def _in_python(text: str) -> tuple[list[Span], list[Span]]:
    """The comments of a Python file, and the pieces of several lines in which none can stand."""
    import io
    import tokenize

    # Not splitlines, which knows more line breaks than Python does.
    lines = io.StringIO(text, newline="").readlines()
    starts = [0, *accumulate(map(len, lines))]
    comments: list[Span] = []
    joined: list[Span] = []
    opened: list[int] = []
    try:
        tokens = list(tokenize.generate_tokens(iter([*lines, ""]).__next__))
    except (tokenize.TokenError, SyntaxError):
        # In corners (form feeds, null bytes) it refuses what Python reads.
        return _by_line(text), []
    for token in tokens:
        start, end = (starts[line - 1] + column for line, column in (token.start, token.end))
        name = tokenize.tok_name[token.type]
        if token.type == tokenize.COMMENT:
            comments.append(Span(start, end))
        elif name in ("FSTRING_START", "TSTRING_START"):
            opened.append(start)
        elif name in ("FSTRING_END", "TSTRING_END"):
            start = opened.pop()
            joined += [Span(start, end)] if _BREAK.search(text, start, end) else []
        elif token.type == tokenize.STRING and token.start[0] != token.end[0]:
            joined.append(Span(start, end))
    joined += [Span(found.start(), found.end() + 1) for found in re.finditer(r"\\(\r\n|\r|\n)", text)]
    return comments, [_to_whole_lines(text, span) for span in joined]


def _to_whole_lines(text: str, span: Span) -> Span:
    """A piece of several lines with the rest of its first and last one, as ruff has it for ``noqa``."""
    start = max(text.rfind("\n", 0, span.start), text.rfind("\r", 0, span.start)) + 1
    found = _BREAK.search(text, span.end)
    return Span(start, found.start() if found else len(text))


def _in_yaml(text: str, document: Any) -> tuple[list[Span], list[Span]]:
    """The comments with a request in a YAML file, and pairs whose value is a scalar of several lines."""
    scalars = sorted(_scalars(document.roots), key=lambda node: node.start)
    solid: list[Span] = []
    joined: list[Span] = []
    for node in scalars:
        start = node.start
        if _BREAK.search(text, node.start, node.end):
            joined.append(Span(node.key.outer if node.key else node.outer, node.end))
            if node.style in ("|", ">"):
                # Behind the bar, on its line, a comment may stand.
                start = _BREAK.search(text, node.start, node.end).start()  # type: ignore[union-attr]
        solid.append(Span(start, node.end))
    firsts = [span.start for span in solid]

    def is_comment(offset: int) -> bool:
        if offset and text[offset - 1] not in " \t\n\r":
            return False
        at = bisect_right(firsts, offset) - 1
        return at < 0 or offset >= solid[at].end

    comments: list[Span] = []
    bounds = [0, *(found.end() for found in _BREAK.finditer(text)), len(text)]
    for start, end in pairwise(bounds):
        # Comments without a request matter where they stand between one and what it is about.
        if "#" in text[start:end]:
            at = next(
                (found.start() for found in re.finditer("#", text[start:end]) if is_comment(start + found.start())), -1
            )
            if at >= 0:
                comments.append(Span(start + at, start + len(text[start:end].rstrip("\r\n"))))
    return comments, joined


def _scalars(roots: Sequence[Node]) -> Iterable[Node]:
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.kind == "scalar":
            yield node
        stack += node.items


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that overlap as one."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if result and span.start < result[-1].end:
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result


# --- what is not fixed, since it is suppressed ------------------------------------------------------


def held_back(
    shown: Sequence[Diagnostic],
    hidden: Sequence[Diagnostic],
    again: Sequence[Diagnostic],
    line_of: Callable[[int], int],
) -> tuple[Diagnostic, ...]:
    """What is shown, where suppressed fixes hold others back; ``again`` is found when they do."""
    applicability = {(diagnostic.rule, diagnostic.span): diagnostic.applicability for diagnostic in again}
    fixes = [diagnostic for diagnostic in hidden if diagnostic.applicability]
    return tuple(
        diagnostic
        if applicability.get((diagnostic.rule, diagnostic.span)) == diagnostic.applicability
        else _held(diagnostic, fixes, line_of)
        for diagnostic in shown
    )


def _held(diagnostic: Diagnostic, fixes: Sequence[Diagnostic], line_of: Callable[[int], int]) -> Diagnostic:
    nearest = min(fixes, key=lambda other: abs(other.span.start - diagnostic.span.start))
    line = line_of(nearest.span.start) + 1
    blocked_by = f"{nearest.rule} on line {line}, which a comment suppresses and which has to change together with it"
    advice = "suppress this diagnostic, too, or delete the comment"
    return replace(diagnostic, fix="", applicability=None, because="", blocked_by=blocked_by, help=advice)

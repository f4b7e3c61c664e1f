"""Comments that ask for findings to be left out: ``cgmigrate: ignore[CG301] reason``, ``cgmigrate: ignore-file``.

A comment at the end of a line holds for the findings that lie on that line, also in part; one on a line of its
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
from cgmigrate.lint.diagnostics import UNREADABLE, Finding
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
class Directive:
    """One request. ``codes`` is empty for all rules; ``trouble`` says why the request is none.

    ``line`` counts from 0; ``alone`` says that nothing but a comment stands on it.
    """

    span: Span
    line: int
    alone: bool
    whole_file: bool
    codes: tuple[str, ...]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Findings parted into those to show and those left out, and what is said of requests without effect."""

    shown: tuple[Finding, ...]
    hidden: tuple[Finding, ...]
    idle: tuple[Finding, ...]


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
        self.directives = [
            self._directive(found, self.line_of(span.start))
            for span in comments
            for found in _DIRECTIVE.finditer(text, span.start, span.end)
            if found["what"].lower().startswith("ig") or found["codes"]
        ]

        self._below: dict[int, int] = {}
        for line in sorted(self._alone, reverse=True):
            self._below[line] = self._below.get(line + 1, line + 1)
        self._on: dict[int, list[Directive]] = {}
        self._over: dict[int, list[Directive]] = {}
        for directive in self.directives:
            self._on.setdefault(directive.line, []).append(directive)
            if directive.alone:
                self._over.setdefault(self.line_below(directive.line), []).append(directive)
        self._whole_file = [directive for directive in self.directives if directive.whole_file]

    def on(self, line: int) -> Sequence[Directive]:
        """The requests that are written on a line."""
        return self._on.get(line, ())

    def over(self, line: int) -> Sequence[Directive]:
        """The requests on lines of their own above a line."""
        return self._over.get(line, ())

    def holding(self, finding: Finding) -> list[Directive]:
        """The requests that concern a finding, in the order of the text."""
        first, last = self.lines_of(finding.span)
        near = {id(directive): directive for line in range(first, last + 1) for directive in self.on(line)}
        near |= {id(directive): directive for directive in (*self.over(first), *self._whole_file)}
        return sorted(
            (directive for directive in near.values() if self.holds_for(directive, finding)),
            key=lambda directive: directive.span.start,
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

    def _directive(self, found: re.Match[str], line: int) -> Directive:
        what, listed = found["what"].lower(), found["codes"] or ""
        codes = tuple(code.upper() for code in re.split(r"[,\s]+", listed.strip("[]")) if code)
        trouble = ""
        if what not in ("ignore", "ignore-file"):
            trouble = f"`{found['what']}` is no request; write {_FORMS}"
        elif listed and not listed.endswith("]"):
            trouble = "the bracket is not closed"
        elif not codes and (listed or what == "ignore"):
            trouble = f"it names no rule; write {_FORMS}"
        return Directive(Span(*found.span()), line, line in self._alone, what == "ignore-file", codes, trouble)

    def lines_of(self, span: Span) -> tuple[int, int]:
        """The first and last line of what counts as one with a part of the text."""
        start, end = span.start, max(span.start, span.end - 1)
        at = bisect_right(self._joined, start, key=lambda joined: joined.start) - 1
        if at >= 0 and start < self._joined[at].end:
            start, end = self._joined[at].start, max(end, self._joined[at].end - 1)
        return self.line_of(start), self.line_of(end)

    def holds_for(self, directive: Directive, finding: Finding) -> bool:
        """Whether a request concerns a finding."""
        if directive.trouble or (directive.codes and not finding.rule.startswith(directive.codes)):
            return False
        if directive.whole_file:
            return True
        first, last = self.lines_of(finding.span)
        if first <= directive.line <= last:
            return True
        return directive.alone and self.line_below(directive.line) == first

    def line_below(self, line: int) -> int:
        """The line that a comment on a line of its own stands over."""
        return self._below.get(line + 1, line + 1)

    def apply(
        self, findings: Sequence[Finding], severity: str, known: Sequence[str], selected: Sequence[str]
    ) -> Suppressed:
        """Part findings. ``known`` are the codes of all rules, ``selected`` of those that are looked for here."""
        shown: list[Finding] = []
        hidden: list[Finding] = []
        used: set[tuple[Directive, str]] = set()
        for finding in findings:
            by = self.holding(finding)
            (hidden if by else shown).append(finding)
            for directive in by:
                used |= {(directive, code) for code in directive.codes or ("",) if finding.rule.startswith(code)}
        idle = [
            Finding(WITHOUT_EFFECT, severity, directive.span, reason, help=advice)
            for directive in self.directives
            for reason, advice in _idle(directive, used, known, selected)
        ]
        named = [directive for directive in self.directives if WITHOUT_EFFECT in directive.codes]
        idle = [finding for finding in idle if not any(self.holds_for(directive, finding) for directive in named)]
        return Suppressed(tuple(shown), tuple(hidden), tuple(idle))


def _idle(
    directive: Directive, used: set[tuple[Directive, str]], known: Sequence[str], selected: Sequence[str]
) -> Iterable[tuple[str, str]]:
    """What is wrong with a request, and what to do; nothing where it has an effect, or may have in another run."""
    if directive.trouble:
        yield f"this comment suppresses nothing: {directive.trouble}", f"write {_FORMS}, or delete the comment"
        return
    where = "in the file" if directive.whole_file else "here"
    for code in directive.codes or ("",):
        concerned = [rule for rule in known if rule.startswith(code)]
        told = f"{code} in this comment" if code else "this comment"
        if not concerned:
            yield f"{told} suppresses nothing: no rule's code begins with it", "`cgmigrate rules` lists them"
        elif (directive, code) not in used and code != WITHOUT_EFFECT and set(concerned) <= set(selected):
            yield f"{told} suppresses nothing: there is no such finding {where}", f"take {code or 'it'} out"


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
    shown: Sequence[Finding], hidden: Sequence[Finding], again: Sequence[Finding], line_of: Callable[[int], int]
) -> tuple[Finding, ...]:
    """What is shown, where suppressed fixes hold others back; ``again`` is found when they do."""
    safety = {(finding.rule, finding.span): finding.safety for finding in again}
    fixes = [finding for finding in hidden if finding.safety]
    return tuple(
        finding if safety.get((finding.rule, finding.span), "") == finding.safety else _held(finding, fixes, line_of)
        for finding in shown
    )


def _held(finding: Finding, fixes: Sequence[Finding], line_of: Callable[[int], int]) -> Finding:
    nearest = min(fixes, key=lambda other: abs(other.span.start - finding.span.start))
    line = line_of(nearest.span.start) + 1
    blocked_by = f"{nearest.rule} on line {line}, which a comment suppresses and which has to change together with it"
    advice = "suppress this diagnostic, too, or delete the comment"
    return replace(finding, fix="", safety="", because="", blocked_by=blocked_by, help=advice)

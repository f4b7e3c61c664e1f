"""The text of a here-document, as the shell passes it on, with the way back to the script."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

from cgmigrate.documents.code import CodeText
from cgmigrate.documents.shell.words import EXPANDED
from cgmigrate.text.spans import Span

_ESCAPE = re.compile(r"\\[\\$`\n]")
_SPECIAL = re.compile(r"\\[\\$`\n]|[$`]")
_EXPANSION = re.compile(
    r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?:\[[@*\w]+\])?(?::?[-=+][\w./:, -]*)?\}|[@*#?$!-]|"
    r"\(\([\w$ +*/%<>()-]*\)\)|\([\w./:=, |$-]*\))",
    re.ASCII,
)
"""An expansion whose end is certain: a variable, a sum, or the output of a command without quotes."""
_NOTHING = re.compile(r"\$(?=[\s\"',.;:)\]}/%=]|\Z)")
"""A sign that expands nothing."""
_SETS = (
    r"(?:\b{name}(?:\[[^\]\n]*\])?\+?=|\bfor[ \t]+{name}\b"
    r"|(?:^|[;&|(){{]|\b(?:do|then|else|while|if)\b)[ \t]*"
    r"(?:read|local|declare|typeset|export|readarray|mapfile)\b[^\n;]*\b{name}\b)"
)
"""Matches code that sets a variable."""

_CODE_IN_TEXT = "the shell expands `{what}` in it"
_SETS_FLAGS = "`${name}`, which has flags of settings in the script around it, is expanded in it"
_SETS_TOO = "the shell expands `${name}` in it, which its own code sets, too"
_QUOTED = "the shell expands `{what}` between its quotes"
_JOINED = "a backslash joins lines of it, one of which may have a comment or single quotes"


class UncertainTextError(ValueError):
    """It is not certain what a here-document contains; the message says why."""


def escaped(text: str) -> str:
    """Return new code as a here-document writes it that the shell expands. A backslash that joins lines stays."""
    return re.sub(r"\\(?!\n)|[$`]", r"\\\g<0>", text)


def code_of(text: str, span: Span, is_expanded: bool, names: Sequence[int], variables: Collection[str]) -> CodeText:
    """Return the text of the here-document at a span. Raises UncertainTextError.

    ``names`` is where names of settings begin, ``variables`` are those of the script that contain flags of settings.
    """
    if is_expanded:
        inside = [at - span.start for at in names if span.start <= at < span.end]
        _check(text[span.start : span.end], inside, variables)
    code = CodeText.joined(list(_pieces(text, span, is_expanded)))
    for name in EXPANDED.findall(code.text):
        if name in variables and not is_set(name, code.text):
            raise UncertainTextError(_SETS_FLAGS.format(name=name))
    return code


def is_set(name: str, code: str) -> bool:
    """Return whether shell code may set a variable."""
    return re.search(_SETS.format(name=re.escape(name)), code, re.MULTILINE) is not None


def _pieces(text: str, span: Span, is_expanded: bool) -> Iterator[CodeText]:
    """Yield the lines of a here-document."""
    at = span.start
    while at < span.end:
        end = text.index("\n", at)
        is_joined = is_expanded and _ends_in_backslash(text, at, end)
        yield from _characters(text, at, end - is_joined) if is_expanded else [CodeText.of(text, at, end)]
        if is_joined:
            yield CodeText.of(text, end - 1, end)
        yield CodeText.written_as("\n", end, end + 1)
        at = end + 1


def _ends_in_backslash(text: str, start: int, end: int) -> bool:
    line = text[start:end]
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _characters(text: str, start: int, end: int) -> Iterator[CodeText]:
    """Yield a line without the backslashes that the shell takes away."""
    for match in _ESCAPE.finditer(text, start, end):
        yield CodeText.of(text, start, match.start())
        yield CodeText.written_as(match.group()[1], *match.span())
        start = match.end()
    yield CodeText.of(text, start, end)


# --- what the shell expands ------------------------------------------------------------------------------


def _check(body: str, names: Sequence[int], variables: Collection[str]) -> None:
    """Raise UncertainTextError if the expansion of a text may change more than words of it."""
    at = 0
    while match := _SPECIAL.search(body, at):
        if match.group() == "\\\n":
            line = _logical_line(body, match.start())
            if set(body[line.start : line.end]) & set("#'"):
                raise UncertainTextError(_JOINED)
            at = match.end()
        elif match.group().startswith("\\"):
            at = match.end()
        elif nothing := _NOTHING.match(body, match.start()):
            at = nothing.end()
        else:
            at = _check_expansion(body, match.start(), names, variables)


def _check_expansion(body: str, start: int, names: Sequence[int], variables: Collection[str]) -> int:
    """Return the end of an expansion. Raises UncertainTextError."""
    match = _EXPANSION.match(body, start)
    what = match.group() if match else body[start : start + 12].partition("\n")[0]
    if match is None:
        raise UncertainTextError(_CODE_IN_TEXT.format(what=what))
    for name in EXPANDED.findall(match.group()):
        if name in variables:
            raise UncertainTextError(_SETS_FLAGS.format(name=name))
        if is_set(name, body):
            raise UncertainTextError(_SETS_TOO.format(name=name))
    line = _logical_line(body, start)
    has_name = bisect_left(names, line.start) < bisect_left(names, line.end)
    if has_name and "'" in body[line.start : line.end]:
        raise UncertainTextError(_QUOTED.format(what=what))
    return match.end()


def _logical_line(body: str, at: int) -> Span:
    """Return a line with those that a backslash joins to it."""
    start = body.rfind("\n", 0, at) + 1
    while start and _ends_in_backslash(body, 0, start - 1):
        start = body.rfind("\n", 0, start - 1) + 1
    end = body.find("\n", at)
    while 0 <= end < len(body) - 1 and _ends_in_backslash(body, start, end):
        end = body.find("\n", end + 1)
    return Span(start, len(body) if end < 0 else end)

"""The comments of a file, and the pieces of several lines that no comment can be in."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.yaml.tree import Node

LINE_BREAK = re.compile(r"\r\n|\r|\n")
_OWN_LINE = re.compile(r"^[ \t]*(?P<comment>#[^\n\r]*)", re.MULTILINE)


def comment_lines(text: str) -> list[Span]:
    """Return the comments of a file that cannot be read: only those on lines of their own are certain."""
    return [Span(*match.span("comment")) for match in _OWN_LINE.finditer(text)]


def python_comments(text: str) -> tuple[list[Span], list[Span]]:
    """Return the comments of a Python file, and the pieces of several lines that no comment can be in."""
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
        return comment_lines(text), []
    for token in tokens:
        start, end = (starts[line - 1] + column for line, column in (token.start, token.end))
        name = tokenize.tok_name[token.type]
        if token.type == tokenize.COMMENT:
            comments.append(Span(start, end))
        elif name in ("FSTRING_START", "TSTRING_START"):
            opened.append(start)
        elif name in ("FSTRING_END", "TSTRING_END"):
            start = opened.pop()
            joined += [Span(start, end)] if LINE_BREAK.search(text, start, end) else []
        elif token.type == tokenize.STRING and token.start[0] != token.end[0]:
            joined.append(Span(start, end))
    joined += [Span(match.start(), match.end() + 1) for match in re.finditer(r"\\(\r\n|\r|\n)", text)]
    return comments, [_to_whole_lines(text, span) for span in joined]


def _to_whole_lines(text: str, span: Span) -> Span:
    """Return a piece of several lines with the rest of its first and last one, as ruff does for ``noqa``."""
    start = max(text.rfind("\n", 0, span.start), text.rfind("\r", 0, span.start)) + 1
    match = LINE_BREAK.search(text, span.end)
    return Span(start, match.start() if match else len(text))


def yaml_comments(text: str, document: Any) -> tuple[list[Span], list[Span]]:
    """Return the comments of a YAML file, and the pairs whose value is a scalar of several lines."""
    scalars = sorted(_scalars(document.roots), key=lambda node: node.start)
    solid: list[Span] = []
    joined: list[Span] = []
    for node in scalars:
        start = node.start
        if LINE_BREAK.search(text, node.start, node.end):
            joined.append(Span(node.key.outer if node.key else node.outer, node.end))
            if node.style in ("|", ">"):
                # A comment may follow the bar on its line.
                start = LINE_BREAK.search(text, node.start, node.end).start()  # type: ignore[union-attr]
        solid.append(Span(start, node.end))
    firsts = [span.start for span in solid]

    def is_comment(offset: int) -> bool:
        if offset and text[offset - 1] not in " \t\n\r":
            return False
        at = bisect_right(firsts, offset) - 1
        return at < 0 or offset >= solid[at].end

    comments: list[Span] = []
    bounds = [0, *(match.end() for match in LINE_BREAK.finditer(text)), len(text)]
    for start, end in pairwise(bounds):
        # Comments without a suppression matter between one and the line that it is about.
        if "#" in text[start:end]:
            at = next(
                (match.start() for match in re.finditer("#", text[start:end]) if is_comment(start + match.start())), -1
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


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if result and span.start < result[-1].end:
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result

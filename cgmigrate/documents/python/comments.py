"""Comments of a Python file, as its tokens show them."""

from __future__ import annotations

import re
from itertools import accumulate

from cgmigrate.documents.comments import LINE_BREAK, CommentForm, lines_of_comments
from cgmigrate.text.spans import Span


def comments_of(text: str, form: CommentForm) -> tuple[list[Span], list[Span]]:
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
        return lines_of_comments(text, form), []
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

"""Comments of a file, as every document gives them. Suppressions are read from them, and written as they are written.

A comment ends with its line. A syntax in which no comment can be at some places says so (``joined_lines``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cgmigrate.text.spans import Span

LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class CommentForm:
    """How a syntax writes a comment: what is before and behind its text.

    ``inside`` begins the comments of code that the text has parts of.
    """

    start: str = "#"
    end: str = ""
    inside: str = ""

    def comment(self, text: str) -> str:
        """Return a comment with a text."""
        return " ".join(filter(None, (self.start, text, self.end)))


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment. ``text`` includes what begins and ends it; ``alone`` says that nothing else is on its line."""

    text: str
    span: Span
    alone: bool


class Commented(Protocol):
    """A text whose comments are known."""

    @property
    def text(self) -> str:
        """The whole text."""

    @property
    def comment_form(self) -> CommentForm:
        """How the syntax writes a comment."""

    def comments(self) -> Sequence[Comment]:
        """Return the comments, in the order of the text."""

    def joined_lines(self) -> Sequence[Span]:
        """Return the parts of several lines inside which no comment can be: a diagnostic in one counts for all."""


@dataclass(frozen=True, slots=True)
class UnreadText:
    """A text that no document could be made of: only the comments on lines of their own are certain."""

    text: str
    comment_form: CommentForm

    def comments(self) -> Sequence[Comment]:
        """Return the comments on lines of their own."""
        return comments_at(self.text, lines_of_comments(self.text, self.comment_form))

    def joined_lines(self) -> Sequence[Span]:
        """Return nothing, since the structure of the text is not known."""
        return ()


def lines_of_comments(text: str, form: CommentForm) -> list[Span]:
    """Return the comments that are on lines of their own."""
    own_line = re.compile(rf"^[ \t]*(?P<comment>{re.escape(form.start)}[^\n\r]*)", re.MULTILINE)
    return [Span(*match.span("comment")) for match in own_line.finditer(text)]


def comments_at(text: str, spans: Iterable[Span]) -> list[Comment]:
    """Return the comments at some spans of a text."""
    return [Comment(text[span.start : span.end], span, not _before(text, span.start).strip()) for span in spans]


def _before(text: str, offset: int) -> str:
    """Return what is before an offset on its line."""
    return text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]

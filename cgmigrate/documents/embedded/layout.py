"""The layout of a file with instructions: what of it is shell code, and what is not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.code import Code
from cgmigrate.text.spans import Span


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a file that is not read as shell code; ``what`` says what it is or why."""

    span: Span
    what: str


@dataclass(slots=True)
class Layout:
    """What a file with instructions consists of.

    ``script`` is the shell code of all of them as one script. ``words`` are the strings of JSON arrays that are words
    of it; the file has quotes and commas between them. ``joined`` are the instructions of several lines. ``places`` are
    the parts of the file that have a name. ``blocked`` says of variables why flags in them are not rewritten,
    ``blocked_spans`` says it of parts of the file.
    ``escape`` is what ends a line that the next one continues.
    """

    script: Code = field(default_factory=Code)
    words: Sequence[Span] = ()
    unread: Sequence[Unread] = ()
    comments: Sequence[Span] = ()
    joined: Sequence[Span] = ()
    places: Sequence[tuple[Span, str]] = ()
    blocked: Mapping[str, str] = field(default_factory=dict)
    blocked_spans: Sequence[tuple[Span, str]] = ()
    escape: str = "\\"

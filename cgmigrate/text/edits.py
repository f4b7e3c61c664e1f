"""Edits: spans of a text with their replacements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the code points ``start`` to ``end`` (half-open, of the decoded text) by ``text``."""

    start: int
    end: int
    text: str


class OverlapError(ValueError):
    """Two edits replace the same code points."""


def apply(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with all edits made; spans count in the text as it was.

    Edits may come in any order and may touch; insertions at one point keep the order given, and come before a
    replacement that starts there.

    Raises:
        OverlapError: two edits overlap; the message names both.
        ValueError: a span runs backwards or leaves the text.
    """
    pieces = []
    done = 0
    last: Edit | None = None
    # Not by the dataclass's own order, which would sort insertions at one point by their text.
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if not 0 <= edit.start <= edit.end <= len(text):
            raise ValueError(f"{edit} does not lie in a text of {len(text)} characters")
        if last is not None and edit.start < last.end:
            raise OverlapError(f"{edit} overlaps {last}")
        pieces += [text[done : edit.start], edit.text]
        done = edit.end
        last = edit
    return "".join([*pieces, text[done:]])


def moved(offset: int, edits: Sequence[Edit]) -> int:
    """Return where an offset is once the edits are made; inside a replacement, where that starts."""
    shift = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.end <= offset:
            shift += len(edit.text) - (edit.end - edit.start)
        elif edit.start <= offset:
            return edit.start + shift
    return offset + shift


def moved_edits(edits: Sequence[Edit], written: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return edits of a text for the text after others were ``written``; none where these meet one of them."""
    if not written:
        return tuple(edits)
    for edit in edits:
        if any(other.start <= edit.end and edit.start <= other.end for other in written):
            return ()
    return tuple(Edit(moved(edit.start, written), moved(edit.end, written), edit.text) for edit in edits)

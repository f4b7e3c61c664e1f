"""Lines of Python text: where they begin and end, and what follows a statement."""

from __future__ import annotations


def line_start(text: str, at: int) -> int:
    """Return where the line of an offset begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the offset behind the line break of a line, or the end of the text."""
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def rest_of_line(text: str, at: int) -> str:
    """Return the code behind an offset on its line, without a comment."""
    rest = text[at : line_end(text, at)].strip()
    return "" if rest.startswith("#") else rest


def newline_near(text: str, at: int) -> str:
    """Return the line break of the line of an offset, or of the line before."""
    end = text.find("\n", at)
    if end < 0:
        end = text.rfind("\n", 0, at)
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"

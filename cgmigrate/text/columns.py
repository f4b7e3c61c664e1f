"""How many columns of a terminal a text takes."""

from __future__ import annotations

TAB = "    "
"""What a tab is shown as: its width would depend on the column where it begins."""


def width(text: str) -> int:
    """Return the columns that a text without tabs takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(char: str) -> int:
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1

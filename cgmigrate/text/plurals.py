"""Plurals in messages."""

from __future__ import annotations


def counted(number: int, what: str, many: str = "") -> str:
    """Return ``1 file`` or ``2 files``; ``many`` is the plural of words that do not end in s."""
    return f"{number} {what if number == 1 else many or what + 's'}"

"""Words of messages that everything says alike."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {what}{'' if number == 1 else 's'}"

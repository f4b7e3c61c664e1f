"""Words of messages that everything says alike."""

from __future__ import annotations


def counted(number: int, what: str, many: str = "") -> str:
    """``1 file``, ``2 files``; ``many`` is the plural of other words."""
    return f"{number} {what if number == 1 else many or what + 's'}"

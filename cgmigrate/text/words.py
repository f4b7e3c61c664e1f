"""Words that data and messages write for the members of an enumeration."""

from __future__ import annotations

from enum import Enum


class WordEnum(str, Enum):
    """An enumeration whose members are written as their values (`enum.StrEnum`, which Python 3.10 lacks)."""

    def __str__(self) -> str:
        return str(self.value)

"""What other files do with the names of a file: its lists of keys, and its classes that a mapping fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.documents.python.key_uses import KeyUse


@dataclass(frozen=True, slots=True)
class LinkedKeys:
    """The uses of names of one file, in all files of its project."""

    uses: Mapping[str, Sequence[KeyUse]] = field(default_factory=dict)
    """Name of a list or class → its uses."""
    classes: frozenset[str] = frozenset()
    """The classes of the project that mappings fill."""

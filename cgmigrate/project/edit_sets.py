"""Sets of files that are written together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file."""

    path: str
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """The changes of files that are written together; ``id`` names the set for the user."""

    id: str
    changes: tuple[FileChange, ...]

"""Code that reads a key by its name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Code that reads a key by its name. ``unread`` says why the code is not known; then it may read the key."""

    place: str
    unread: str = ""


@dataclass(frozen=True, slots=True)
class KeyCode:
    """Which old names a file reads."""

    path: str
    reads: Sequence[tuple[str, KeyReader]] = ()
    """Each old name that it reads; of a file that is not read those in its text."""
    tree: ast.Module | None = None
    """The tree of its text, None if it is not needed."""

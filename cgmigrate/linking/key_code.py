"""What a file does with the keys of mappings: which it reads by name, sets, copies, or declares."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.key_copies import KeyCopier
from cgmigrate.documents.python.key_types import KeyType


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Code that reads a key by its name. ``unread`` says why the code is not known; then it may read the key."""

    place: str
    unread: str = ""


@dataclass(frozen=True, slots=True)
class KeyCode:
    """What a file does with the keys of mappings."""

    path: str
    reads: Sequence[tuple[str, KeyReader, ast.AST | None]] = ()
    """Each old name that it reads, with its node; of a file that is not read those in its text, without one."""
    copiers: Sequence[KeyCopier] = ()
    typed_dicts: Sequence[KeyType] = ()
    tree: ast.Module | None = None
    """The tree of its text, None if it is not needed."""

    def names_read(self, copiers: Iterable[KeyCopier]) -> set[str]:
        """Return the old names that are read outside of some copiers of the file, and of its TypedDicts."""
        known = {id(node) for one in copiers for node in one.nodes()}
        known |= {id(field) for one in self.typed_dicts for field in one.fields}
        return {name for name, _, node in self.reads if id(node) not in known}

"""Sets of files written one after the other, as `fix` writes them."""

from __future__ import annotations

from collections.abc import Iterable

from cgmigrate.project.edit_sets import ChangeSet
from cgmigrate.project.journal import Journal
from cgmigrate.project.transaction import write_set
from cgmigrate.project.write import WriteError


def write_sets(sets: Iterable[ChangeSet], journal: Journal | None = None) -> list[WriteError | None]:
    """Write the sets, and return the error of each that could not be written."""
    errors: list[WriteError | None] = []
    for edit_set in sets:
        try:
            write_set(edit_set, journal)
            errors.append(None)
        except WriteError as error:
            errors.append(error)
    return errors

"""Writing a set of files as a transaction: all of its files are written, or none.

All files are compared and all new contents are prepared before the first file is written. If a file cannot be written,
those before it are reverted. If the process is killed in between, the next command does that from the set's record.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from cgmigrate.project.edit_sets import ChangeSet, FileChange
from cgmigrate.project.journal import Entries, Journal
from cgmigrate.project.revert import revert
from cgmigrate.project.set_record import RecordedFile, SetRecord
from cgmigrate.project.temporary_files import removed_if_interrupted
from cgmigrate.project.write import FileReplacement, WriteError, sync_folder
from cgmigrate.project.write_lock import write_lock

_NAMES = 20
"""Files of a set that an error names."""
_OPEN_FILES = 100
"""Files that a process may have open in addition to those of a set."""


class SetError(WriteError):
    """No file of a set was written, since one could not be; the message names them."""


def write_set(edit_set: ChangeSet, journal: Journal | None = None) -> None:
    """Write all files of a set, or none; each as `write.write` does. ``journal`` records what they were before.

    Raises:
        ChangedError, ReadOnlyError, WriteError: the only file of the set could not be written.
        SetError: one of several files could not be written; the message names them all.
    """
    with removed_if_interrupted(), ExitStack() as cleanup:
        try:
            replacements = _replacements(edit_set.changes)
            for replacement in replacements:
                cleanup.callback(replacement.close)
            if replacements:
                _Transaction(edit_set.id, replacements, journal).run()
        except WriteError as error:
            if len(edit_set.changes) == 1:
                raise
            paths = [change.path for change in edit_set.changes]
            raise SetError(f"{error}; {together(paths)}, and none was written") from error


def together(paths: Sequence[str]) -> str:
    """Return the beginning of a sentence on the files of a set, which names them."""
    names = ", ".join(paths[:_NAMES])
    if len(paths) > _NAMES:
        names += f" and {len(paths) - _NAMES} more"
    return f"these files are written together: {names}"


def _replacements(changes: Sequence[FileChange]) -> list[FileReplacement]:
    """Compare all files; return the new content of each that changes. Raises WriteError.

    A file with several paths (links, hard links) is written once.
    """
    of_file: dict[tuple[int, int], FileReplacement] = {}
    for change in changes:
        new = FileReplacement(change.path, change.before, change.after)
        same = of_file.setdefault((new.status.st_dev, new.status.st_ino), new)
        if same.after != new.after:
            raise WriteError(f"{same.path} and {new.path} are the same file and would get different contents")
    changed = [new for new in of_file.values() if new.before != new.after]
    return sorted(changed, key=lambda new: new.target)


class _Transaction:
    """One set that is being written."""

    def __init__(self, name: str, replacements: list[FileReplacement], journal: Journal | None) -> None:
        self._replacements = replacements
        changes = [FileChange(new.path, new.before, new.after) for new in replacements]
        self._entries = journal.record(name, changes) if journal is not None else Entries()
        self._record: SetRecord | None = None

    def run(self) -> None:
        """Write all files. Raises WriteError, after those that were written are reverted."""
        try:
            self._write()
            for folder in {os.path.dirname(new.target) for new in self._replacements}:
                sync_folder(folder)
            if self._record is not None:
                self._record.discard()
        finally:
            if self._record is not None:
                self._record.close()

    def _write(self) -> None:
        with ExitStack() as locks:
            try:
                self._prepare()
                locks.enter_context(write_lock())
                self._apply()
            except BaseException as error:
                self._revert(error)
                raise

    def _prepare(self) -> None:
        # A single rename is whole or not done, so it needs no record.
        if len(self._replacements) > 1:
            self._begin_record()
        _allow_open_files(len(self._replacements))
        for replacement in self._replacements:
            replacement.prepare()
        in_place = [replacement.in_place for replacement in self._replacements]
        if any(in_place) and self._record is None:
            self._begin_record()
        if self._record is not None:
            try:
                self._record.ready(in_place)
            except OSError:
                self._record.discard()
                self._record = None

    def _begin_record(self) -> None:
        # Without a record the set is written all the same, but cannot be reverted if the process is killed.
        with suppress(OSError):
            self._record = SetRecord(self._files(), self._entries.folder, self._entries.key)

    def _apply(self) -> None:
        copy = self._record.path if self._record is not None else ""
        # First those whose writing can fail half done.
        for replacement in sorted(self._replacements, key=lambda new: not new.in_place):
            replacement.apply(copy)

    def _revert(self, error: BaseException) -> None:
        """Give the files that were written their former content. Raises WriteError if that is not possible."""
        reverted = revert([self._recorded(new) for new in self._replacements if new.is_applied()])
        # The record stays if this is interrupted, or fails: the next command tries again.
        if self._record is not None and not reverted.failed:
            self._record.discard()
        if not reverted.problems:
            self._entries.withdraw()
        elif isinstance(error, WriteError):
            raise WriteError("; ".join([str(error), *reverted.problems])) from error

    def _files(self) -> list[RecordedFile]:
        copies = self._entries.copies or [""] * len(self._replacements)
        return [self._recorded(new, copy) for new, copy in zip(self._replacements, copies, strict=True)]

    @staticmethod
    def _recorded(new: FileReplacement, copy: str = "") -> RecordedFile:
        return RecordedFile(os.path.abspath(new.path), new.target, new.before, new.after, copy, new.in_place)


def _allow_open_files(number: int) -> None:
    """Raise this process's limit of open files, as far as the system allows it: each prepared file is one."""
    if number < _OPEN_FILES:
        return
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = number + _OPEN_FILES
        if soft != resource.RLIM_INFINITY and soft < needed:
            limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))

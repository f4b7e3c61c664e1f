"""Giving the files of a set that was written in part their former content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from cgmigrate.project.set_record import RecordedFile
from cgmigrate.project.temporary_files import remove_leftovers
from cgmigrate.project.write import WriteError, read_regular, write


class FileState(Enum):
    """What a file contains."""

    BEFORE = auto()
    AFTER = auto()
    PARTIAL = auto()
    """Something of both: writing it in place did not end."""
    CHANGED = auto()
    """Neither, or it is gone: somebody else has changed it since."""


@dataclass(frozen=True, slots=True)
class Reverted:
    """The files that were reverted, and a sentence for each that was changed since, or that could not be written."""

    files: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """All sentences."""
        return self.changed + self.failed


class _ChangedSinceError(Exception):
    """Somebody else has changed the file."""


def revert(files: Sequence[RecordedFile]) -> Reverted:
    """Write the former content to each file that has the new one. Files that somebody else has changed are kept."""
    reverted, changed, failed = [], [], []
    for file in files:
        try:
            if _revert(file):
                reverted.append(file.path)
        except _ChangedSinceError as error:
            changed.append(str(error))
        except OSError as error:
            reason = error if isinstance(error, WriteError) else f"{file.path}: {error.strerror or error}"
            failed.append(f"{reason}; its former content is not restored yet")
    return Reverted(tuple(reverted), tuple(changed), tuple(failed))


def _revert(file: RecordedFile) -> bool:
    """Revert one file; return False if it has its former content. Raises OSError and _ChangedSinceError."""
    state, content = state_of(file)
    if state is FileState.CHANGED:
        copy = f" (its former content: {file.copy})" if file.copy and os.path.exists(file.copy) else ""
        raise _ChangedSinceError(
            f"{file.path} has changed since a write that was interrupted, and was left alone{copy}"
        )
    if state is FileState.BEFORE:
        return False
    remove_leftovers(os.path.dirname(file.target))
    write(file.target, content, file.before)
    return True


def state_of(file: RecordedFile) -> tuple[FileState, bytes]:
    """Return what a file contains. Raises OSError."""
    try:
        content = read_regular(file.target)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, WriteError):
        return FileState.CHANGED, b""
    if content == file.before:
        return FileState.BEFORE, content
    if content == file.after:
        return FileState.AFTER, content
    if file.in_place and _is_partial(content, file.before, file.after):
        return FileState.PARTIAL, content
    return FileState.CHANGED, content


def _is_partial(content: bytes, before: bytes, after: bytes) -> bool:
    """Return whether each byte is that of one of the two contents: writing has ended anywhere, in any order."""
    shorter, longer = sorted((before, after), key=len)
    if not len(shorter) <= len(content) <= len(longer):
        return False
    mixed = all(byte in pair for byte, pair in zip(content, zip(before, after, strict=False), strict=False))
    return mixed and content[len(shorter) :] == longer[len(shorter) : len(content)]

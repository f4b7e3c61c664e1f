"""Finishing or reverting the sets of files that an earlier process was writing when it was killed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from cgmigrate.project import set_record
from cgmigrate.project.cache_folder import records
from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.journal import Entries
from cgmigrate.project.revert import FileState, Reverted, revert, state_of
from cgmigrate.project.set_record import Recorded, RecordedFile
from cgmigrate.project.temporary_files import remove_leftovers
from cgmigrate.project.write_lock import write_lock

PATIENCE = 3.0
"""Seconds to wait for another process that writes files of the same checkout."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The end of an interrupted set of ``files`` files.

    ``finished`` says that all of them were written already. If ``is_live``, another process is still writing them.
    """

    files: int
    finished: bool = False
    is_live: bool = False
    reverted: Reverted = field(default_factory=Reverted)


def recover(paths: Iterable[str]) -> Iterator[Recovery]:
    """Finish or revert each interrupted set that has a file in the checkouts, or else folders, of these paths.

    Sets that another process is writing are left alone, after a short wait for it.
    """
    roots = {_root(path) for path in paths}
    # The last one first: each was written over the result of those before it.
    for record in sorted(records(), key=_time_of, reverse=True):
        # A record of another user, or one that another process has removed.
        with suppress(OSError):
            if recovery := _recover(record, roots):
                yield recovery


def _root(path: str) -> str:
    folder = os.path.realpath(path)
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return checkout_of(folder) or folder


def _time_of(record: str) -> int:
    try:
        return os.stat(record).st_mtime_ns
    except OSError:
        return 0


def _recover(path: str, roots: set[str]) -> Recovery | None:
    """Recover the set of one record; return None if it does not concern these folders. Raises OSError."""
    with set_record.opened(path) as descriptor:
        recorded = set_record.read(descriptor)
        if recorded is not None and not _concerns(recorded, roots):
            return None
        if not _is_abandoned(descriptor, PATIENCE if recorded else 0):
            return Recovery(len(recorded.files), is_live=True) if recorded and os.path.exists(path) else None
        if not os.fstat(descriptor).st_nlink:
            return None
        # Now it does not change any more.
        recorded = set_record.read(descriptor)
        recovery = _end(recorded) if recorded is not None else None
        if recovery is None or not recovery.reverted.failed:
            set_record.remove(path)
        return recovery


def _concerns(recorded: Recorded, roots: set[str]) -> bool:
    return any(file.target.startswith(os.path.join(root, "")) for file in recorded.files for root in roots)


def _is_abandoned(descriptor: int, patience: float) -> bool:
    end = time.monotonic() + patience
    while not set_record.is_abandoned(descriptor):
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)
    return True


def _end(recorded: Recorded) -> Recovery:
    with write_lock():
        return _finish_or_revert(recorded)


def _finish_or_revert(recorded: Recorded) -> Recovery:
    """Revert a set unless all of its files are written; remove what its writer has left."""
    for folder in {os.path.dirname(file.target) for file in recorded.files}:
        remove_leftovers(folder)
    number = len(recorded.files)
    states = [_state(file) for file in recorded.files] if recorded.ready else []
    if FileState.AFTER in states and not {FileState.BEFORE, FileState.PARTIAL, None} & set(states):
        changed = [file for file, state in zip(recorded.files, states, strict=True) if state is FileState.CHANGED]
        return Recovery(number, finished=True, reverted=revert(changed))
    reverted = revert(recorded.files) if recorded.ready else Reverted()
    if not reverted.problems:
        Entries(recorded.key, recorded.journal).withdraw()
    return Recovery(number, reverted=reverted)


def _state(file: RecordedFile) -> FileState | None:
    try:
        return state_of(file)[0]
    except OSError:
        return None

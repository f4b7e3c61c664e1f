"""The record of a set of files that is being written, from which the next command finishes or reverts it.

A record is a file in the user's cache folder, locked while its writer runs. It has three lines of JSON: which files,
their contents before and after, and, as soon as all new contents are prepared, which of the files are written in place.
Until the third line is complete and on the disk no file of the set is written.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass

from cgmigrate.project import private_files
from cgmigrate.project.cache_folder import records_folder
from cgmigrate.project.temporary_files import create, keep, lock, write_all
from cgmigrate.project.write import sync_folder

WITHOUT_LOCKS = 600
"""Seconds after which a writer is taken for dead, where there are no locks and it ran on another machine."""


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file of a set.

    ``path`` is absolute, ``target`` is the same without symbolic links, and ``copy`` is the copy of its former content
    in the journal, empty if there is none. ``in_place`` says that the file itself is written rather than replaced.
    """

    path: str
    target: str
    before: bytes
    after: bytes
    copy: str = ""
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """The content of a record. ``journal`` and ``key`` name the set's entries in a journal; both may be empty."""

    files: tuple[RecordedFile, ...]
    journal: str
    key: str
    ready: bool
    """Whether a file may have been written."""


class SetRecord:
    """The record of the set that this process writes. Creating it and `ready` raise OSError."""

    def __init__(self, files: Sequence[RecordedFile], journal: str, key: str) -> None:
        folder = records_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._descriptor, self.path = create(folder)
        keep(self.path)
        try:
            head = {
                "host": _host(),
                "process": os.getpid(),
                "journal": journal,
                "key": key,
                "files": [[file.path, file.target, file.copy] for file in files],
            }
            contents = [[_text(file.before), _text(file.after)] for file in files]
            write_all(self._descriptor, _line(head) + _line(contents))
        except BaseException:
            self.discard()
            raise

    def ready(self, in_place: Sequence[bool]) -> None:
        """Write to the disk that files may be written from now on, and which of them in place."""
        write_all(self._descriptor, _line(list(in_place)))
        os.fsync(self._descriptor)
        folder = os.path.dirname(self.path)
        sync_folder(folder)
        sync_folder(os.path.dirname(folder))

    def discard(self) -> None:
        """Remove the record: the set is written, or none of it is."""
        remove(self.path)
        self.close()

    def close(self) -> None:
        """Unlock the record. If it was not discarded, the next command reads it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def remove(path: str) -> None:
    """Remove a record for good: after a power failure it must not revert what was edited since."""
    with suppress(OSError):
        os.unlink(path)
    sync_folder(os.path.dirname(path))


def _line(data: object) -> bytes:
    return json.dumps(data).encode() + b"\n"


def _text(data: bytes) -> str:
    # Any bytes become text and back, and most records can be read by a person.
    return data.decode("utf-8", "surrogateescape")


def _host() -> str:
    import socket

    return socket.gethostname()


def opened(path: str) -> AbstractContextManager[int]:
    """Open a record. Raises OSError, also if somebody else may have written it."""
    return private_files.opened(path, os.O_RDWR)


def is_abandoned(descriptor: int) -> bool:
    """Return whether the writer of a record is gone. If so, the record is locked for this process."""
    locked = lock(descriptor, wait=False)
    if locked is not None:
        return locked
    if time.time() - os.fstat(descriptor).st_mtime > WITHOUT_LOCKS:
        return True
    try:
        head = json.loads(_lines(descriptor)[0])
        return head["host"] == _host() and not _is_running(head["process"])
    except (IndexError, KeyError, TypeError, ValueError):
        return False


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _lines(descriptor: int) -> list[bytes]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with closing(os.fdopen(os.dup(descriptor), "rb")) as file:
        return [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]


def read(descriptor: int) -> Recorded | None:
    """Return the content of a record; None if its writer was killed, or is, before it was complete."""
    lines = _lines(descriptor)
    try:
        head, contents = json.loads(lines[0]), json.loads(lines[1])
        in_place = json.loads(lines[2]) if len(lines) > 2 else [False] * len(contents)
        files = tuple(
            RecordedFile(path, target, _bytes(before), _bytes(after), copy, changed)
            for (path, target, copy), (before, after), changed in zip(head["files"], contents, in_place, strict=True)
        )
        return Recorded(files, head["journal"], head["key"], len(lines) > 2)
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")

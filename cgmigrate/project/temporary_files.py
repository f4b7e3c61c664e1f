"""Temporary files beside the files that they replace.

A new content is complete in a temporary file before it gets the name of the old one. A process that is killed before
leaves its temporary file behind, which the next run that writes in the folder removes. Each is locked as long as its
writer lives: so a leftover is known from a file that another run is about to use.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

_NAME = re.compile(r"\.cgmigrate-\w{8}\.tmp")


def create(folder: str) -> tuple[int, str]:
    """Open a new temporary file in a folder: its descriptor, which holds the lock until it is closed, and path."""
    import tempfile

    while True:
        descriptor, path = tempfile.mkstemp(prefix=".cgmigrate-", suffix=".tmp", dir=folder)
        if not _locked(descriptor) or os.fstat(descriptor).st_nlink:
            return descriptor, path
        # Another run removed it as a leftover, between its creation and its lock.
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the data, however many calls it takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def remove_leftovers(folder: str) -> None:
    """Remove this user's temporary files that no running process uses."""
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [entry.path for entry in entries if _NAME.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_unused(path)


def _remove_unused(path: str) -> None:
    # For writing: a network file system gives an exclusive lock to no other descriptor.
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        own = stat.S_ISREG(status.st_mode) and os.geteuid() in (0, status.st_uid)
        if own and _locked(descriptor, wait=False):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, wait: bool = True) -> bool:
    """Lock a file; False where another process holds the lock, or the system has none."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True

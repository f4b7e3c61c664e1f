"""Temporary files, in the folder of the file that they replace.

A new content is complete in a temporary file before it gets the name of the old one. If the process is killed, the
temporary file remains, and the next run that writes in the folder removes it. A temporary file is locked while its
writer runs: this distinguishes it from a leftover.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

_NAME = re.compile(r"\.cgmigrate-\w{8}\.tmp")


def create(folder: str) -> tuple[int, str]:
    """Create a temporary file in a folder; return its descriptor, which is locked until it is closed, and its path."""
    import tempfile

    while True:
        descriptor, path = tempfile.mkstemp(prefix=".cgmigrate-", suffix=".tmp", dir=folder)
        if not _locked(descriptor) or os.fstat(descriptor).st_nlink:
            return descriptor, path
        # Another run removed it as a leftover before it was locked.
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
    # For writing: network file systems lock only such descriptors exclusively.
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
    return bool(lock(descriptor, wait))


def lock(descriptor: int, wait: bool = True) -> bool | None:
    """Lock a file until it is closed; return False if another process has locked it, None if there are no locks.

    A lock ends with its process. Neither Windows nor every file system has locks.
    """
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True

"""Files and folders in the user's cache that nobody else may have written.

What they hold decides what is written to the user's files: it must not come from another user, through a link, or out
of a git checkout.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def opened(path: str, access: int = os.O_RDONLY) -> Iterator[int]:
    """Open a private file. Raises OSError, also if it is another user's, accessible to others, or a link."""
    descriptor = os.open(path, access | _NO_LINK)
    try:
        status = os.fstat(descriptor)
        if not (stat.S_ISREG(status.st_mode) and _is_private(status)):
            raise PermissionError(errno.EPERM, "not a private file of this user", path)
        yield descriptor
    finally:
        os.close(descriptor)


def is_private_folder(path: str) -> bool:
    """Return whether a path is a folder of this user that nobody else may read or write, and no link to one."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077

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

from cgmigrate.project.temporary_files import create, remove_leftovers, removed_if_interrupted, write_all

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


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


def read(path: str) -> bytes:
    """Return the content of a private file in a private folder. Raises OSError."""
    if not is_private_folder(os.path.dirname(path)):
        raise PermissionError(errno.EPERM, "not a private folder of this user", os.path.dirname(path))
    with opened(path) as descriptor, open(os.dup(descriptor), "rb") as file:
        return file.read()


def write(path: str, data: bytes) -> None:
    """Write a private file, whole or not at all; its folder is made, or made private. Raises OSError."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _make_private(folder)
    remove_leftovers(folder)
    with removed_if_interrupted():
        descriptor, temporary = create(folder)
        try:
            write_all(descriptor, data)
            os.replace(temporary, path)
        finally:
            os.close(descriptor)


def is_private_folder(path: str) -> bool:
    """Return whether a path is a folder of this user that nobody else may read or write, and no link to one."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_private(status)


def _make_private(folder: str) -> None:
    """Take the rights of others to a folder of this user. Raises OSError if it is another's, or a link."""
    descriptor = os.open(folder, _FOLDER | _NO_LINK)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "not a folder of this user", folder)
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077

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
_DEVICES = ("/dev/", "/proc/")


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


def write_file(path: str, data: bytes) -> None:
    """Write a file whole or not at all: a report, a baseline. Raises OSError; then the file is as it was.

    A symbolic link stays one, and a file keeps its mode. What is no regular file (a pipe, a terminal) is written as it
    is, and so is a file whose folder takes no new files.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = None
    regular = status is None or stat.S_ISREG(status.st_mode)
    # /dev/stdout may be a regular file that others write to as well.
    if not regular or os.path.abspath(path).startswith(_DEVICES):
        _overwrite(path, data)
        return
    if status is not None and not os.access(path, os.W_OK):
        import errno

        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    _replace(path, data, status)


def _replace(path: str, data: bytes, status: os.stat_result | None) -> None:
    import errno

    try:
        _rename_over(os.path.realpath(path), data, status)
    except OSError as error:
        # The folder takes no new file, or the file is mounted (a container's one file).
        if status is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY):
            raise
        _overwrite(path, data)


def _rename_over(target: str, data: bytes, status: os.stat_result | None) -> None:
    folder = os.path.dirname(target)
    remove_leftovers(folder)
    descriptor, temporary = create(folder)
    try:
        write_all(descriptor, data)
        os.fchmod(descriptor, _mode_of_new_files() if status is None else stat.S_IMODE(status.st_mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)


def _mode_of_new_files() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _overwrite(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)

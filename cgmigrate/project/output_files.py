"""Files that hold a result of a run: reports and baselines."""

from __future__ import annotations

import os
import stat

from cgmigrate.project.temporary_files import create, remove_leftovers, removed_if_interrupted, write_all

_DEVICES = ("/dev/", "/proc/")


def write_file(path: str, data: bytes) -> None:
    """Write a report or a baseline, whole or not at all. Raises OSError; then the file has not changed.

    A symbolic link stays one, and a file keeps its mode. A pipe or a terminal is written directly, and so is a file
    in a folder that is not writable.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = None
    regular = status is None or stat.S_ISREG(status.st_mode)
    # /dev/stdout may be a regular file that other programs write to as well.
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
        # The folder is not writable, or the file itself is a mount point (in a container).
        if status is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY):
            raise
        _overwrite(path, data)


def _rename_over(target: str, data: bytes, status: os.stat_result | None) -> None:
    folder = os.path.dirname(target)
    remove_leftovers(folder)
    with removed_if_interrupted():
        descriptor, temporary = create(folder)
        try:
            write_all(descriptor, data)
            os.fchmod(descriptor, _mode_of_new_files() if status is None else stat.S_IMODE(status.st_mode))
            os.replace(temporary, target)
        finally:
            os.close(descriptor)


def _mode_of_new_files() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _overwrite(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)

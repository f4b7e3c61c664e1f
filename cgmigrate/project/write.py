"""Replacing the content of a user's file, whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cgmigrate.project.temporary_files import create, write_all

# The name is resolved already: a link or a FIFO with this name is newer.
_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class WriteError(OSError):
    """A file was not written; the message names it, says why, and what is in it now."""


class ChangedError(WriteError):
    """The file has changed since it was read."""


class ReadOnlyError(WriteError):
    """The file may not be written."""


def write(path: str, before: bytes, after: bytes) -> None:
    """Replace a file's content ``before`` by ``after``, whole or not at all, and keep its kind and permissions.

    A symbolic link stays one: its target is written. The new content goes to a temporary file in the target's
    folder, which gets the mode, owner, group and extended attributes of the target and is renamed over it. If
    that would change what the file is (it has further hard links, its owner cannot be set on a new file) or
    is not possible (its folder is not writable), the file is written in place after a copy was saved in the
    system's temporary folder, from which it is restored if writing fails. In both cases the file is compared
    with ``before`` again right before it is replaced or written; a new link with its name is not followed.

    Raises:
        ChangedError: the content of the file is not ``before``, or the file is gone.
        ReadOnlyError: the file has no write permission.
        WriteError: it could not be written. The file is as it was; else the message says where the copy is.
    """
    target = os.path.realpath(path)
    with _os_errors_as_write_errors(path):
        status = _check(path, target, before)
        if before == after:
            return
        if status.st_nlink > 1 or not _replace(path, target, status, after):
            _write_in_place(path, target, status, before, after)


def _check(path: str, target: str, before: bytes) -> os.stat_result:
    try:
        status = os.stat(target)
        if not stat.S_ISREG(status.st_mode):
            raise WriteError(f"{path} is not a regular file; nothing was written")
        # root may write anything, but a file without a single write bit is meant to stay as it is.
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise ReadOnlyError(f"{path} is read-only; give it write permission (chmod u+w) to have it rewritten")
        with _opened(path, target, status, os.O_RDONLY) as descriptor:
            same = _has_content(descriptor, before)
    except FileNotFoundError:
        raise ChangedError(f"{path} is gone since it was read; nothing was written") from None
    if not same:
        raise _changed(path)
    return status


@contextmanager
def _opened(path: str, target: str, status: os.stat_result, access: int) -> Iterator[int]:
    """Open the file with this ``status``. Raises ChangedError if the name belongs to another file now."""
    import errno

    try:
        descriptor = os.open(target, access | _OPEN)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _changed(path) from error
        raise
    try:
        if not os.path.samestat(os.fstat(descriptor), status):
            raise _changed(path)
        yield descriptor
    finally:
        os.close(descriptor)


def _has_content(descriptor: int, data: bytes) -> bool:
    """Return whether the content of a file is exactly these bytes; reads one more at most."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    rest = memoryview(data)
    while piece := os.read(descriptor, len(rest) + 1):
        if piece != rest[: len(piece)]:
            return False
        rest = rest[len(piece) :]
    return not rest


def _changed(path: str) -> ChangedError:
    return ChangedError(f"{path} has changed since it was read and was left alone; run cgmigrate again")


@contextmanager
def _os_errors_as_write_errors(path: str) -> Iterator[None]:
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"{path} could not be written and is as it was: {error.strerror or error}") from error


def _replace(path: str, target: str, status: os.stat_result, after: bytes) -> bool:
    """Rename a new file over the target; return False if the folder or the file's owner does not allow it."""
    import errno

    folder = os.path.dirname(target)
    try:
        descriptor, new = create(folder)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return False
        raise
    try:
        write_all(descriptor, after)
        if not _copy_attributes(descriptor, target, status):
            os.unlink(new)
            return False
        os.fsync(descriptor)
        # The file may have been saved by another program while the new one was written.
        if not _is_unchanged(target, status):
            raise _changed(path)
        os.replace(new, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(new)
        raise
    finally:
        # Closed last: its lock keeps other runs from removing the file as a leftover.
        os.close(descriptor)
    _sync_folder(folder)
    return True


def _is_unchanged(target: str, status: os.stat_result) -> bool:
    try:
        current = os.lstat(target)
    except FileNotFoundError:
        return False
    return all(
        getattr(current, name) == getattr(status, name)
        for name in ("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
    )


def _copy_attributes(descriptor: int, target: str, status: os.stat_result) -> bool:
    """Set the target's owner, mode and extended attributes on a new file; return False if the owner is refused."""
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            return False
    # After the owner: changing it clears the set-user-id bit.
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        # Not every file system has them, and only the system may set some (security labels).
        with suppress(OSError):
            for name in os.listxattr(target):
                with suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(target, name))
    return True


def _sync_folder(folder: str) -> None:
    # The file is complete already; this makes the rename survive a power failure.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_in_place(path: str, target: str, status: os.stat_result, before: bytes, after: bytes) -> None:
    with _opened(path, target, status, os.O_RDWR) as descriptor:
        copy = _save_copy(target, before)
        try:
            # The file may have been saved or replaced by another program while the copy was written.
            if not (_has_content(descriptor, before) and _is_unchanged(target, status)):
                raise _changed(path)
            _overwrite(path, descriptor, before, after, copy)
        except _DamagedError:
            raise
        except BaseException:
            _discard(copy)
            raise
        _discard(copy)


class _DamagedError(WriteError):
    """Writing and restoring failed; the copy is kept."""


def _overwrite(path: str, descriptor: int, before: bytes, after: bytes, copy: str) -> None:
    """Write a file through its descriptor; restore it if that fails."""
    try:
        _write_whole(descriptor, after)
    except BaseException:
        try:
            _write_whole(descriptor, before)
        except BaseException as error:
            # Also for a second Ctrl-C: the user must learn where the former content is.
            message = f"{path} is damaged: writing failed and so did restoring it; its former content is in {copy}"
            raise _DamagedError(message) from error
        raise


def _discard(copy: str) -> None:
    # A copy that cannot be removed is not a failure to write.
    with suppress(OSError):
        os.unlink(copy)


def _save_copy(target: str, before: bytes) -> str:
    import tempfile

    descriptor, copy = tempfile.mkstemp(prefix="cgmigrate-", suffix="-" + os.path.basename(target)[-100:])
    try:
        try:
            write_all(descriptor, before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        os.unlink(copy)
        raise
    return copy


def _write_whole(descriptor: int, data: bytes) -> None:
    # Truncated at the end rather than first: restoring then needs no space on a disk that may be full.
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)

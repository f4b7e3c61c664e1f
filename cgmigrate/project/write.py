"""Replacing the content of a user's file, whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from cgmigrate.project.temporary_files import create, removed_if_interrupted, write_all

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
    replacement = FileReplacement(path, before, after)
    if before == after:
        return
    with removed_if_interrupted(), closing(replacement):
        replacement.prepare()
        replacement.apply()
    sync_folder(os.path.dirname(replacement.target))


class FileReplacement:
    """The new content of one file: compared when it is created, then prepared, then applied; see `write`."""

    def __init__(self, path: str, before: bytes, after: bytes) -> None:
        self.path, self.before, self.after = path, before, after
        self.target = os.path.realpath(path)
        """The file that is written: the path without symbolic links."""
        with _os_errors_as_write_errors(path):
            self.status = _check(path, self.target, before)
        self.in_place = self.status.st_nlink > 1
        """Whether the file itself is written rather than replaced; known after `prepare`."""
        self._descriptor = -1
        self._new = ""
        self._started = False

    def prepare(self) -> None:
        """Write a temporary file with the new content, unless the file must be written in place. Raises WriteError."""
        if not self.in_place:
            with _os_errors_as_write_errors(self.path):
                self.in_place = not self._create()

    def _create(self) -> bool:
        """Create the temporary file; return False if the folder or the file's owner does not allow it."""
        import errno

        try:
            self._descriptor, self._new = create(os.path.dirname(self.target))
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                return False
            raise
        write_all(self._descriptor, self.after)
        if not _copy_attributes(self._descriptor, self.target, self.status):
            self.close()
            return False
        os.fsync(self._descriptor)
        return True

    def apply(self, copy: str = "") -> None:
        """Give the file its new content. Raises WriteError.

        ``copy`` is a file that has the former content; without one, a file that is written in place is copied first.
        """
        with _os_errors_as_write_errors(self.path):
            if self.in_place:
                self._write_in_place(copy)
                return
            # The file may have been saved by another program while the new one was written.
            if not _is_unchanged(self.target, self.status):
                raise _changed(self.path)
            os.replace(self._new, self.target)
            self._new = ""

    def _write_in_place(self, copy: str) -> None:
        with _opened(self.path, self.target, self.status, os.O_RDWR) as descriptor, _copied(self, copy) as saved:
            # The file may have been saved or replaced by another program while the copy was written.
            if not (_has_content(descriptor, self.before) and _is_unchanged(self.target, self.status)):
                raise _changed(self.path)
            self._started = True
            _overwrite(self, descriptor, saved)

    def is_applied(self) -> bool:
        """Return whether the file was written, at least in part, by this process and not by another one."""
        if self.in_place:
            return self._started
        try:
            return self._descriptor >= 0 and os.path.samestat(os.stat(self.target), os.fstat(self._descriptor))
        except OSError:
            return False

    def close(self) -> None:
        """Remove the temporary file if it was not applied."""
        if self._new:
            with suppress(OSError):
                os.unlink(self._new)
            self._new = ""
        if self._descriptor >= 0:
            # Closed last: its lock keeps other runs from removing the file as a leftover.
            os.close(self._descriptor)
            self._descriptor = -1


def read_regular(path: str) -> bytes:
    """Return the content of a regular file. Raises OSError; WriteError if it is a pipe or another kind of file."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise WriteError(f"{path} is not a regular file and was left alone")
        return file.read()


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


def sync_folder(folder: str) -> None:
    """Make renames in a folder survive a power failure, where the file system allows it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _copied(new: FileReplacement, copy: str) -> Iterator[str]:
    """Provide a file with the former content: ``copy``, or else a new one, which stays only if it is needed."""
    if copy:
        yield copy
        return
    copy = _save_copy(new.target, new.before)
    try:
        yield copy
    except _DamagedError:
        raise
    except BaseException:
        _discard(copy)
        raise
    _discard(copy)


class _DamagedError(WriteError):
    """Writing and restoring failed; the copy is kept."""


def _overwrite(new: FileReplacement, descriptor: int, copy: str) -> None:
    """Write a file through its descriptor; restore it if that fails."""
    try:
        _write_whole(descriptor, new.after)
    except BaseException:
        try:
            _write_whole(descriptor, new.before)
        except BaseException as error:
            # Also for a second Ctrl-C: the user must learn where the former content is.
            message = f"{new.path} is damaged: writing failed and so did restoring it; its former content is in {copy}"
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

"""Temporary files, in the folder of the file that they replace.

A new content is complete in a temporary file before it gets the name of the old one. If the process is killed, the
temporary file remains, and the next run that writes in the folder removes it. A temporary file is locked while its
writer runs: this distinguishes it from a leftover. If the process is interrupted, it removes what it has created.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_ENDING = ("SIGTERM", "SIGHUP")
"""Signals that end a process, as Ctrl-C does."""
_NAME = re.compile(r"\.cgmigrate-\w{8}\.tmp")


class _Created(threading.local):
    """The temporary files that a thread has created, by the names that they get before they exist."""

    def __init__(self) -> None:
        self.paths: set[str] = set()


_created = _Created()


def create(folder: str) -> tuple[int, str]:
    """Create a temporary file in a folder; return its descriptor, which is locked until it is closed, and its path."""
    while True:
        path = os.path.join(os.path.abspath(folder), f".cgmigrate-{secrets.token_hex(4)}.tmp")
        _created.paths.add(path)
        try:
            descriptor = os.open(path, _FLAGS, 0o600)
        except FileExistsError:
            _created.paths.discard(path)
            continue
        if not _locked(descriptor) or os.fstat(descriptor).st_nlink:
            return descriptor, path
        # Another run removed it as a leftover before it was locked.
        os.close(descriptor)


def keep(path: str) -> None:
    """Keep a temporary file if the process is interrupted: it says what the next run has to do."""
    _created.paths.discard(path)


@contextmanager
def removed_if_interrupted() -> Iterator[None]:
    """Remove the temporary files of what is done inside, also if a signal ends the process in the meantime."""
    outer, _created.paths = _created.paths, set()
    try:
        with _ended_by_exceptions():
            yield
    finally:
        paths, _created.paths = _created.paths, outer
        for path in paths:
            # Nearly all have the name of the file that they replace by now.
            with suppress(OSError):
                os.unlink(path)


@contextmanager
def _ended_by_exceptions() -> Iterator[None]:
    """Make signals that end the process raise SystemExit, with the status that a shell reports for them."""
    import signal

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name) and in_main_thread]
    # Where a program that uses cgmigrate handles a signal, that stays.
    changed = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, end)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


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

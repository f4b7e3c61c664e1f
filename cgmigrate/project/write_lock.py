"""The lock of a user's cgmigrate processes: one of them at a time replaces files.

Between the last comparison of a file and its replacement, another process must not replace it. Otherwise two sets with
common files could both be written in part.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cgmigrate.project.cache_folder import records_folder
from cgmigrate.project.temporary_files import lock

PATIENCE = 10.0
"""Seconds to wait for another process. It has the lock for some milliseconds, unless it was stopped."""


@contextmanager
def write_lock() -> Iterator[None]:
    """Keep this user's other processes from replacing files, where the cache folder is writable and has locks."""
    descriptor = _opened()
    try:
        if descriptor is not None:
            _wait_for_lock(descriptor)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened() -> int | None:
    folder = records_folder()
    path, flags = os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT
    try:
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return os.open(path, flags, 0o600)
    except OSError:
        return None


def _wait_for_lock(descriptor: int) -> None:
    end = time.monotonic() + PATIENCE
    while lock(descriptor, wait=False) is False and time.monotonic() < end:
        time.sleep(0.002)

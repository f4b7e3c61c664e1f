"""Reading of the files that cgmigrate opens by itself: rules, configurations, baselines, pins, ignore files.

Git stores links to devices, and anybody can make a FIFO, so only regular files are opened, and files are limited in
size.
"""

from __future__ import annotations

import errno
import os
import re
import stat

MAX_BYTES = 4 * 1024 * 1024
"""The limit for a rule, a configuration or an ignore file; files written by hand have a hundredth of it."""
MAX_GENERATED = 64 * 1024 * 1024
"""The limit for files that programs write: lock files and baselines."""

READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
"""Does not wait: a name may have become a FIFO since it was listed."""


def read_bytes(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file. Raises OSError, also for other files and for more bytes than ``limit``."""
    _check_kind(os.stat(path).st_mode, path)
    descriptor = os.open(path, READ)
    with open(descriptor, "rb") as file:
        # The name may have become another file since.
        _check_kind(os.fstat(descriptor).st_mode, path)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes", os.fspath(path))
    return data


def read_text(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> str:
    """Return the text of a regular file in UTF-8. Raises OSError or UnicodeDecodeError."""
    return read_bytes(path, limit).decode("utf-8")


def bytes_if_readable(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> bytes | None:
    """Return the content of a regular file, None if it cannot be read."""
    try:
        return read_bytes(path, limit)
    except OSError:
        return None


def text_if_readable(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> str | None:
    """Return the text of a regular file, whatever its bytes are; None if it cannot be read."""
    data = bytes_if_readable(path, limit)
    return data.decode("utf-8", "replace") if data is not None else None


def line_of_match(pattern: re.Pattern[str], text: str) -> int:
    """Return the first line of a text in which a pattern begins to match, 0 if there is none."""
    match = pattern.search(text)
    return text.count("\n", 0, match.start()) + 1 if match else 0


def _check_kind(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))

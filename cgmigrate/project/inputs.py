"""What discovery yields: files to examine, files that are too large, and paths that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from cgmigrate.documents.syntax import Syntax

MAX_BYTES = 4 * 1024 * 1024
"""Larger files are only searched for seed words, one piece at a time; they are not parsed."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that contains a seed word.

    ``path`` is relative to the working directory if the file is below it, else as the user wrote it;
    ``data`` is the whole file.
    """

    path: str
    syntax: Syntax
    data: bytes


@dataclass(frozen=True, slots=True)
class InputError:
    """A path that cannot be examined, and the reason.

    ``missing`` is true if the user named the path, or it is unreadable: the result of the run is then incomplete
    (exit status 2).
    """

    path: str
    reason: str
    missing: bool


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A file of more than `MAX_BYTES` bytes that contains a seed word; ``size`` is in bytes."""

    path: str
    size: int


Input = InputFile | InputError | TooLarge

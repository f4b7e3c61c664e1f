"""Patterns of ``exclude`` and of ignore files, applied to paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.text.files import read_bytes

if TYPE_CHECKING:
    from cgmigrate.project.patterns import Pattern


class Patterns:
    """Patterns as in ``.gitignore``; as in git, no pattern includes again what is in an excluded folder."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = _parsed(patterns) if patterns else ()
        self._folders: dict[str, bool] = {}

    @classmethod
    def of(cls, patterns: Iterable[Pattern]) -> Patterns:
        """Return the patterns, which are parsed already."""
        result = cls(())
        result._patterns = tuple(patterns)
        return result

    def covers(self, path: str, named: str = "") -> bool:
        """Return whether a path (a folder ends with ``/``) is excluded; ``named`` and what contains it never are."""
        if not self._patterns:
            return False
        path = path.lstrip("/")
        while path.startswith("../"):
            path = path[3:]
        return path not in ("", "./", ".", f"{named}/") and self._matches(path, named)

    def _matches(self, path: str, named: str) -> bool:
        parent, slash, _ = path.rstrip("/").rpartition("/")
        if slash and self._covers_folder(parent, named):
            return True
        return bool(_verdict(self._patterns, path))

    def _covers_folder(self, folder: str, named: str) -> bool:
        """Return whether a folder or one that contains it is excluded; each is matched once, the outermost first."""
        unknown: list[str] = []
        while folder and folder not in self._folders and folder != named:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        covered = self._folders.get(folder, False)
        for name in reversed(unknown):
            covered = self._folders[name] = covered or bool(_verdict(self._patterns, name + "/"))
        return covered


def _parsed(patterns: Iterable[str]) -> tuple[Pattern, ...]:
    from cgmigrate.project.patterns import parse

    return tuple(pattern for line in patterns if (pattern := parse(line)) is not None)


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one ignore file; ``folder`` is the prefix of the paths that they apply to."""

    folder: str
    patterns: tuple[Pattern, ...]


def read_ignore_files(prefix: str, names: set[str]) -> Iterator[IgnoreFile]:
    """Yield the ignore files of a folder; ``names`` are its entries and ``prefix`` precedes them in paths."""
    for name in (".gitignore", ".ignore"):
        if name not in names:
            continue
        try:
            lines = os.fsdecode(read_bytes(prefix + name).removeprefix(b"\xef\xbb\xbf")).split("\n")
        except OSError:
            # git ignores an ignore file that it cannot read (a broken link, a folder).
            continue
        from cgmigrate.project.patterns import valid

        yield IgnoreFile(prefix, tuple(valid(line.removesuffix("\r") for line in lines)))


def is_ignored(path: str, ignores: tuple[IgnoreFile, ...]) -> bool:
    """Return whether ignore files exclude a path; the innermost file with a matching pattern decides."""
    for ignore in reversed(ignores):
        verdict = _verdict(ignore.patterns, path[len(ignore.folder) :])
        if verdict is not None:
            return verdict
    return False


def _verdict(patterns: Sequence[Pattern], path: str) -> bool | None:
    """Return whether the last pattern that matches this path excludes it; None if no pattern matches.

    Folders that contain the path are not considered; the path of a folder ends with ``/``.
    """
    folder, name = path.endswith("/"), path.rstrip("/")
    return next((pattern.include for pattern in reversed(patterns) if pattern.matches(name, folder)), None)

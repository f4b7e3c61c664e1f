"""Patterns of `exclude` and of ignore files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.text.files import read_bytes

if TYPE_CHECKING:
    from cgmigrate.project.patterns import Pattern


class Patterns:
    """Patterns as in ``.gitignore``; as in git, what is in a folder that they cover cannot be taken back out."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = _parsed(patterns) if patterns else ()
        self._folders: dict[str, bool] = {}

    @classmethod
    def of(cls, patterns: Iterable[Pattern]) -> Patterns:
        """Patterns that are read already."""
        result = cls(())
        result._patterns = tuple(patterns)
        return result

    def covers(self, path: str) -> bool:
        """Whether a path is excluded; a folder's ends with ``/``."""
        if not self._patterns:
            return False
        path = path.lstrip("/")
        while path.startswith("../"):
            path = path[3:]
        return path not in ("", "./", ".") and self._matches(path)

    def _matches(self, path: str) -> bool:
        parent, slash, _ = path.rstrip("/").rpartition("/")
        if slash and self._covers_folder(parent):
            return True
        return bool(_verdict(self._patterns, path))

    def _covers_folder(self, folder: str) -> bool:
        """Whether a folder or one around it is covered; each is asked about once, the outermost first."""
        waiting: list[str] = []
        while folder and folder not in self._folders:
            waiting.append(folder)
            folder = folder.rpartition("/")[0]
        covered = self._folders.get(folder, False)
        for name in reversed(waiting):
            covered = self._folders[name] = covered or bool(_verdict(self._patterns, name + "/"))
        return covered


def _parsed(patterns: Iterable[str]) -> tuple[Pattern, ...]:
    from cgmigrate.project.patterns import parse

    return tuple(pattern for line in patterns if (pattern := parse(line)) is not None)


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    folder: str
    patterns: tuple[Pattern, ...]


def _ignore_files(prefix: str, names: set[str]) -> Iterator[_IgnoreFile]:
    for name in (".gitignore", ".ignore"):
        if name not in names:
            continue
        try:
            lines = os.fsdecode(read_bytes(prefix + name).removeprefix(b"\xef\xbb\xbf")).split("\n")
        except OSError:
            # git goes on without an ignore file that it cannot read (a broken link, a folder).
            continue
        from cgmigrate.project.patterns import valid

        yield _IgnoreFile(prefix, tuple(valid(line.removesuffix("\r") for line in lines)))


def _verdict(patterns: Sequence[Pattern], path: str) -> bool | None:
    """What the last pattern that matches this very name says (a folder's ends with ``/``); None if none does.

    Callers have dealt with the folders around it before.
    """
    folder, name = path.endswith("/"), path.rstrip("/")
    return next((pattern.include for pattern in reversed(patterns) if pattern.matches(name, folder)), None)


def _ignored(path: str, ignores: tuple[_IgnoreFile, ...]) -> bool:
    # The innermost file that says anything decides.
    for ignore in reversed(ignores):
        verdict = _verdict(ignore.patterns, path[len(ignore.folder) :])
        if verdict is not None:
            return verdict
    return False

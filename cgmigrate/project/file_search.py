"""The files of a project that contain certain words, for one run: git lists them once.

A small project is read at once, and its contents are searched; in a large one `git grep` searches. Not searched are
folders of tools and results that git ignores, and what Python compiled or installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache

from cgmigrate.project.checkout import RESULTS, SKIPPED, WORK_MARK, checkout_of
from cgmigrate.project.git import run_git
from cgmigrate.project.paths import shown_path
from cgmigrate.text.files import bytes_if_readable

_NOT_SEARCHED = frozenset((*SKIPPED, *RESULTS, "build", "dist"))
"""Folders of files that no program of the project reads, outside of git or where git ignores them."""
_OTHERS = frozenset((".git", "pyvenv.cfg", WORK_MARK))
"""What a folder has that is no part of the project around it."""
_MOST_FILES, _MOST_BYTES = 500, 2 * 1024 * 1024
"""Files and bytes of a project that is read at once. Beyond these, starting git for each search takes less time."""
_COMPILED = frozenset(("__pycache__", "site-packages"))
"""Folders whose files have no text, or are no program of the project, also where git tracks them."""


@dataclass(eq=False)
class FileSearch:
    """The files of a project; ``top`` is its root, in git or outside of it.

    ``patterns`` of names match whole paths from the root; without any, all match. ``words`` are texts, no patterns.
    """

    top: str

    def tracked(self, words: Iterable[str], *patterns: str) -> list[str]:
        """Return the files that contain one of some words, with paths as those of `Discovery`.

        Those that git does not track, or ignores, are among them: a program that is not committed can read a file
        that is.
        """
        words = list(words)
        names = self._with(words, patterns)
        names += _searched(self.top, self._ignored, words, patterns) if self._is_in_git else []
        return [shown_path(os.path.join(self.top, name)) for name in names]

    def holding(self, words: Iterable[str], *patterns: str, any_case: bool = False) -> list[str]:
        """Return the files, but those that git ignores, that contain one of some words."""
        return [os.path.join(self.top, name) for name in self._with(list(words), patterns, any_case=any_case)]

    def ignored(self) -> list[str]:
        """Return the files that git ignores, and a program may read; all files outside of git."""
        return [os.path.join(self.top, name) for name in _files_below(self.top, self._ignored, ())]

    def named(self, name: str) -> list[str]:
        """Return the files that have a name, or a path that ends with it; those that git ignores are not among them."""
        ending = os.sep + name
        return [os.path.join(self.top, one) for one in self._names if f"{os.sep}{one}".endswith(ending)]

    @cached_property
    def _is_in_git(self) -> bool:
        return checkout_of(self.top) is not None

    @cached_property
    def _names(self) -> list[str]:
        """The files that git tracks, and that it would track; outside of git those of no tool. Empty if git fails."""
        return self.listed() if self._is_in_git else list(_files_below(self.top, [""], ()))

    def listed(self) -> list[str]:
        """Return the names of the files that git tracks, and that it would track; none outside of git."""
        return self._listed("--cached", "--others", "--exclude-standard")

    @cached_property
    def _has_untracked(self) -> bool:
        return bool(self._listed("--others", "--exclude-standard"))  # `--directory` has folders that ignore themselves

    def _listed(self, *options: str) -> list[str]:
        listed = run_git(self.top, "ls-files", "-z", *options)
        return list(dict.fromkeys(os.fsdecode(one) for one in listed[0].split(b"\0") if one)) if listed else []

    @cached_property
    def _ignored(self) -> list[str]:
        """The files and folders that git ignores, but those of tools, builds and results.

        A hidden folder that git ignores is one of a tool. Outside of git, and if git fails, all files may be such.
        """
        options = ("-z", "--others", "--ignored", "--exclude-standard", "--directory")
        listed = run_git(self.top, "ls-files", *options) if self._is_in_git else None
        if listed is None:
            return [""]
        result: list[str] = []
        for name in sorted(os.fsdecode(one) for one in listed[0].split(b"\0") if one):
            # Git lists a folder that ignores itself, and what is in it as well.
            is_below_last = bool(result) and result[-1].endswith("/") and name.startswith(result[-1])
            folders = name.split("/")[:-1]
            is_of_tool = any(one.startswith(".") or one in _NOT_SEARCHED for one in folders)
            if not is_below_last and not is_of_tool:
                result.append(name)
        return result

    @cached_property
    def names(self) -> list[str]:
        """The names of the files that are searched; git searches no links."""
        names = [one for one in self._names if _COMPILED.isdisjoint(one.split("/"))]
        return [one for one in names if not (self._is_in_git and os.path.islink(os.path.join(self.top, one)))]

    @cached_property
    def _contents(self) -> dict[str, bytes] | None:
        """The contents of a small project, by name; None for another one."""
        if len(self._names) > _MOST_FILES:
            return None
        paths = {name: os.path.join(self.top, name) for name in self.names}
        if sum(os.lstat(one).st_size for one in paths.values() if os.path.lexists(one)) > _MOST_BYTES:
            return None
        return {name: bytes_if_readable(path) or b"" for name, path in paths.items()}

    def _with(self, words: Sequence[str], patterns: Sequence[str], *, any_case: bool = False) -> list[str]:
        """Return the names of the files that contain one of some words."""
        if self._contents is not None:
            return [
                name
                for name, data in self._contents.items()
                if _matches(name, patterns) and _has_one(data, words, any_case=any_case)
            ]
        if not self._is_in_git:
            return _searched(self.top, self._names, words, patterns, any_case=any_case)
        # With `--untracked`, git does not search what it tracks and ignores.
        kinds: list[list[str]] = [[], *([["--untracked"]] if self._has_untracked else [])]
        matches = [one for options in kinds for one in self._of_git(words, patterns, options, any_case=any_case)]
        return list(dict.fromkeys(matches))

    def _of_git(
        self, words: Iterable[str], patterns: Sequence[str], options: Sequence[str], *, any_case: bool
    ) -> list[str]:
        """Return the names of the files with one of some words; empty if git fails."""
        every = [part for word in _needed(words) for part in ("-e", word)]
        paths = (*(patterns or ("*",)), *(f":(exclude,glob)**/{one}/**" for one in sorted(_COMPILED)))
        listed = run_git(self.top, "grep", *options, *(["-i"] if any_case else []), "-lzF", *every, "--", *paths)
        return [os.fsdecode(name) for name in listed[0].split(b"\0") if name] if listed else []


def _searched(
    top: str, names: Sequence[str], words: Sequence[str], patterns: Sequence[str], *, any_case: bool = False
) -> list[str]:
    """Return the files, of some files and folders of a project, that contain one of some words."""
    contents = ((one, bytes_if_readable(os.path.join(top, one)) or b"") for one in _files_below(top, names, patterns))
    return [name for name, data in contents if _has_one(data, words, any_case=any_case)]


def _has_one(data: bytes, words: Sequence[str], *, any_case: bool) -> bool:
    text = data.lower() if any_case else data
    # For many words, this is much faster than a pattern.
    return any(word in text for word in _as_bytes(tuple(words), any_case=any_case))


@lru_cache(maxsize=64)
def _as_bytes(words: Sequence[str], *, any_case: bool) -> list[bytes]:
    return [(word.lower() if any_case else word).encode() for word in _needed(words)]


def _files_below(top: str, names: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    """Yield files, and those of folders, whose names match a pattern; not those of tools, builds and results."""
    for name in names:
        if not name.endswith("/") and name:
            yield from [name] if _matches(name, patterns) else []
            continue
        for folder, folders, files in os.walk(os.path.join(top, name)):
            is_other = folder.rstrip(os.sep) != top and not _OTHERS.isdisjoint((*folders, *files))
            folders[:] = [] if is_other else [one for one in folders if one not in _NOT_SEARCHED]
            below = (os.path.relpath(os.path.join(folder, one), top) for one in files if not is_other)
            yield from (one for one in below if _matches(one, patterns))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _needed(words: Iterable[str]) -> list[str]:
    """Return words without those that contain another one: a search takes time for each."""
    every = sorted(dict.fromkeys(words), key=len)
    return [word for at, word in enumerate(every) if not any(shorter in word for shorter in every[:at])]

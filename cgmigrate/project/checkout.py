"""Git checkouts: their root, and the tracked files that contain certain words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from cgmigrate.project.git import run_git
from cgmigrate.project.paths import shown_path


def checkout_of(folder: str) -> str | None:
    """Return the nearest folder, at or above a folder (an absolute path), that is the root of a git checkout."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def tracked_yaml(folders: Iterable[str], words: Iterable[str]) -> list[str]:
    """Return the YAML files, tracked by the git checkouts that contain these folders, that contain one of the words.

    Paths are as those of `Discovery`. If git fails, the list is empty.
    """
    words = list(words)
    tops = sorted({top for folder in folders if (top := checkout_of(os.path.realpath(folder)))})
    return [_openable(top, name) for top in tops for name in names_any(top, words, "*.yaml", "*.yml")]


def tracked_files(top: str, words: Iterable[str], *paths: str) -> list[str]:
    """Return the tracked files of a checkout that contain one of the words; ``paths`` are patterns of their names.

    Words, not regular expressions: git takes ten times as long for those.
    """
    return [_openable(top, name) for name in names_any(top, words, *paths)]


def names_any(top: str, words: Iterable[str], *paths: str, options: Sequence[str] = ()) -> list[str]:
    """Return the tracked files of a checkout that contain one of the words, as they are named in it.

    ``paths`` are patterns of the files to search, not those that Python compiled. If git fails, the list is empty.
    """
    paths = (*paths, ":(exclude,glob)**/__pycache__/**")
    listed = run_git(top, "grep", *options, "-lzF", *_patterns(words), "--", *paths)
    return [os.fsdecode(name) for name in listed[0].split(b"\0") if name] if listed else []


def code_of(top: str) -> list[str]:
    """Return the Python files of a checkout, those that git does not track yet, or ignores, included, and links.

    Of folders that git ignores, only their names are listed. If git fails, the list is empty.
    """
    seen = run_git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    ignored = run_git(top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    if not seen or not ignored:
        return []
    names = [os.path.join(top, os.fsdecode(one)) for one in (seen[0] + ignored[0]).split(b"\0") if one]
    return [one for one in names if one.endswith((".py", os.sep)) or os.path.islink(one)]


def files_with(top: str, words: Iterable[str], *paths: str) -> list[str]:
    """Return the files of a checkout that contain one of the words, those that git does not track yet included.

    ``paths`` are patterns of their names. If git fails, the list is empty.
    """
    return [os.path.join(top, name) for name in names_any(top, words, *paths, options=["--untracked"])]


def _patterns(words: Iterable[str]) -> list[str]:
    """Return the options for some words, without those that contain another one: git takes time for each."""
    every = sorted(dict.fromkeys(words), key=len)
    needed = [word for at, word in enumerate(every) if not any(shorter in word for shorter in every[:at])]
    return [part for word in needed for part in ("-e", word)]


def _openable(top: str, name: str) -> str:
    return shown_path(os.path.join(top, name))

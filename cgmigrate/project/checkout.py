"""Git checkouts: their root, and the tracked files that contain certain words."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cgmigrate.project.git import run_git
from cgmigrate.project.paths import openable_path


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
    patterns = [part for word in words for part in ("-e", word)]
    paths: list[str] = []
    for top in sorted({top for folder in folders if (top := checkout_of(os.path.realpath(folder)))}):
        listed = run_git(top, "grep", "-lzF", *patterns, "--", "*.yaml", "*.yml")
        names = listed[0].split(b"\0") if listed else []
        paths += [openable_path(os.path.join(top, os.fsdecode(name)), os.getcwd()) for name in names if name]
    return paths


def tracked_python(top: str, pattern: str) -> list[str]:
    """Return the tracked Python files of a checkout in which a line matches an extended regular expression."""
    return tracked_files(top, pattern, ["*.py"])


def tracked_files(top: str, pattern: str, paths: Iterable[str]) -> list[str]:
    """Return the tracked files of a checkout in which a line matches; ``paths`` are patterns of the files to search."""
    listed = run_git(top, "grep", "-lzE", "-e", pattern, "--", *paths)
    names = listed[0].split(b"\0") if listed else []
    return [openable_path(os.path.join(top, os.fsdecode(name)), os.getcwd()) for name in names if name]


def names_any(top: str, words: Iterable[str], *paths: str) -> list[str]:
    """Return the tracked files of a checkout that contain one of the words, as they are named in it.

    ``paths`` are patterns of the files to search. If git fails, the list is empty.
    """
    patterns = [part for word in words for part in ("-e", word)]
    listed = run_git(top, "grep", "-lzF", *patterns, "--", *paths)
    return [os.fsdecode(name) for name in listed[0].split(b"\0") if name] if listed else []

"""Git checkouts: where one begins, and which of its files hold certain words."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cgmigrate.project.git import run_git
from cgmigrate.project.paths import openable_path


def checkout_of(folder: str) -> str | None:
    """The nearest folder, at or above an absolute one, that looks like the top of a git checkout."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def tracked_yaml(folders: Iterable[str], *words: str) -> list[str]:
    """The YAML files tracked by the git checkouts around these folders that hold all of the words.

    Paths are as `Discovery` gives them; where git does not answer, there are none.
    """
    patterns = [part for word in words for part in ("-e", word)]
    found: list[str] = []
    for top in sorted({top for folder in folders if (top := checkout_of(os.path.realpath(folder)))}):
        listed = run_git(top, "grep", "-lzF", "--all-match", *patterns, "--", "*.yaml", "*.yml")
        names = listed[0].split(b"\0") if listed else []
        found += [openable_path(os.path.join(top, os.fsdecode(name)), os.getcwd()) for name in names if name]
    return found


def tracked_python(top: str, pattern: str) -> list[str]:
    """The Python files tracked by a git checkout in which a line matches an extended regular expression."""
    listed = run_git(top, "grep", "-lzE", "-e", pattern, "--", "*.py")
    names = listed[0].split(b"\0") if listed else []
    return [openable_path(os.path.join(top, os.fsdecode(name)), os.getcwd()) for name in names if name]

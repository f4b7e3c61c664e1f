"""Files that are never touched: what a program generated, results of runs, and logs, patches and lock files.

Whoever made them makes them again, or they only quote settings. A note counts those that name a deprecated setting.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from cgmigrate.project.checkout import RESULTS, project_of
from cgmigrate.project.paths import prefix_of
from cgmigrate.project.unread_files import names_setting

GENERATED, RESULT = "generated files", "files in folders of results"
_QUOTING = {".log": "logs", ".patch": "patches", ".diff": "patches", ".rej": "patches", ".lock": "lock files"}
_LINES = 5
"""How many lines at the top may say that a file is generated."""
_COMMENT = re.compile(rb"[ \t]*(?:#+|//|/\*|\*|<!--|\{/\*|\.\.|\"\"\"|'''|;)[ \t]*(?P<text>.*)")
_MARK = re.compile(rb"@generated\b|\bDO NOT (?:EDIT|MODIFY)\b")
"""A mark in a comment, wherever it is."""
_BEGINS = re.compile(
    rb"(?i:(?:this \w+ (?:is|was|has been) )?"
    rb"(?:generated (?:by|from|with|using|automatically)|auto(?:matically)?[- ]?generated)\b|code generated\b)"
)
"""A comment that begins by saying so."""


def is_generated(data: bytes) -> bool:
    """Return whether one of the first lines of a file says, in a comment, that a program made the file."""
    for line in data[:4096].split(b"\n")[:_LINES]:
        comment = _COMMENT.match(line)
        if comment is not None and (_BEGINS.match(comment["text"]) or _MARK.search(comment["text"])):
            return True
    return False


def is_result(below: str) -> bool:
    """Return whether a file is in a folder of results; ``below`` is its path below what the user named."""
    return not RESULTS.isdisjoint(below.lower().split("/")[:-1])


def only_quotes(path: str) -> bool:
    """Return whether a file is of a kind that only quotes settings."""
    return os.path.splitext(path)[1].lower() in _QUOTING


def below_named(path: str, named: Sequence[str]) -> str:
    """Return the path of a file below the folder that the user named, or below its project if it is named itself."""
    rests = [
        path.removeprefix(prefix) for folder in named if path.startswith(prefix := prefix_of(os.path.normpath(folder)))
    ]
    if rests:
        return min(rests, key=len)
    real = os.path.realpath(path)
    return os.path.relpath(real, project_of(os.path.dirname(real)))


def quoting(paths: Iterable[str], names: Callable[[str], Collection[str]]) -> Iterator[tuple[str, str]]:
    """Yield the kind and path of each log, patch and lock file that contains one of the names for it."""
    for path in paths:
        if names_setting(path, names):
            yield _QUOTING[os.path.splitext(path)[1].lower()], path


def note_on(untouched: Sequence[tuple[str, str]]) -> str:
    """Return the note on files, each with its kind; empty if there are none."""
    counts = Counter(kind for kind, _ in untouched)
    shown = ", ".join(f"{count} {kind if count > 1 else _one_of(kind)}" for kind, count in sorted(counts.items()))
    return f"never touched, but with deprecated names: {shown} (--verbose names them)" if shown else ""


def _one_of(kind: str) -> str:
    return kind.replace("patches", "patch").replace("logs", "log").replace("files", "file")

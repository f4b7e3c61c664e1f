"""Files that a script writes and then changes, or passes on as another text."""

from __future__ import annotations

import re
from functools import lru_cache

_EDITORS = re.compile(
    r"(?<![\w.-])(?:sed|g?awk|mawk|perl|ed|ex|patch|envsubst|yq|head|tail|tr|cut|truncate|sponge)(?![\w.-])"
)
"""Programs that work on the lines or words of a text."""
_IN_PLACE = re.compile(r"\s-\w*i\w*\b.*[$*?][\w{}\"'*?.]*\s*\Z")
"""Matches a command that changes a file whose name the script computes."""
_APPENDS = re.compile(r">>|(?<![\w.-])tee\s.*-a\b")


def line_that_changes(name: str, text: str, *, is_data: bool) -> int:
    """Return the number of a line of a script that changes a file with a name, or passes on what is in it; else 0.

    ``is_data`` says that text added to the file may belong to what is in it already.
    """
    pattern = re.compile(rf"(?<![\w.-]){re.escape(_plain(name))}(?![\w.-])")
    for number, line, is_editor in _lines(text):
        if is_editor and (pattern.search(line) or _IN_PLACE.search(line)):
            return number
        if is_data and _APPENDS.search(line) and pattern.search(line):
            return number
    return 0


@lru_cache(maxsize=8)
def _lines(text: str) -> list[tuple[int, str, bool]]:
    """Return the lines that may change a file, with their numbers, and whether an editor is in them."""
    result = []
    number = 1
    for line in re.split(r"(?<!\\)\n", text):
        is_editor = _EDITORS.search(line) is not None
        if is_editor or ">>" in line or "tee" in line:
            result.append((number, _plain(line.replace("\\\n", " ")), is_editor))
        number += line.count("\n") + 1
    return result


def _plain(written: str) -> str:
    return re.sub(r"[\"'{}]", "", written)

"""The texts of a project: each file that a program of it may read, whether git tracks it or not.

A name in another encoding, in another case or in a file that git ignores is read by a program like any other. So files
are searched without regard to case, and decoded in any way that gives a text.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from cgmigrate.project.file_search import FileSearch
from cgmigrate.text.files import MAX_GENERATED, read_bytes
from cgmigrate.text.remembered import remembered

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENCODINGS = dict(zip(_MARKS, ("utf-8-sig", "utf-16", "utf-16"), strict=True))


@dataclass(eq=False)
class ProjectTexts:
    """The texts of the files below a folder; each is read once."""

    top: str
    search: FileSearch
    rule_folders: Sequence[str] = ()
    """The folders of a team's own rules, whose files name settings and are no part of a program."""
    _holding: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def holding(self, words: Iterable[str]) -> list[str]:
        """Return the real paths of the files that contain one of some words, in any case."""
        key = tuple(sorted(set(words)))
        if key not in self._holding:
            # For many words, this is much faster than a pattern.
            texts = ((path, self.text(path).lower()) for path in self._ignored)
            ignored = [path for path, text in texts if any(word.lower() in text for word in key)]
            searched = map(os.path.realpath, self.search.holding(key, any_case=True))
            self._holding[key] = sorted(path for path in {*searched, *ignored} if not self._is_rule(path))
        return self._holding[key]

    def _is_rule(self, path: str) -> bool:
        folders = (os.path.join(os.path.realpath(one), "") for one in self.rule_folders)
        return path.endswith((".yaml", ".yml")) and any(map(path.startswith, folders))

    @cached_property
    def _ignored(self) -> list[str]:
        """The files that git does not search."""
        return list(map(os.path.realpath, self.search.ignored()))

    @remembered
    def text(self, path: str) -> str:
        """Return the text of a file, empty for one that cannot be read. No byte prevents that others are seen."""
        try:
            return _decoded(read_bytes(path, MAX_GENERATED))
        except OSError:
            return ""


def _decoded(data: bytes) -> str:
    encoding = next((name for mark, name in _ENCODINGS.items() if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except ValueError:
        return data.decode("latin-1")


_ROOTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
"""Files of which each project has one in its root."""


def is_of_project(place: str, path: str, top: str) -> bool:
    """Return whether a file belongs to the project of another one, which may be a part of a checkout.

    All are real paths.
    """
    return place.startswith(os.path.join(_project_of(os.path.dirname(path), top), ""))


@lru_cache(maxsize=4096)
def _project_of(folder: str, top: str) -> str:
    """Return the nearest folder around a folder, in a checkout, that has the packaging or the pins of a project."""
    above = os.path.dirname(folder)
    if folder == top or above == folder or any(os.path.exists(os.path.join(folder, one)) for one in _ROOTS):
        return folder
    return _project_of(above, top)

"""The texts of a project: each file that a program of it may read, whether git tracks it or not.

A name in another encoding, in another case or in a file that git ignores is read by a program like any other. So files
are searched without regard to case, and decoded in any way that gives a text.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from cgmigrate.project.file_search import FileSearch
from cgmigrate.text.files import MAX_GENERATED, read_bytes
from cgmigrate.text.remembered import remembered

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_VOCABULARY = re.compile(
    r"(?:^|/)(?:merges|vocab|tokenizer|added_tokens|special_tokens_map)\.(?:txt|json|bpe)\Z|\.tiktoken\Z"
)
"""The words of a tokenizer, which have all parts of names."""
_ENCODINGS = dict(zip(_MARKS, ("utf-8-sig", "utf-16", "utf-16"), strict=True))


@dataclass(eq=False)
class ProjectTexts:
    """The texts of the files below a folder; each is read once."""

    top: str
    search: FileSearch
    rule_folders: Sequence[str] = ()
    """The folders of a team's own rules, whose files name settings and are no part of a program."""
    others: Sequence[str] = ()
    """Files elsewhere, by their real paths."""

    def holding(self, words: Iterable[str]) -> list[str]:
        """Return the real paths of the files that contain one of some words, in any case."""
        return self._holding(tuple(sorted(set(words))))

    @remembered
    def _holding(self, words: tuple[str, ...]) -> list[str]:
        # For many words, this is much faster than a pattern.
        others = [path for path, text in self._lower_texts if any(word.lower() in text for word in words)]
        searched = map(os.path.realpath, self.search.holding(words, any_case=True))
        every = (path for path in {*searched, *others} if not _VOCABULARY.search(path))
        return sorted(path for path in every if not self._is_rule(path))

    def _is_rule(self, path: str) -> bool:
        folders = (os.path.join(os.path.realpath(one), "") for one in self.rule_folders)
        return path.endswith((".yaml", ".yml")) and any(map(path.startswith, folders))

    @cached_property
    def _not_searched(self) -> list[str]:
        """The files that git does not search."""
        return [*map(os.path.realpath, self.search.ignored()), *self.others]

    @cached_property
    def _lower_texts(self) -> list[tuple[str, str]]:
        """These files and their texts: to lower a large one takes longer than to search it."""
        return [(path, self.text(path).lower()) for path in self._not_searched]

    def paths(self) -> Iterable[str]:
        """Return the real paths of the files that are searched, and of those that are not."""
        top = os.path.realpath(self.search.top)
        searched = (os.path.join(top, name) for name in self.search.names)
        return {*(one for one in searched if not os.path.islink(one)), *self._not_searched}

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


@lru_cache(maxsize=4096)
def project_around(folder: str, top: str) -> str:
    """Return the nearest folder around a folder, in a checkout, that has the packaging or the pins of a project.

    All are real paths.
    """
    above = os.path.dirname(folder)
    if folder == top or above == folder or any(os.path.exists(os.path.join(folder, one)) for one in _ROOTS):
        return folder
    return project_around(above, top)

"""The files of a project that contain some names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cgmigrate.text.files import bytes_if_readable

_MOST_BYTES = 1024 * 1024
_WORD = re.compile(rb"[A-Za-z_]\w*")
_SPELLED = re.compile(rb"cuda[-_]?graph", re.IGNORECASE)
ANY_SPELLING = "cuda-graph"
"""A word of each file that has the two words which all settings have in their names, in any spelling."""


@dataclass
class Words:
    """The names in the files of code of a project. The files are read once, when they are needed first."""

    list_files: Callable[[], Iterable[str]]

    @cached_property
    def _by_file(self) -> dict[str, frozenset[bytes]]:
        known: dict[bytes, bytes] = {}
        return {path: _words_in(path, known) for path in self.list_files()}

    def files_with(self, names: Collection[str]) -> Iterator[str]:
        """Yield the files that contain one of some names."""
        expected = {name.encode() for name in names}
        for path, words in self._by_file.items():
            if not expected.isdisjoint(words):
                yield path


def _words_in(path: str, known: dict[bytes, bytes]) -> frozenset[bytes]:
    data = bytes_if_readable(path, _MOST_BYTES) or b""
    spelled = (ANY_SPELLING.encode(),) if _SPELLED.search(data) else ()
    return frozenset(known.setdefault(one, one) for one in {*_WORD.findall(data), *spelled})

"""Seed words: a file that contains none of them has no diagnostics and is not parsed.

They are the names of the settings in the catalogue, as fields and as flags, what flags in braces begin or end with
(``--cuda-graph-{impl,scope}``), and the name of megatron-core's enum class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from cgmigrate.megatron.rule_data import is_of_upgrade, rules_path
from cgmigrate.megatron.setting_names import (
    CLASSES,
    CODE,
    CORE_OF_CLASSES,
    cores,
    subjects,
    with_hyphens,
    without_contained,
)

SUPPRESSION_MARK = b"cgmigrate:"
"""The start of a suppression comment. A file with one is examined, since an unused suppression is reported."""


# UTF-32-LE starts with UTF-16-LE's byte order mark, so it must come first.
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class SeedWords:
    """Seed words in one encoding; every word contains one of the ``cores``."""

    words: tuple[bytes, ...]
    cores: tuple[bytes, ...]

    def are_in(self, data: bytes) -> bool:
        """Return whether the bytes contain one of the words."""
        # Most files contain no core, which saves the search for all words. A loop is faster than `any`, which
        # matters as this runs for every file of a tree.
        for core in self.cores:
            if core in data:
                return any(word in data for word in self.words)
        return False


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seed words for files that share a configuration."""

    words: tuple[str, ...]
    cores: tuple[str, ...]
    plain: SeedWords
    """The words in UTF-8."""

    @property
    def overlap(self) -> int:
        """Bytes that two consecutive pieces of a file must share, so that no seed word is cut."""
        return 4 * max(map(len, self.words)) - 1

    def in_file(self, data: bytes) -> bool:
        """Return whether the bytes of a whole file contain a seed word, in UTF-8 or in the encoding of its mark."""
        return self.for_file(data).are_in(data)

    def for_file(self, start: bytes) -> SeedWords:
        """Return the words in the encoding that the first bytes of a file announce."""
        if start[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x00\x00"):
            for mark, encoding in _MARKS:
                if start.startswith(mark):
                    return _encoded(self.words, self.cores, encoding)
        return self.plain


SeedsOf = Callable[[str], Seeds]
"""Path of a file → the seed words for it."""


@cache
def seeds_of(folders: Sequence[str] = ()) -> Seeds:
    """Return the seed words: the settings that ship, and those in a team's own folders of rules (a tuple)."""
    names = subjects((rules_path(), *folders))
    flags = [core for core in with_hyphens(cores(names)) if "-" in core]
    in_braces = (word for core in flags for word in (f"{core}-{{", f"}}-{core}"))
    code = CODE if any(map(is_of_upgrade, folders)) else ()
    words = without_contained((*with_hyphens(names), *in_braces, CLASSES[0], *code))
    beginnings = (*with_hyphens(cores(names)), CORE_OF_CLASSES, *code)
    return Seeds(words, beginnings, _encoded(words, beginnings, "utf-8"))


@cache
def _encoded(words: tuple[str, ...], beginnings: tuple[str, ...], encoding: str) -> SeedWords:
    return SeedWords(
        tuple(word.encode(encoding) for word in words), tuple(core.encode(encoding) for core in beginnings)
    )

"""Code that reads settings by their new names: beside it, a deprecated one that no code reads has no effect.

To rename such a setting would turn on what is ignored so far. The text shows enough: what it shows by mistake makes a
fix unsafe, no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from cgmigrate.megatron.catalogue import Catalogue


def new_names(catalogue: Catalogue) -> frozenset[str]:
    """Return the names that take the place of deprecated ones."""
    return catalogue.captures - catalogue.deprecated


def new_names_read(text: str, catalogue: Catalogue) -> Iterator[tuple[str, int]]:
    """Yield the new names that Python text reads as keys or copies from another object, each with its line."""
    if any(name in text for name in new_names(catalogue)):
        for match in _read(catalogue).finditer(text):
            yield str(match[match.lastgroup or 0]), text.count("\n", 0, match.start()) + 1


@lru_cache(maxsize=8)
def _read(catalogue: Catalogue) -> re.Pattern[str]:
    names = "|".join(sorted(new_names(catalogue)))

    def quoted(group: str) -> str:
        return rf"\s*[\"'](?:[\w-]+[.])*(?P<{group}>{names})[\"']"

    return re.compile(
        rf"\[{quoted('item')}\s*\](?!\s*=[^=])|\.(?:get|pop)\({quoted('got')}|{quoted('member')}\s+(?:not\s+)?in\b"
        rf"|\bselect\([^()\n]*{quoted('path')}|\b(?P<copied>{names})\s*=\s*[\w.]+\.(?P=copied)\b"
    )

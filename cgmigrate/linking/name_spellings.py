"""Code that reads keys in another spelling: with dashes, in camel case, or in capitals.

Other code makes these keys from those of a file (``key.replace("_", "-")``). Names in capitals are common, for example
of variables of the environment, and count only in a project that writes names in capitals.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from cgmigrate.documents.python.source import PythonSource
from cgmigrate.linking.name_parts import nodes_on
from cgmigrate.linking.name_reads import is_read
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.setting_names import without_contained

MAKES_CAPITALS = tuple(f".upper(){end}" for end in ("]", ":", "}", ",", ")", " for", " in", " +"))
"""Words of which code has one that may write the names of keys in capitals."""


@lru_cache(maxsize=8)
def capitals(catalogue: Catalogue) -> Mapping[str, str]:
    """Return a deprecated setting in capitals → its name."""
    return {name.upper(): name for name in sorted(catalogue.deprecated)}


@lru_cache(maxsize=8)
def _attributes(catalogue: Catalogue) -> Mapping[str, str]:
    """Return a deprecated setting in camel case → its name."""
    words = {name: name.title().replace("_", "") for name in sorted(catalogue.deprecated)}
    both = ({word: name, word[0].lower() + word[1:]: name} for name, word in words.items())
    return {spelling: name for pair in both for spelling, name in pair.items()}


@lru_cache(maxsize=8)
def spellings(catalogue: Catalogue) -> Mapping[str, str]:
    """Return a deprecated setting in another spelling → its name."""
    dashes = {name.replace("_", "-"): name for name in sorted(catalogue.deprecated)}
    return {**dashes, **_attributes(catalogue), **capitals(catalogue)}


@lru_cache(maxsize=8)
def _candidate(catalogue: Catalogue) -> re.Pattern[str]:
    attributes = "|".join(_attributes(catalogue))
    return re.compile(rf"[\"']([\w-]+[.])*({'|'.join(spellings(catalogue))})[\"']|[.]({attributes})\b")


@lru_cache(maxsize=8)
def _shortest(catalogue: Catalogue) -> Sequence[str]:
    return without_contained(spellings(catalogue))


def may_respell(text: str, catalogue: Catalogue) -> bool:
    """Return whether Python text may read a deprecated setting in another spelling."""
    return any(word in text for word in _shortest(catalogue)) and _candidate(catalogue).search(text) is not None


def names_respelled(source: PythonSource, words: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the deprecated settings that code reads in some other spellings, each with the line."""
    catalogue = source.catalogue
    matches = _candidate(catalogue).finditer(source.text)
    lines = [(line, line) for match in matches for line in [source.line_of(match.start())]]
    for node, above, _ in nodes_on(lines, source.tree):
        match node:
            case ast.Constant(value=str() as text) if above is not None and is_read(node, above, catalogue):
                word = text.rpartition(".")[2]
            case ast.Attribute(attr=word, ctx=ast.Load()) if word in _attributes(catalogue):
                pass
            case _:
                continue
        if word in words:
            yield spellings(catalogue)[word], node.lineno

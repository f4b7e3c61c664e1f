"""The appearances of names in any text: whole or in part, in any case, with any separator between their words.

`grep -i cuda.graph.scope`, `ENABLE_CUDA_GRAPH`, `enableCudaGraph` and `startswith("external_")` are about a setting as
well as `cuda_graph_scope` is. A longer identifier is another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import KNOWN
from cgmigrate.megatron.tables import load

_BETWEEN = r"(?:\\[a-zA-Z]|[^A-Za-z0-9\n]){0,6}?"
"""What can separate the words of a name in a text or in a regular expression."""
_ENDS_INSIDE = re.compile(r"(?:(?<![\\%])[A-Za-z0-9]|_|[A-Za-z0-9]-)\Z")
_PREFIX = re.compile(r"(?:\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_|\w__)\Z")
"""What environment variables have before a key: ``TRAIN_ENABLE_CUDA_GRAPH``, ``model__enable_cuda_graph``."""
_GROUP = re.compile(r"\b[a-z][a-z0-9]*[_-]\Z")
"""What the name of a group can be before a whole name: ``model_enable_cuda_graph``."""
_LONGEST_PREFIX = 40
_AT_END = r"(?:(?<![A-Za-z0-9])|(?<=%s))(?:{})(?![A-Za-z0-9_])"
"""The end of a name, behind what fills in the rest: ``%s_scope``."""
_BEGINS_INSIDE = re.compile(r"\w|-[A-Za-z]")
_BEFORE_ALONE = re.compile(r"(?:^|[\"',;|\t:\[-])[ ]*\Z", re.MULTILINE)
_AFTER_ALONE = re.compile(r"[ ]*(?:$|[\"',;|\t:\]])", re.MULTILINE)
"""Before and after words that are a key or a value alone: ``Enable CUDA graph,FALSE``."""
_GAPS = re.compile(r"(?<=[A-Za-z0-9])[^A-Za-z0-9]+(?=[A-Za-z0-9])")
_ESCAPES = re.compile(r"\\[a-z]")


@dataclass(frozen=True)
class SoughtNames:
    """The names of settings that a search is about."""

    catalogue: Catalogue
    names: frozenset[str]

    @classmethod
    def of_change(cls, names: frozenset[str], catalogue: Catalogue) -> SoughtNames:
        """Return the names that a fix changes, with those that have one meaning together with them.

        What replaces a name is not sought: up to now nothing has set it.
        """
        if names & catalogue.captures:
            return cls(catalogue, names | catalogue.captures)
        return cls(catalogue, names.difference(catalogue.new_names))

    @property
    def deprecated(self) -> frozenset[str]:
        """The names of which parts are searched as well."""
        moved = {name.rpartition(".")[2] for name in self.catalogue.deprecated if "." in name}
        return self.names & (self.catalogue.deprecated | moved)


@dataclass(frozen=True, slots=True)
class NameAppearance:
    """A name, or a part of it, at a place of a text."""

    start: int
    end: int
    text: str
    names: frozenset[str]
    """The settings that it may be about."""
    is_whole: bool
    """Whether it is a name as the catalogue spells it, or its flag."""
    is_in_group: bool = False
    """Whether another word is before it, which code may cut: ``model_enable_cuda_graph``."""


@lru_cache(maxsize=128)
def words_of(sought: SoughtNames) -> tuple[str, ...]:
    """Return words of which each part of a name has one, to find files quickly."""
    words = {word for name in sought.deprecated for word in name.split("_")[1::2]}
    others = (name for name in sought.names if words.isdisjoint(name.split("_")))
    return tuple(sorted({*words, *others, *_joined_parts(sought)}))


def appearances_in(text: str, sought: SoughtNames) -> Iterator[NameAppearance]:
    """Yield the appearances in a text, in its order."""
    for pattern, by_words in _patterns(sought):
        for match in pattern.finditer(text):
            names = by_words.get(re.sub(r"[^a-z0-9]", "", _ESCAPES.sub("", match.group().lower())))
            written = match.group()
            plain = written.lower().replace("-", "_")
            is_name = names is not None and _is_name(text, match)
            is_in_group = not is_name and plain in (names or ()) and _is_in_group(text, match, sought.catalogue)
            if names and (is_name or is_in_group):
                yield NameAppearance(match.start(), match.end(), written, names, plain in names, is_in_group)


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Return whether a match is no part of a longer identifier or flag, and no words of a sentence."""
    start, end = match.span()
    if _BEGINS_INSIDE.match(text, end):
        return False
    if _ENDS_INSIDE.search(text, max(0, start - 2), start):
        prefix = _PREFIX.search(text, max(0, start - _LONGEST_PREFIX), start)
        return prefix is not None and (match.group().isupper() or prefix.group().endswith("__"))
    gaps = _GAPS.findall(match.group())
    if any(gap.isspace() or gap in (", ", "; ") for gap in gaps):
        is_alone = all(gap == " " for gap in gaps) and _AFTER_ALONE.match(text, end)
        return bool(is_alone) and _BEFORE_ALONE.search(text, max(0, start - 2), start) is not None
    return bool(gaps) or "_" in match.group() or _is_camel(match.group())


def _is_in_group(text: str, match: re.Match[str], catalogue: Catalogue) -> bool:
    """Return whether a whole name has that of a group before it, and both together are no setting."""
    group = _GROUP.search(text, max(0, match.start() - _LONGEST_PREFIX), match.start())
    if group is None or _BEGINS_INSIDE.match(text, match.end()):
        return False
    return (group.group() + match.group()).replace("-", "_") not in catalogue


def _is_camel(written: str) -> bool:
    return any(one.isupper() for one in written[1:]) and not written.isupper() and not written.endswith("Scope")


@lru_cache(maxsize=128)
def _patterns(sought: SoughtNames) -> list[tuple[re.Pattern[str], dict[str, frozenset[str]]]]:
    """Return the patterns of names and parts, each with what its words are."""
    parts: dict[tuple[str, ...], set[str]] = {}
    for name in sought.names:
        words = tuple(name.split("_"))
        parts.setdefault(words, set()).add(name)
        if name not in sought.deprecated:
            continue
        for start in range(len(words)):
            for end in range(start + 2, len(words) + 1):
                if not _is_common("_".join(words[start:end]), name, sought.catalogue):
                    parts.setdefault(words[start:end], set()).add(name)
    by_words = {"".join(words): frozenset(names) for words, names in parts.items()}
    result = []
    for first in sorted({words[0] for words in parts}):
        # One pattern for each first word: a search for a literal is fast.
        every = sorted((words for words in parts if words[0] == first), key=len, reverse=True)
        rest = "|".join(_BETWEEN.join(words[1:]) for words in every)
        result.append((re.compile(rf"{first}{_BETWEEN}(?:{rest})", re.IGNORECASE), by_words))
    for spelled, form in ((str.endswith, r"(?:{})(?![A-Za-z0-9])"), (str.startswith, _AT_END)):
        by_part = {part: names for part, names in _joined_parts(sought).items() if spelled(part, "_")}
        if by_part:
            pattern = re.compile(form.format("|".join(sorted(by_part))))
            result.append((pattern, {part.replace("_", ""): names for part, names in by_part.items()}))
    return result


def _is_common(part: str, name: str, catalogue: Catalogue) -> bool:
    """Return whether a part does not distinguish a name: all names that replace it have it as well.

    Of a name that nothing replaces, a part is common that any name of the newest release has.
    """
    newer = catalogue[name].replaced_by if name in catalogue else ()
    return all(part in one for one in newer) if newer else part in _words_of_newest()


@cache
def _words_of_newest() -> str:
    tables, newest = load(), KNOWN[-1]
    fields = (name for owner in tables.classes for name in tables.fields(owner, newest))
    return " ".join((*tables.attributes(newest), *fields))


@lru_cache(maxsize=128)
def _joined_parts(sought: SoughtNames) -> dict[str, frozenset[str]]:
    """Return the parts to which code joins the rest of a name, with the underscore: `external_`, `_cuda_graph`."""
    result: dict[str, set[str]] = {}
    for name in sought.deprecated:
        for gap in re.finditer("_", name):
            for part in (name[: gap.end()], name[gap.start() :]):
                result.setdefault(part, set()).add(name)
    return {part: frozenset(names) for part, names in result.items()}

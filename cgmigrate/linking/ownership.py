"""Ecosystems: who owns a name where it stands, and who reads it.

The same spelling has at least five owners, so a name alone decides nothing. What tells the owner
(where in the file, what stands beside, how keys are spelled) is data: ``rules/ecosystems/*.yaml``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cgmigrate.documents.sites import Site
from cgmigrate.megatron.rule_data import load_yaml, rules_folder
from cgmigrate.megatron.settings import INFERENCE, LAYER_MODULES, MODULES, SCOPE, names_in
from cgmigrate.megatron.types import Reader

_READERS = {
    "config": Reader.CONFIG,
    "command-line": Reader.COMMAND_LINE,
    "bridge": Reader.BRIDGE,
    "nemo-rl": Reader.NEMO_RL,
}
_NAMES = {*LAYER_MODULES, "full", "full_iteration", "full_iteration_inference", *("none", "layer", "block")}


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """One owner of the names; without a reader it is another system, whose names are left alone.

    ``laid_over``: the settings are laid over those of the mapping around them.
    """

    name: str
    rank: int
    reader: Reader | None
    owns: tuple[Mapping[str, Any], ...]
    laid_over: bool = False
    code: tuple[Mapping[str, Any], ...] = ()
    """What tells its settings in code, where a callee or an object has them instead of a path."""


BY_NAMES_ALONE = 90
"""From this rank on, nothing but the names shows the owner: who uses the text shows it better."""
PROSE = Ecosystem("prose (a description, not a setting)", 0, None, ())
SHARED = "its text is also used at {path}, which belongs to {other}"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a site: None where nothing tells. ``conflict`` says why one text has several."""

    ecosystem: Ecosystem | None
    conflict: str = ""


@cache
def load() -> tuple[Ecosystem, ...]:
    """Return the ecosystems in the order in which they are asked; read once, whatever releases a run is about."""
    found = [_read(path) for path in (rules_folder() / "ecosystems").glob("*.yaml")]
    return tuple(sorted(found, key=lambda ecosystem: (ecosystem.rank, ecosystem.name)))


def _read(path: Path) -> Ecosystem:
    data = load_yaml(path.read_text(encoding="utf-8"), str(path))
    reader = _READERS[data["reader"]] if "reader" in data else None
    laid_over, code = data.get("laid-over", False), tuple(data.get("code", ()))
    return Ecosystem(data["name"], data["rank"], reader, tuple(data["owns"]), laid_over, code)


def everything_is(name: str) -> tuple[Ecosystem, ...]:
    """One ecosystem, by the name of its file, as the owner of all that it is asked about."""
    return (replace(_read(rules_folder() / "ecosystems" / f"{name}.yaml"), owns=({},), code=({},)),)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What tests are asked about: a site, the settings it has (merged ones too), and what the file has at its top."""

    site: Site
    names: Collection[str]
    top_level: frozenset[str]


class Owners:
    """Who owns the sites of one file.

    A text that others merge is used at the place of each of them, and so is each text that it merges: a chain has
    places with the square of its length. So what a site shows beside its places is asked once for the site, and each
    place once for all sites that show the same.
    """

    def __init__(self, top_level: Sequence[str], ecosystems: Sequence[Ecosystem]) -> None:
        self._top_level = frozenset(top_level)
        self._ecosystems = ecosystems
        self._at: dict[tuple[bool, tuple[tuple[int, int], ...]], _AtPaths] = {}

    def of(self, site: Site, names: Collection[str]) -> Owner:
        """Return who owns a site's settings, asking every place at which its text is used.

        ``names`` are the settings that the site has, those it merges included.
        """
        if any(_is_prose(written.field, written.value) for written in site.written):
            return Owner(PROSE)
        at = self._at_paths(_Asked(site, names, self._top_level))
        first, others = at[site.path], list(map(at.__getitem__, site.alias_paths))
        for path, other in zip(site.alias_paths, others, strict=True):
            if other is first or other is None:
                continue
            if first is None:
                first = other
            elif other.reader is first.reader:
                continue
            elif first.rank >= BY_NAMES_ALONE > other.rank:
                first = other
            elif other.rank < BY_NAMES_ALONE:
                shared = SHARED.format(path=".".join(path), other=other.name)
                return Owner(first if first.reader else other, shared)
        return Owner(first)

    def _at_paths(self, asked: _Asked) -> _AtPaths:
        in_code = asked.site.origin is not None
        remaining = tuple(self._remaining(asked, in_code))
        if (in_code, remaining) not in self._at:
            entries = [
                (self._ecosystems[number], _entries(self._ecosystems[number], in_code)[place])
                for number, place in remaining
            ]
            self._at[in_code, remaining] = _AtPaths(entries)
        return self._at[in_code, remaining]

    def _remaining(self, asked: _Asked, in_code: bool) -> Iterator[tuple[int, int]]:
        """The entries of ecosystems that only a path can decide, up to one that holds at every path."""
        for number, ecosystem in enumerate(self._ecosystems):
            for place, entry in enumerate(_entries(ecosystem, in_code)):
                if all(_holds(test, wanted, entry, asked) for test, wanted in entry.items() if test not in _OF_PATH):
                    yield number, place
                    if _OF_PATH.isdisjoint(entry):
                        return


class _AtPaths(dict[tuple[str, ...], "Ecosystem | None"]):
    """The owner at each path, of sites that show the same beside it: the first ecosystem whose entry holds there."""

    def __init__(self, entries: Sequence[tuple[Ecosystem, Mapping[str, Any]]]) -> None:
        super().__init__()
        self._entries = entries

    def __missing__(self, path: tuple[str, ...]) -> Ecosystem | None:
        owners = (
            ecosystem
            for ecosystem, entry in self._entries
            if all(_holds_at(test, wanted, path) for test, wanted in entry.items() if test in _OF_PATH)
        )
        self[path] = next(owners, None)
        return self[path]


def _entries(ecosystem: Ecosystem, in_code: bool) -> Sequence[Mapping[str, Any]]:
    return ecosystem.code if in_code else ecosystem.owns


_OF_PATH = frozenset({"path-has", "path-ends", "path-is"})
"""The tests of a path; the others are about the site and its file."""


def _holds_at(test: str, wanted: Any, path: tuple[str, ...]) -> bool:
    match test:
        case "path-has":
            return _path_has(path, tuple(wanted))
        case "path-ends":
            return bool(path) and _matches_any(path[-1], tuple(wanted))
        case _:
            return ".".join(path) in wanted


@lru_cache(maxsize=65536)
def _path_has(path: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    # A text that many aliases name is asked about at each of its paths, and so are the texts that it merges.
    lowered = tuple(pattern.lower() for pattern in patterns)
    return any(_matches_any(name.lower(), lowered) for name in path)


@lru_cache(maxsize=65536)
def _matches_any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _holds(test: str, wanted: Any, entry: Mapping[str, Any], asked: _Asked) -> bool:
    site = asked.site
    match test:
        case "flags":
            return bool(site.flags is wanted)
        case "beside":
            return any(name.rpartition(".")[2].lstrip("-").replace("-", "_") in wanted for name in site.neighbours)
        case "top-level":
            return bool(len(asked.top_level & set(wanted)) >= entry.get("at-least", 1))
        case "at-least":
            return True
        case "target":
            target = site.neighbours.get("_target_")
            return isinstance(target, str) and target.startswith(tuple(wanted))
        case "object" if site.origin is not None and site.origin.foreign:
            return False
        case "callee" | "object":
            told = getattr(site.origin, test)
            return bool(told) and any(fnmatchcase(told, pattern) for pattern in wanted)
        case "imports" | "imports-none":
            modules = site.origin.imports if site.origin else ()
            found = any(name == module or name.startswith(module + ".") for name in modules for module in wanted)
            return found is (test == "imports")
        case "writes":
            return any(name in wanted for name in asked.names)
        case "writes-only":
            return bool(asked.names) and all(name in wanted for name in asked.names)
    raise ValueError(f"unknown test {test!r} in an ecosystem")


def _is_prose(name: str, value: object) -> bool:
    """Sentences about a setting, as in model cards: several words, most of them no value of it."""
    if name not in (SCOPE, MODULES, INFERENCE) or not isinstance(value, str):
        return False
    words = names_in(value)
    return len(words) > 3 and sum(word in _NAMES for word in words) * 2 < len(words)

"""Conditions of ecosystems: tests of a site, of its file, and of a path at which its text is used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property, lru_cache
from typing import Any

from cgmigrate.documents.sites import Site
from cgmigrate.megatron.settings import IMPLEMENTATIONS, INFERENCE_SCOPES, LAYER_MODULES, names_in

Condition = Mapping[str, Any]
"""Test → expected value; all have to pass."""

TESTS_OF_PATH = frozenset({"path-has", "path-has-none", "path-ends", "path-is"})
"""The tests of a path; the others are about the site and its file."""


@dataclass(frozen=True)
class OwnerEvidence:
    """What tests are evaluated on: a site, its settings (merged ones too), and the names at the top of its file."""

    site: Site
    names: Collection[str]
    top_level: frozenset[str]

    @cached_property
    def words_beside(self) -> frozenset[str]:
        """The names beside the settings, as settings are written: read once, since several ecosystems test them."""
        return frozenset(map(_word, self.site.neighbours))


@lru_cache(maxsize=65536)
def _word(name: str) -> str:
    # The texts of a chain of merges have all names of the chain beside them.
    return name.rpartition(".")[2].lstrip("-").replace("-", "_")


def passes_beside_paths(condition: Condition, around: OwnerEvidence) -> bool:
    """Return whether a condition's tests of the site and its file pass."""
    return all(_passes(test, condition, around) for test in condition if test not in TESTS_OF_PATH)


def passes_at(condition: Condition, path: tuple[str, ...]) -> bool:
    """Return whether a condition's tests of a path pass."""
    return all(_passes_at(test, expected, path) for test, expected in condition.items() if test in TESTS_OF_PATH)


def _passes_at(test: str, expected: Any, path: tuple[str, ...]) -> bool:
    match test:
        case "path-has":
            return _path_has(path, tuple(expected))
        case "path-has-none":
            return not _path_has(path, tuple(expected))
        case "path-ends":
            return bool(path) and matches_any(path[-1], tuple(expected))
        case _:
            return ".".join(path) in expected


@lru_cache(maxsize=65536)
def _path_has(path: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    # A text that many aliases name is tested at each of its paths, and so are the texts that it merges.
    lowered = tuple(pattern.lower() for pattern in patterns)
    return any(matches_any(name.lower(), lowered) for name in path)


@lru_cache(maxsize=65536)
def matches_any(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a name is one of some patterns, as of files."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _passes(test: str, condition: Condition, around: OwnerEvidence) -> bool:
    match test:
        case "top-level":
            return len(around.top_level & set(condition[test])) >= int(condition.get("at-least", 1))
        case "at-least":
            # Part of `top-level`.
            return True
    if test not in _TESTS:
        raise ValueError(f"unknown test {test!r} in an ecosystem")
    return _TESTS[test](condition[test], around)


def _is_beside(names: Any, around: OwnerEvidence) -> bool:
    return not around.words_beside.isdisjoint(names)


def _has_target(prefixes: Any, around: OwnerEvidence) -> bool:
    target = around.site.neighbours.get("_target_")
    return isinstance(target, str) and target.startswith(tuple(prefixes))


def _has_callee(patterns: Any, around: OwnerEvidence) -> bool:
    origin = around.site.origin
    return origin is not None and _is_like(origin.callee, patterns)


def _has_object(patterns: Any, around: OwnerEvidence) -> bool:
    origin = around.site.origin
    return origin is not None and not origin.foreign and _is_like(origin.object, patterns)


def _is_like(name: str, patterns: Any) -> bool:
    return bool(name) and any(fnmatchcase(name, pattern) for pattern in patterns)


def _imports(modules: Any, around: OwnerEvidence) -> bool:
    imported = around.site.origin.imports if around.site.origin else ()
    return any(name == module or name.startswith(module + ".") for name in imported for module in modules)


def _has_unknown_flag(patterns: Any, around: OwnerEvidence) -> bool:
    """Return whether a flag that no release has is beside the settings."""
    of_interest = {word for word in around.words_beside if matches_any(word, tuple(patterns))}
    return bool(of_interest) and not of_interest <= _known_names()


@cache
def _known_names() -> frozenset[str]:
    """Return all flags and fields of all releases, as settings are written."""
    from cgmigrate.megatron import tables

    every = tables.load()
    fields = (name for one in every.classes.values() for name in one["fields"])
    return frozenset((*fields, *map(_word, every.flags_of)))


def _has_unknown_value(names: Any, around: OwnerEvidence) -> bool:
    """Return whether one of some settings has a value that no release knows."""
    known = {*LAYER_MODULES, *IMPLEMENTATIONS, *INFERENCE_SCOPES, "full", "full_iteration_inference"}
    values = [value for name, value in around.site.own.items() if name in names]
    return any(not known.issuperset(names_in(value)) for value in values if isinstance(value, (str, list)))


def _starts(patterns: Any, around: OwnerEvidence) -> bool:
    programs = around.site.programs or ()
    return any(matches_any(program, tuple(patterns)) for program in programs)


_TESTS: Mapping[str, Callable[[Any, OwnerEvidence], bool]] = {
    "flags": lambda expected, around: around.site.flags is expected,
    "command-line": lambda expected, around: (around.site.programs is not None) is expected,
    "program": _starts,
    "beside": _is_beside,
    "target": _has_target,
    "target-around": lambda prefixes, around: any(one.startswith(tuple(prefixes)) for one in around.site.targets),
    "unknown-flags": _has_unknown_flag,
    "unknown-values-of": _has_unknown_value,
    "callee": _has_callee,
    "object": _has_object,
    "imports": _imports,
    "example": lambda expected, around: (around.site.example is not None) is expected,
    "imports-none": lambda modules, around: not _imports(modules, around),
    "writes": lambda names, around: any(name in names for name in around.names),
    "writes-only": lambda names, around: bool(around.names) and all(name in names for name in around.names),
}

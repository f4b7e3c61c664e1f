"""A requirement on megatron-core, and the releases that it admits."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cgmigrate.megatron.releases import ACCEPTED, OLDEST, UPSTREAM, Release

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

# packaging and tomllib are imported where a pin is read, since most runs read none. `re` costs nothing: dataclasses
# and pathlib import it anyway.

NAME = r"megatron[-_.]+core"
"""A regular expression for the name of the package, in any spelling that pip accepts."""


class Requirement(NamedTuple):
    """A requirement on megatron-core.

    ``line`` is 1-based. ``admitted`` is None if the requirement cannot be read or names no release. ``newer`` and
    ``older`` say that it admits only releases newer, or older, than all known ones. ``origin`` says what pins
    megatron-core if that is not a published release (``a git revision``); then ``admitted`` can be wrong. ``folder`` is
    the folder of a source tree.
    """

    line: int
    text: str
    admitted: frozenset[Release] | None
    newer: bool = False
    origin: str = ""
    folder: str = ""
    older: bool = False


def is_core(requirement: str) -> bool:
    """Return whether a requirement, or the name of a package, is that of megatron-core."""
    return re.match(rf"\s*{NAME}(?![\w.-])", requirement, re.IGNORECASE) is not None


def exact(line: int, text: str, release: Release) -> Requirement:
    """Return the requirement of one release."""
    newer, older = release > UPSTREAM, release < OLDEST
    nearest = max(OLDEST, min(release, UPSTREAM))
    return Requirement(line, text, frozenset({nearest}).intersection(ACCEPTED), newer, older=older)


def specified(line: int, text: str, specifier: SpecifierSet) -> Requirement:
    """Return the requirement of the releases that satisfy ``specifier``."""
    admitted = _admitted(specifier)
    if admitted:
        return Requirement(line, text, admitted)
    if _admits_newer(specifier):
        return Requirement(line, text, frozenset({UPSTREAM}), newer=True)
    older = _admits_older(specifier)
    return Requirement(line, text, frozenset({OLDEST} if older else ()), older=older)


@lru_cache(maxsize=256)
def _admitted(specifier: SpecifierSet) -> frozenset[Release]:
    """Return the accepted minor releases of which some patch or pre-release satisfies ``specifier``."""
    from packaging.version import Version

    # A bound may be a version other than the usual ones: 0.17.12, 0.18.0rc3, 0.17.1+cu12.
    bounds = versions_in(specifier)

    def admits(release: Release) -> bool:
        usual = [Version(f"{release}.0rc0"), *(Version(f"{release}.{patch}") for patch in range(10))]
        named = [version for version in bounds if (version.major, version.minor) == release]
        return any(specifier.contains(version, prereleases=True) for version in usual + named)

    return frozenset(filter(admits, ACCEPTED))


def _admits_newer(specifier: SpecifierSet) -> bool:
    """Return whether some release after all known ones satisfies ``specifier``."""
    from packaging.version import Version

    newer = [version for version in versions_in(specifier) if (version.major, version.minor) > UPSTREAM]
    nexts = [Version(f"{version.major}.{version.minor}.{version.micro + 1}") for version in newer]
    return any(specifier.contains(version, prereleases=True) for version in [*newer, *nexts])


def _admits_older(specifier: SpecifierSet) -> bool:
    """Return whether some release before all known ones satisfies ``specifier``."""
    from packaging.version import Version

    usual = (Version(f"0.{minor}.{patch}") for minor in range(OLDEST.minor) for patch in range(10))
    named = (version for version in versions_in(specifier) if (version.major, version.minor) < OLDEST)
    return any(specifier.contains(version, prereleases=True) for version in (*usual, *named))


def versions_in(specifier: SpecifierSet) -> list[Version]:
    """Return the versions that a specifier names."""
    from packaging.version import InvalidVersion, Version

    bounds: list[Version] = []
    for clause in specifier:
        try:
            bounds.append(Version(clause.version.removesuffix(".*")))
        except InvalidVersion:
            continue
    return bounds

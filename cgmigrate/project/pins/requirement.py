"""What a pin file requires of a package, and the releases of megatron-core that such a requirement admits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cgmigrate.megatron.releases import ACCEPTED, OLDEST, UPSTREAM, Release
from cgmigrate.megatron.versions import AFTER_RELEASE, names_of

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

# packaging and tomllib are imported where a pin is read, since most runs read none. `re` costs nothing: dataclasses
# and pathlib import it anyway.

IMAGE, LOCAL_PATH = "a container image", "a local path"


class Requirement(NamedTuple):
    """A requirement on a package.

    ``line`` is 1-based. ``ranges`` are versions of which one range counts, None if the requirement cannot be read or
    names no version. ``origin`` says what pins the package if that is not a published release (``a git revision``);
    then ``ranges`` can be wrong. ``folder`` is the folder of a source tree. ``is_always`` says that it holds on Linux
    with any Python.
    """

    line: int
    text: str
    ranges: tuple[SpecifierSet, ...] | None = None
    origin: str = ""
    folder: str = ""
    is_always: bool = True
    is_never: bool = False


class Admitted(NamedTuple):
    """The known releases of megatron-core that a requirement admits: only newer or older ones count as the nearest.

    ``early`` says that it admits pre-releases only, which have the names of ``releases``.
    """

    releases: frozenset[Release]
    newer: bool = False
    older: bool = False
    early: bool = False


def exact(line: int, text: str, version: str) -> Requirement:
    """Return the requirement of the pre-release or the minor release whose version begins a text."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    written = re.match(rf"[0-9]+\.[0-9]+{AFTER_RELEASE}(?![a-z0-9])|[0-9]+\.[0-9]+", version, re.IGNORECASE)
    number = Version(written[0] if written else "0.0")
    released = number if number.is_prerelease else f"{number.major}.{number.minor}.*"
    return Requirement(line, text, (SpecifierSet(f"=={released}"),))


def version_of(match: re.Match[str]) -> str:
    """Return the rest of a text from a version on, of which a match has the first two numbers as its last groups."""
    return match.string[match.start((match.lastindex or 1) - 1) :]


def admitted(ranges: Iterable[SpecifierSet]) -> Admitted:
    """Return the releases of megatron-core that some of the ranges admits."""
    ranges = tuple(ranges)
    if releases := frozenset[Release]().union(*map(_admitted, ranges)):
        return Admitted(releases)
    # A pre-release is what is installed only where no release is admitted.
    if releases := frozenset[Release]().union(*map(_admitted_early, ranges)):
        return Admitted(releases, early=True)
    if any(map(_admits_newer, ranges)):
        return Admitted(frozenset({UPSTREAM}), newer=True)
    older = any(map(_admits_older, ranges))
    return Admitted(frozenset({OLDEST} if older else ()), older=older)


@lru_cache(maxsize=256)
def _admitted(specifier: SpecifierSet) -> frozenset[Release]:
    """Return the accepted minor releases of which some patch satisfies ``specifier``."""
    from packaging.version import Version

    # A bound may be a version other than the usual ones: 0.17.12, 0.17.1+cu12.
    bounds = [version for version in versions_in(specifier) if not version.is_prerelease]

    def admits(release: Release) -> bool:
        usual = [Version(f"{release}.{patch}") for patch in range(10)]
        named = [version for version in bounds if (version.major, version.minor) == release]
        return any(specifier.contains(version, prereleases=True) for version in usual + named)

    return frozenset(filter(admits, ACCEPTED))


def _admitted_early(specifier: SpecifierSet) -> frozenset[Release]:
    """Return the accepted releases whose names the pre-releases have that a specifier names and admits."""
    named = [version for version in versions_in(specifier) if specifier.contains(version, prereleases=True)]
    return frozenset(names_of(version) for version in named if version.is_prerelease).intersection(ACCEPTED)


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

"""Whether a range of versions lies on one side of a version.

A range has an edge only at a version that it names, so it is decided by these versions and those right beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from cgmigrate.project.pins.requirement import versions_in

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version


def is_below(ranges: Iterable[SpecifierSet], limit: str) -> bool | None:
    """Return whether all versions that some of the ranges admits are below a version; None if only some are.

    False means that none is. It is None for ranges that admit nothing, too.
    """
    sides = [side for one in ranges for side in _sides(one, limit)]
    return sides[0] if sides and len(set(sides)) == 1 else None


@lru_cache(maxsize=256)
def _sides(one: SpecifierSet, limit: str) -> frozenset[bool]:
    """Return whether a range admits versions below a version (True), and others (False)."""
    from packaging.version import Version

    edge = Version(limit)
    near = (version for named in (*versions_in(one), edge) for version in _near(named))
    admitted = (version for version in near if one.contains(version, prereleases=True))
    return frozenset(version < edge for version in admitted)


def _near(version: Version) -> Iterator[Version]:
    """Yield a version, and versions below and above it with nothing of interest between."""
    from packaging.version import Version

    major, minor, micro = (*version.release, 0, 0)[:3]
    yield version
    yield from map(Version, ("0.dev0", "99999"))
    for release in (version.base_version, f"{major}.{minor}.{micro + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0"):
        yield from (Version(f"{release}{suffix}") for suffix in (".dev0", "a0", "rc99", "", ".post9"))
    if micro:
        yield Version(f"{major}.{minor}.{micro - 1}")
    if minor:
        yield Version(f"{major}.{minor - 1}.99")

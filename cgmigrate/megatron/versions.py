"""Versions and tags of megatron-core, and the release that each belongs to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cgmigrate.megatron.packages import core
from cgmigrate.megatron.releases import KNOWN, NEWEST, OLDEST, UPSTREAM, Release

if TYPE_CHECKING:
    from packaging.version import Version

KNOWN_RANGE = f"{OLDEST} to {NEWEST}"
"""The known releases, for messages."""

BEFORE_RELEASE = "(?:core_[rv]|v)?"
"""What a version or a tag has before its release; letters may be in any case."""
AFTER_RELEASE = (
    r"(?:\.[0-9]+)*(?:[-_.]?(?:alpha|a|beta|b|preview|pre|rc|c)[-_.]?[0-9]*)?(?:[-_.]?post[-_.]?[0-9]*)?"
    r"(?:[-_.]?dev[-_.]?[0-9]*)?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
)
"""What it has after it."""
_VERSION = rf"{BEFORE_RELEASE}([0-9]{{1,6}})\.([0-9]{{1,6}}){AFTER_RELEASE}"


class ReleaseError(ValueError):
    """A release that is malformed, not known, or in the wrong order; the message is meant for the user."""


def names_of(version: Version) -> Release:
    """Return the release whose names a version has: its own, or, for most pre-releases, those of the release before.

    The main branch has the number of a pre-release, too, and its own names.
    """
    release = Release(version.major, version.minor)
    if not version.is_prerelease or version.micro or release not in KNOWN or core().has_own_names(version.public):
        return release
    return Release(release.major, release.minor - 1)


def parse_release(text: str) -> Release:
    """Return the minor release that a version or a tag of megatron-core belongs to.

    ``0.17``, ``0.17.1``, ``v0.17.1``, ``core_v0.17.0`` and ``core_r0.17.0`` are all 0.17; of the pre-releases,
    ``0.17.0rc0`` is 0.17, and ``0.15.0rc6``, which has the names of the release before, 0.14.

    Raises ReleaseError if the text is not a version, and for releases older than the oldest known one or newer than
    ``UPSTREAM``.
    """
    match = re.fullmatch(_VERSION, text.strip(), re.IGNORECASE)
    if match is None:
        raise ReleaseError(
            f"{text!r} is not a megatron-core release; write it like 0.17 or 0.17.1 (known: {KNOWN_RANGE})"
        )
    from packaging.version import Version

    release = names_of(Version(match[0][match.start(1) - match.start() :]))
    if release < OLDEST:
        raise ReleaseError(f"megatron-core {release} is older than what is known ({KNOWN_RANGE})")
    if release > UPSTREAM:
        raise ReleaseError(
            f"megatron-core {release} is not known yet; give {UPSTREAM}, which is read like {NEWEST}, if {release} "
            "reads these settings in the same way"
        )
    return release

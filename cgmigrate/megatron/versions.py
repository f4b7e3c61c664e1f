"""Versions and tags of megatron-core, and the release that each belongs to."""

from __future__ import annotations

import re

from cgmigrate.megatron.releases import NEWEST, OLDEST, UPSTREAM, Release

KNOWN_RANGE = f"{OLDEST} to {NEWEST}"
"""The known releases, for messages."""

BEFORE_RELEASE = "(?:core_[rv]|v)?"
"""What a version or a tag has before its release; letters may be in any case."""
AFTER_RELEASE = (
    r"(?:\.[0-9]+)*"
    r"(?:[-_.]?(?:alpha|a|beta|b|preview|pre|rc|c|dev|post)[-_.]?[0-9]*){0,3}(?:\+[a-z0-9.]+)?"
)
"""What it has after it."""
_VERSION = rf"{BEFORE_RELEASE}([0-9]{{1,6}})\.([0-9]{{1,6}}){AFTER_RELEASE}"


class ReleaseError(ValueError):
    """A release that is malformed, not known, or in the wrong order; the message is meant for the user."""


def parse_release(text: str) -> Release:
    """Return the minor release that a version or a tag of megatron-core belongs to.

    ``0.17``, ``0.17.1``, ``v0.17.1``, ``core_v0.17.0``, ``core_r0.17.0`` and ``0.17.0rc1`` are all 0.17.

    Raises ReleaseError if the text is not a version, and for releases older than the oldest known one or newer than
    ``UPSTREAM``.
    """
    match = re.fullmatch(_VERSION, text.strip(), re.IGNORECASE)
    if match is None:
        raise ReleaseError(
            f"{text!r} is not a megatron-core release; write it like 0.17 or 0.17.1 (known: {KNOWN_RANGE})"
        )
    release = Release(int(match[1]), int(match[2]))
    if release < OLDEST:
        raise ReleaseError(f"megatron-core {release} is older than what is known ({KNOWN_RANGE})")
    if release > UPSTREAM:
        raise ReleaseError(
            f"megatron-core {release} is not known yet; give {UPSTREAM}, which is read like {NEWEST}, if {release} "
            "reads these settings in the same way"
        )
    return release

"""Names of edit sets in reports."""

from __future__ import annotations

import hashlib

ID_LENGTH = 10
"""Digits of the name of a fix."""


def set_id(name: str) -> str:
    """Return the name of a set from what distinguishes it."""
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:ID_LENGTH]

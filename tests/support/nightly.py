"""How much a run tries: a push a fixed part, the same each time; `.ci/run --nightly` all of it.

CGMIGRATE_NIGHTLY=1 says that it is night.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

NIGHTLY = bool(os.environ.get("CGMIGRATE_NIGHTLY"))
LARGE = os.environ.get("CGMIGRATE_NIGHTLY") == "large"
"""Ten times as many generated projects as at night: hours, before a release."""

nightly_only = pytest.mark.skipif(not NIGHTLY, reason="takes long; `.ci/run --nightly` runs it")


def examples(count: int) -> int:
    """Return how many examples a property is tried on: ``count`` at night, otherwise a quarter, at least ten."""
    return count if NIGHTLY else max(10, count // 4)


def generated(push: int, night: int) -> int:
    """Return how many generated projects are tried: ``push`` or ``night``; a large run tries ten times ``night``."""
    return night * 10 if LARGE else night if NIGHTLY else push


def part(items: Iterable[T], one_in: int, seed: object = "") -> list[T]:
    """Return all items at night, otherwise those whose hash says so: one in ``one_in``, others for another ``seed``."""
    if NIGHTLY:
        return list(items)
    return [item for item in items if zlib.crc32(f"{seed} {item!r}".encode()) % one_in == 0]

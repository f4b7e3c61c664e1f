"""The files that a run may write: only those in its paths, also if links lead out of them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cgmigrate.project.paths import is_below


def outside(path: str, paths: Iterable[str]) -> str:
    """Return the real path of a file that is in none of the paths, empty for one that is."""
    real = os.path.realpath(path)
    return "" if any(is_below(real, os.path.realpath(top)) for top in paths) else real


def not_written(path: str, place: str) -> str:
    """Return the note about a file that gets no comments."""
    return f"{path}: no comment is written, since the file is outside of the paths ({place}); give its path"

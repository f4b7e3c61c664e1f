"""Migrate, lint and verify the CUDA-graph settings of Megatron projects.

The names of ``cgmigrate.api`` are those of the package; they are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.api import (
        Capture,
        Diagnostic,
        Options,
        Reader,
        Rejected,
        Release,
        Report,
        Result,
        Settings,
        Unread,
        capture_of,
        check_paths,
        check_text,
        migrate_text,
        parse_release,
    )

__version__ = "0.1.0"

__all__ = [
    "Capture",
    "Diagnostic",
    "Options",
    "Reader",
    "Rejected",
    "Release",
    "Report",
    "Result",
    "Settings",
    "Unread",
    "capture_of",
    "check_paths",
    "check_text",
    "migrate_text",
    "parse_release",
]


def __getattr__(name: str) -> object:
    """Return a name of the API. Starting the program must not import it."""
    if name in __all__:
        from cgmigrate import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

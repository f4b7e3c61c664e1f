"""Migrate, lint and verify the CUDA-graph settings of Megatron projects.

The names of ``cgmigrate.api`` are those of the package; they are imported when they are first used, as is
the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.api import *

    __version__: str

__all__ = [
    "Backend",
    "Blocks",
    "Capture",
    "Diagnosis",
    "Diagnostic",
    "Iteration",
    "Layers",
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
    "doctor",
    "migrate_text",
    "parse_release",
]


def __getattr__(name: str) -> object:
    """Return a name of the API. Starting the program must not import it."""
    if name in __all__:
        from cgmigrate import api

        return getattr(api, name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of the package, with those that are imported when they are used."""
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    """Return the version of the installed package, taken from the nearest git tag; 0 for one that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cgmigrate")
    except PackageNotFoundError:
        return "0"

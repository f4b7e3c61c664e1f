"""The pin of a project as tests compare it."""

from __future__ import annotations

from pathlib import Path

from cgmigrate.project.pins import search
from cgmigrate.project.pins.files import Pin


def find_pin(directory: Path) -> tuple[Pin | None, tuple[str, ...]]:
    """Return the pin of the project that a folder belongs to, and the notes."""
    project = search.find_pin(directory)
    return project.pin, project.notes


def summary(pin: Pin | None) -> str:
    """Return file, line, text and releases of a pin in one line."""
    return f"{pin.path.name}:{pin.line} {pin.text} [{pin.oldest}, {pin.newest}]" if pin else "no pin"

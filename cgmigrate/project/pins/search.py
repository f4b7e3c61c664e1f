"""The pin of the project that a folder belongs to: that of the nearest folder with one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cgmigrate.project.pins.files import OpaquePin, Pin
from cgmigrate.project.pins.folders import FolderPins, read_folder


class ProjectPin(NamedTuple):
    """The pin of a project, the nearest pin that names no release, and notes on pins that are not used."""

    pin: Pin | None
    opaque: OpaquePin | None
    notes: tuple[str, ...]


def find_pin(directory: Path) -> ProjectPin:
    """Return the pin of the project that ``directory`` belongs to.

    Looks in ``directory`` and its parents, up to the first that contains ``.git``; the nearest folder with a pin
    takes precedence. Within a folder, the order is: lock file, source tree of megatron-core (vendored, submodule),
    pyproject.toml, setup.cfg, setup.py, requirement files, conda's environment, Dockerfile, metadata of a tree that
    was built, the environment in ``.venv``, scripts that install. Files that cannot be used become notes.
    """
    directory = directory.resolve()
    notes: list[str] = []
    opaque: OpaquePin | None = None
    pin: Pin | None = None
    for _, pins in _folders_above(directory):
        notes += (f"{place_of(p.path, p.line, directory)}: {p.message}" for p in pins.problems)
        opaque, pin = opaque or pins.opaque, pins.pin
    return ProjectPin(pin, opaque, tuple(notes))


def pinned_folder(directory: Path) -> Path | None:
    """Return the nearest folder, from ``directory`` up to the root of its checkout, that pins megatron-core."""
    for folder, pins in _folders_above(directory):
        if pins.pin is not None:
            return folder
    return None


def place_of(path: Path, line: int | None, directory: Path) -> str:
    """Return ``path:line`` relative to the working directory, if that is in the same project, or to the project."""
    shared = os.path.commonpath([path.parent, directory.resolve()])
    cwd = Path.cwd()
    is_around = path.is_relative_to(cwd) or cwd.is_relative_to(shared)
    name = Path(os.path.relpath(path, cwd if is_around else shared)).as_posix()
    return name if line is None else f"{name}:{line}"


def _folders_above(directory: Path) -> Iterator[tuple[Path, FolderPins]]:
    """Yield a folder and its parents with their pins, up to the first that has a pin or is the root of a checkout."""
    directory = directory.resolve()
    for folder in (directory, *directory.parents):
        pins = read_folder(folder)
        yield folder, pins
        if pins.pin is not None or pins.is_root:
            return

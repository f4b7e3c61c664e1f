"""The pins of packages other than megatron-core, and what they say of the installed version.

Some such packages read settings by their names: a YAML file cannot get names that the pinned release does not read.
Others are those that megatron-core needs in a version for some settings.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cgmigrate.megatron.packages import package
from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.files import PACKAGE_INFO, requirements_in
from cgmigrate.project.pins.folders import pin_files, scripts_that_install
from cgmigrate.project.pins.requirement import IMAGE, LOCAL_PATH, Requirement
from cgmigrate.project.pins.search import place_of
from cgmigrate.project.pins.version_ranges import is_below

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


class PackagePin(NamedTuple):
    """A requirement of a file; the versions of a lock file come from what the project itself builds."""

    path: Path
    requirement: Requirement
    is_locked: bool = False

    @property
    def ranges(self) -> tuple[SpecifierSet, ...]:
        """The versions of which one range counts, none if the pin names no version that is always installed."""
        return (self.requirement.ranges or ()) if self.requirement.is_always else ()

    @property
    def installs(self) -> bool:
        """Whether a command of a container or a script installs the package."""
        name = self.path.name.lower()
        return ("dockerfile" in name or name.endswith("sh")) and self.requirement.origin != IMAGE

    @property
    def is_pin(self) -> bool:
        """Whether it says anything of the package: a source tree is what it is, and has any number."""
        if self.requirement.is_never:
            return True
        in_tree = self.requirement.origin == LOCAL_PATH and self.is_locked
        return not in_tree and not (self.requirement.folder and not self.requirement.ranges and not self.installs)


def pinned_up_to(folder: Path, name: str, newest: Release) -> str:
    """Return the pin of a package that admits no release after ``newest``, with its place; empty if there is none.

    The nearest folder with a pin decides, up to the first that contains ``.git``. A pin of a git revision, a range
    without an upper limit and a source tree say nothing.
    """
    folder = folder.resolve()
    for pin in _nearest(folder, name):
        ranges = () if pin.requirement.origin else pin.ranges
        is_older = is_below(ranges, f"{newest.major}.{newest.minor + 1}.dev0")
        return f"{_place(pin, folder)}: {pin.requirement.text}" if is_older else ""
    return ""


def pin_below(folder: Path, name: str, limit: str) -> str:
    """Return the pin because of which a project installs a package in a version below one; empty if none does so."""
    folder = folder.resolve()
    if side_of(folder, name, limit) is not True:
        return ""
    pin = next(pin for pin in _nearest(folder, name) if is_below(pin.ranges, limit))
    return f"`{pin.requirement.text}` ({_place(pin, folder)})"


def side_of(folder: Path, name: str, limit: str) -> bool | None:
    """Return whether a project installs a package in a version below one; None if its pins do not decide it.

    A lock file decides, unless another pin contradicts it. Otherwise all pins of the nearest folder with one have to
    agree; a pin that names no version (a git revision, an image) leaves it open.
    """
    pins = _nearest(folder.resolve(), name)
    if any(pin.requirement.is_never for pin in pins):
        return None
    locked = [pin for pin in pins if pin.is_locked]
    # What a lock file has is built from the git revisions of the project, in the images of the project.
    others = [pin for pin in pins if not pin.is_locked and (pin.ranges or pin.installs)]
    return _together([*locked, *others], limit) if locked else _together(pins, limit)


def _place(pin: PackagePin, folder: Path) -> str:
    return place_of(pin.path, pin.requirement.line, folder)


def _together(pins: Collection[PackagePin], limit: str) -> bool | None:
    """Return on which side of a version some pins are that count together; None if that is open."""
    sides = {is_below(pin.ranges, limit) for pin in pins} - {None}
    return sides.pop() if len(sides) == 1 and all(pin.ranges for pin in pins) else None


@cache
def _nearest(folder: Path, name: str) -> tuple[PackagePin, ...]:
    """Return the pins of the nearest folder that has one, from a folder up to the first that contains ``.git``."""
    for above in (folder, *folder.parents):
        if pins := _pins_in(above, name):
            return pins
        if (above / ".git").exists():
            break
    return ()


@cache
def _pins_in(folder: Path, name: str) -> tuple[PackagePin, ...]:
    """Return the pins of a folder, lock files first."""
    try:
        names = set(os.listdir(folder))
    except OSError:
        return ()
    pins = (
        PackagePin(path, requirement, kind.is_lock)
        for path, kind in (*pin_files(folder, names), *scripts_that_install(folder, names))
        if kind is not PACKAGE_INFO
        for requirement in requirements_in(path, kind, package(name), [])
    )
    return tuple(pin for pin in pins if pin.is_pin)

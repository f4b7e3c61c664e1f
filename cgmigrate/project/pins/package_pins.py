"""The pins of packages other than megatron-core, and what they say of the installed version.

Some such packages read settings by their names: a YAML file cannot get names that the pinned release does not read.
Others are those that megatron-core needs in a version for some settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cgmigrate.megatron.packages import Package, package
from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.lock_files import locked_packages
from cgmigrate.project.pins.package_lines import named_release, required_in
from cgmigrate.project.pins.search import place_of
from cgmigrate.project.pins.version_ranges import is_below
from cgmigrate.text.files import MAX_GENERATED, read_bytes

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

_FILES = re.compile(
    r"pyproject\.toml|setup\.(?:cfg|py)|Pipfile|pixi\.toml|\.gitmodules|(?:requirements|constraints).*\.txt"
    r"|.*[Dd]ockerfile.*|(?:conda|environment)[\w.-]*\.ya?ml|(?:install|setup|bootstrap|build)[\w.-]*\.(?:sh|bash)"
)
_IS_IMAGE = re.compile(r"(?:FROM|ARG)\s", re.IGNORECASE)
_LOCKS = ("uv.lock", "poetry.lock")
_INNER = ("docker", "requirements", "script", "scripts")
"""Folders with files of the project around them."""


class PackagePin(NamedTuple):
    """A pin: ``ranges`` of versions, of which one counts; none if it names no version (a git revision, an image).

    ``reference`` is the source of a locked version that is built from git: there, the version is only a number.
    ``elsewhere`` says that the project does not install the package itself.
    """

    path: Path
    line: int
    text: str
    ranges: tuple[SpecifierSet, ...] = ()
    is_locked: bool = False
    reference: str = ""
    elsewhere: bool = False


def pinned_up_to(folder: Path, name: str, newest: Release) -> str:
    """Return the pin of a package that admits no release after ``newest``, with its place; empty if there is none.

    The nearest folder with a pin decides, up to the first that contains ``.git``. A pin of a git revision, a range
    without an upper limit and a source tree say nothing.
    """
    folder = folder.resolve()
    for pin in _nearest(folder, name):
        ranges = pin.ranges
        if pin.reference:
            release = None if re.search(r"[<>*|]", pin.reference) else named_release(pin.reference)
            ranges = (release,) if release else ()
        is_older = is_below(ranges, f"{newest.major}.{newest.minor + 1}.dev0")
        return f"{place_of(pin.path, pin.line, folder)}: {pin.text}" if is_older else ""
    return ""


def pin_below(folder: Path, name: str, limit: str) -> str:
    """Return the pin because of which a project installs a package in a version below one; empty if none does so."""
    folder = folder.resolve()
    if side_of(folder, name, limit) is not True:
        return ""
    pin = next(pin for pin in _nearest(folder, name) if is_below(pin.ranges, limit))
    return f"`{pin.text}` ({place_of(pin.path, pin.line, folder)})"


def side_of(folder: Path, name: str, limit: str) -> bool | None:
    """Return whether a project installs a package in a version below one; None if its pins do not decide it.

    A lock file decides, unless another pin contradicts it. Otherwise all pins of the nearest folder with one have to
    agree; a pin that names no version (a git revision, an image) leaves it open.
    """
    pins = _nearest(folder.resolve(), name)
    if any(pin.elsewhere for pin in pins):
        return None
    locked = [pin for pin in pins if pin.is_locked]
    # What a lock file has is built from the git revisions of the project, in the images of the project.
    others = [pin for pin in pins if not pin.is_locked and (pin.ranges or _installs(pin))]
    return _together([*locked, *others], limit) if locked else _together(pins, limit)


def _installs(pin: PackagePin) -> bool:
    """Return whether a command of a container or a script installs the package of a pin."""
    return re.fullmatch(r".*dockerfile.*|.*sh", pin.path.name.lower()) is not None and not _IS_IMAGE.match(pin.text)


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
    one = package(name)
    return tuple(pin for path in _files_in(folder) for pin in _pins_of(path, one))


@cache
def _files_in(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that can pin a package, lock files first."""
    names = _listed(folder)
    inner = [f"{part}/{name}" for part in _INNER if part in names for name in _listed(folder / part)]
    inner = [name for name in inner if _FILES.fullmatch(name.rpartition("/")[2]) or _is_list(name)]
    own = [name for name in names if name in _LOCKS or _FILES.fullmatch(name)]
    return tuple(folder / name for name in sorted([*own, *inner], key=lambda name: name not in _LOCKS))


def _is_list(name: str) -> bool:
    return name.startswith("requirements/") and name.endswith(".txt")


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _pins_of(path: Path, one: Package) -> Iterator[PackagePin]:
    try:
        text = read_bytes(path, MAX_GENERATED).decode("utf-8", "replace")
    except OSError:
        return
    if path.name in _LOCKS:
        yield from _locked(path, text, one)
    elif path.name == ".gitmodules":
        yield from _submodules(path, text, one)
    else:
        for line, written, ranges, elsewhere in required_in(text, one):
            yield PackagePin(path, line, written, ranges, elsewhere=elsewhere)


def _locked(path: Path, text: str, one: Package) -> Iterator[PackagePin]:
    """Yield the locked release of a package; that of a source tree is only a number, and is not used."""
    for line, data in _locked_packages(text, one):
        source, version = data.get("source"), str(data.get("version", ""))
        kinds = source if isinstance(source, dict) else {}
        if not kinds.keys().isdisjoint(("editable", "directory", "virtual", "path")):
            continue
        is_git = "git" in kinds or kinds.get("type") == "git"
        yield PackagePin(
            path, line, f"{data.get('name')} {version}", _exactly(version), True, str(source) if is_git else ""
        )


def _locked_packages(text: str, one: Package) -> Iterator[tuple[int, dict[str, object]]]:
    for name in one.names:
        # The names of a lock file are normalised; most packages are in none.
        if name in text or name.replace("-", "_") in text:
            try:
                yield from locked_packages(text, r"[-_.]+".join(map(re.escape, name.split("-"))))
            except ValueError:
                return


def _exactly(version: str) -> tuple[SpecifierSet, ...]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return (SpecifierSet(f"=={version}"),)
    except InvalidSpecifier:
        return ()


def _submodules(path: Path, text: str, one: Package) -> Iterator[PackagePin]:
    """Yield the submodules of a package: the release in the branch, or none."""
    for section in re.finditer(r"^\[submodule\b.*?(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL):
        url = re.search(r"^[ \t]*url[ \t]*=.*[/:]([\w.-]+?)(?:\.git)?/?[ \t\r]*$", section[0], re.MULTILINE)
        branch = re.search(r"^[ \t]*branch[ \t]*=[ \t]*(\S+)", section[0], re.MULTILINE)
        if url and branch and url[1].lower() in (*one.names, one.repository.lower()):
            line = text.count("\n", 0, section.start()) + 1
            release = named_release(f"={branch[1]}")
            yield PackagePin(path, line, f"branch {branch[1]} of {url[1]}", (release,) if release else ())

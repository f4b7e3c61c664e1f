"""One file that can pin a package: its requirements, and the pin of megatron-core that they amount to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cgmigrate.megatron.packages import Package, core
from cgmigrate.megatron.releases import KNOWN, NEWEST, OLDEST, Release
from cgmigrate.megatron.source_trees import core_in, features
from cgmigrate.megatron.versions import KNOWN_RANGE
from cgmigrate.project.checkout import index_of
from cgmigrate.project.pins.package_info import FILE_NAME, read_package_info
from cgmigrate.project.pins.requirement import Admitted, Requirement, admitted, exact
from cgmigrate.text.files import MAX_GENERATED, read_bytes

_NEWER = f"is newer than the known releases ({KNOWN_RANGE}): assuming that it reads these settings like {NEWEST}"
_HAS = ", which has the settings of "
_OLDER = f"is older than the known releases ({KNOWN_RANGE}): assuming that it reads these settings like {OLDEST}"


@dataclass(frozen=True, slots=True)
class Pin:
    """A requirement on megatron-core, with the oldest and the newest known release that it admits.

    ``line`` is 1-based. ``text`` is the requirement as written, or ``megatron-core==VERSION`` for a lock file or a
    source tree. ``admitted`` are all releases that it admits.
    """

    path: Path
    line: int
    text: str
    oldest: Release
    newest: Release
    admitted: frozenset[Release] = frozenset()


class PinProblem(NamedTuple):
    """A reason why a file, or a requirement in it, is not used or can be wrong."""

    path: Path
    line: int | None
    message: str


class OpaquePin(NamedTuple):
    """A pin that names no release; ``origin`` is what it is instead (``a git revision``)."""

    path: Path
    line: int
    origin: str


@dataclass(slots=True)
class PinReport:
    """What reading pin files reports besides the pin."""

    problems: list[PinProblem] = field(default_factory=list)
    opaque: list[OpaquePin] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PinFormat:
    """A kind of pin file. ``read`` raises ValueError for a text that it cannot parse."""

    read: Callable[[str, Package], Iterable[Requirement]]
    is_lock: bool = False


PACKAGE_INFO = PinFormat(read_package_info)


def read_pin_file(path: Path, kind: PinFormat, report: PinReport) -> Pin | None:
    """Return the pin in a file; None if there is no such file or no usable pin in it. Never raises."""
    if kind is PACKAGE_INFO:
        return _read_source_tree(path, report)
    return _read(path, kind, report)


def _read_source_tree(path: Path, report: PinReport) -> Pin | None:
    """Return the release whose settings a source tree has, which can differ from its version number."""
    pin = _read(path, PACKAGE_INFO, report)
    if pin is None or (releases := features(path.parent)) is None:
        return pin
    oldest, newest = releases
    release = max(oldest, min(pin.newest, newest))
    if release == pin.newest:
        return pin
    return Pin(path, pin.line, f"{pin.text}{_HAS}{release}", release, release)


def _read(path: Path, kind: PinFormat, report: PinReport) -> Pin | None:
    requirements = requirements_in(path, kind, core(), report.problems)
    for requirement in requirements:
        # A source tree is what is installed, whatever range a requirement beside it admits.
        if requirement.folder and (tree := core_in(path.parent / requirement.folder)) is not None:
            return _read_source_tree(tree / FILE_NAME, report)
    return _combined(path, [_at_commit(path.parent, one) for one in requirements], report)


def _at_commit(folder: Path, requirement: Requirement) -> Requirement:
    """Return the requirement of a submodule that is not checked out, by the commit that git's index has for it."""
    below = index_of(str(folder), requirement.folder) if requirement.folder else []
    commits = [commit for _, commit in below if commit]
    release = core().release_of(commits[0]) if len(commits) == 1 else ""
    text = f"{requirement.folder} at {''.join(commits)[:12]}"
    return exact(requirement.line, text, release) if release else requirement


def requirements_in(path: Path, kind: PinFormat, package: Package, problems: list[PinProblem]) -> list[Requirement]:
    """Return what a file requires of a package, and report why it cannot be read. Never raises."""
    try:
        data = read_bytes(path, MAX_GENERATED)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return []
    except OSError as error:
        problems.append(PinProblem(path, None, f"cannot be read ({error.strerror}); its pin is not used"))
        return []
    text = data.decode("utf-8-sig", errors="replace")
    # The path of package_info.py says that it is that of megatron-core; its text need not.
    if kind is not PACKAGE_INFO and not package.may_be_in(text):
        return []
    try:
        return list(kind.read(text, package))
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        problems.append(PinProblem(path, None, f"cannot be parsed ({reason[0]}); its pin is not used"))
        return []


def _combined(path: Path, requirements: list[Requirement], report: PinReport) -> Pin | None:
    """Return what all requirements of a file admit together, or the first one if they disagree."""
    read = [(each, admitted(each.ranges or ())) for each in requirements]
    usable = [
        (each._replace(text=f"{each.text}{_HAS}{max(one.releases)}") if one.early else each, one.releases)
        for each, one in read
        if _is_usable(path, each, one, report)
    ]
    if not usable:
        return None
    first, common = usable[0]
    for requirement, releases in usable:
        if not common & releases:
            message = f"{first.text} and {requirement.text} (line {requirement.line}) disagree; the first is used"
            report.problems.append(PinProblem(path, first.line, message))
            return _pin(path, first.line, first.text, usable[0][1])
        common &= releases
    for requirement, releases in usable:
        if releases == common:
            return _pin(path, requirement.line, requirement.text, common)
    # No single requirement admits exactly these releases, so the pin names all of them.
    together = " and ".join(dict.fromkeys(requirement.text for requirement, _ in usable))
    return _pin(path, first.line, together, common)


def _is_usable(path: Path, requirement: Requirement, one: Admitted, report: PinReport) -> bool:
    """Return whether a requirement names known releases, and report what is wrong with it."""
    problem = ""
    if requirement.origin and not requirement.ranges:
        report.opaque.append(OpaquePin(path, requirement.line, requirement.origin))
    elif requirement.origin:
        origin = requirement.origin
        problem = f"{requirement.text} is the number of {origin}, which can have the settings of another release"
    elif one.newer:
        problem = f"{requirement.text} {_NEWER}"
    elif one.older:
        problem = f"{requirement.text} {_OLDER}"
    elif requirement.ranges is None:
        problem = f"{requirement.text!r} cannot be read; it is ignored"
    elif not one.releases:
        problem = f"{requirement.text} admits no known release ({KNOWN_RANGE}); it is ignored"
    if problem:
        report.problems.append(PinProblem(path, requirement.line, problem))
    return bool(one.releases)


def _pin(path: Path, line: int, text: str, admitted: frozenset[Release]) -> Pin:
    # An open range installs a published release; the main branch counts only if nothing else is admitted.
    releases = admitted.intersection(KNOWN) or admitted
    return Pin(path, line, text, min(releases), max(releases), releases)

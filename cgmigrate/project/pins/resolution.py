"""The source and target release of a folder: from options, from pins, or by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cgmigrate.megatron.releases import LAST_OLD, NEWEST, SPLIT_IN, Release
from cgmigrate.megatron.versions import ReleaseError
from cgmigrate.project.pins.files import OpaquePin, Pin
from cgmigrate.project.pins.search import ProjectPin, find_pin, place_of

DEFAULT = "the default"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The source and target release, the origin of each (text for a person), and notes on the decision."""

    source: Release
    target: Release
    source_from: str
    target_from: str
    notes: tuple[str, ...]
    may_run_on: tuple[Release, ...] = ()
    """The releases that the project may run on, empty if options, an exact pin or a lock file decide."""
    pin: Pin | None = None
    """The requirement that admits releases before and after the split of the settings, None if there is none."""

    def __str__(self) -> str:
        return f"from {self.source} ({self.source_from}) to {self.target} ({self.target_from})"


def resolve(directory: Path, source: Release | None, target: Release | None) -> Resolution:
    """Return the source and target release for the files of ``directory``.

    ``source`` and ``target`` are those of the command line and take precedence. Next comes the project's pin: its
    newest release is the target, and of the releases that it admits, the one nearest to 0.17 is the source. The
    defaults are 0.17 and the newest release. If a pin or default puts the source after the target, the option decides.

    Raises ReleaseError if both are options and the source is newer than the target.
    """
    if source is not None and target is not None:
        if source > target:
            raise ReleaseError(f"--from {source} is newer than --to {target}")
        return Resolution(source, target, "--from", "--to", ())
    project = find_pin(directory)
    pin = project.pin
    place = place_of(pin.path, pin.line, directory) if pin else ""
    first, first_from = (source, "--from") if source is not None else _pinned_source(pin, place)
    last, last_from = (target, "--to") if target is not None else _pinned_target(pin, place)
    if first > last:
        if target is not None:
            first, first_from = target, "--to"
        else:
            last, last_from = NEWEST, DEFAULT

    notes = list(project.notes)
    may_run_on, spanning = _supported(project, first) if target is None else ((), None)
    if project.opaque and (pin is None or pin.oldest < pin.newest):
        assumed = {} if source is not None else {"--from": first}
        assumed |= {} if target is not None else {"--to": last}
        notes.append(_note_on_opaque_pin(project.opaque, directory, assumed))
    if pin and target is None and last < SPLIT_IN:
        notes.append(f"{place} pins {pin.text}, which does not know the new names; give --to {NEWEST} to migrate")
    return Resolution(first, last, first_from, last_from, tuple(notes), may_run_on, spanning)


def _supported(project: ProjectPin, source: Release) -> tuple[tuple[Release, ...], Pin | None]:
    """Return the releases that a project may run on, and the requirement if it admits old and new ones.

    A pin that names no release (a git revision) or a single one decides on what the project runs.
    """
    pin = project.pin
    if project.opaque is not None or (pin is not None and pin.oldest == pin.newest):
        return (), None
    if pin is None:
        return (source,), None
    return tuple(sorted(pin.admitted)), pin if pin.oldest < SPLIT_IN <= pin.newest else None


def _pinned_source(pin: Pin | None, place: str) -> tuple[Release, str]:
    if pin is None:
        return LAST_OLD, DEFAULT
    # A range such as >=0.12 says what may run, not what does: of the releases that it admits, take the one nearest to
    # the last release of the old names.
    return max(pin.oldest, min(pin.newest, LAST_OLD)), f"{place} ({pin.text})"


def _pinned_target(pin: Pin | None, place: str) -> tuple[Release, str]:
    return (pin.newest, f"{place} ({pin.text})") if pin else (NEWEST, DEFAULT)


def _note_on_opaque_pin(pin: OpaquePin, directory: Path, assumed: Mapping[str, Release]) -> str:
    return (
        f"megatron-core is pinned by {pin.origin} ({place_of(pin.path, pin.line, directory)}), not by a release: "
        f"assuming {' to '.join(map(str, assumed.values()))}; set {'/'.join(assumed)}"
    )

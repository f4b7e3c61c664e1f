"""Names that a release of megatron-core no longer has, from the tables of all releases."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.setting import Setting, SettingKind
from cgmigrate.megatron.tables import Accepted, Tables, load

ARGUMENTS = "training.Arguments"
"""The owner of names that only the arguments of Megatron-LM have."""
_KINDS = {"bool": SettingKind.FLAG, "int": SettingKind.NUMBER, "float": SettingKind.NUMBER}
_SWITCHES = ("StoreTrue", "StoreFalse", "BooleanOptional")
_NEAR = 0.8
"""How similar a new name has to be, as difflib counts, to be worth naming."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A name that releases had, and the newest one has not.

    ``since`` maps a reader (``config``, ``command-line``, ``bridge``) to the first release in which it has no such
    name; a reader that still has it, or never had it, is not there. ``nearest`` is a similar name that came with that
    release, empty if there is none.
    """

    setting: Setting
    since: Mapping[str, Release]
    nearest: str


@cache
def gone_names() -> tuple[Gone, ...]:
    """Return all names that are gone, in order."""
    tables = load()
    by_reader = {reader: {release: names(tables, release) for release in KNOWN} for reader, names in _READERS.items()}
    since: dict[str, dict[str, Release]] = {}
    for reader, names in by_reader.items():
        for old, new in itertools.pairwise(KNOWN):
            for name in names[old] - names[new]:
                if "_" in name.strip("_") and not any(name in names[release] for release in KNOWN if release > new):
                    since.setdefault(name, {})[reader] = new
    for name, readers in since.items():
        # Megatron-Bridge inherits the fields of megatron-core.
        if "config" in readers and next(_fields(tables, name, KNOWN[-1]), None) is None and _is_field(tables, name):
            readers.setdefault("bridge", readers["config"])
    return tuple(_gone(name, since[name], tables, by_reader) for name in sorted(since))


def _is_field(tables: Tables, name: str) -> bool:
    return any(name in tables.classes[owner]["fields"] for owner in _core_classes(tables))


def _gone(
    name: str, since: Mapping[str, Release], tables: Tables, by_reader: Mapping[str, Mapping[Release, set[str]]]
) -> Gone:
    reader, first = next(iter(since.items()))
    last = max(release for release in KNOWN if release < first)
    new = by_reader[reader][first] - by_reader[reader][last]
    near = difflib.get_close_matches(name, sorted(new), n=1, cutoff=_NEAR)
    return Gone(_setting(name, last, first, tables), since, next(iter(near), ""))


def _setting(name: str, last: Release, first: Release, tables: Tables) -> Setting:
    """Return a setting of this name as the last release that has it accepts it."""
    owner, entry = next(_fields(tables, name, last), (ARGUMENTS, None))
    flags = {flag: one for flag, one in tables.flags(last).items() if one.dest == name}
    off = next((flag for flag, one in flags.items() if one.action == "StoreFalse"), "")
    flag = next((flag for flag, one in flags.items() if one.action != "StoreFalse"), "")
    kind = _kind(entry or next(iter(flags.values())))
    remains = {one for release in KNOWN if release > last for one in tables.flags(release)}
    flag, off = ("" if one in remains else one for one in (flag, off))
    summary = f"No release since megatron-core {max(last, KNOWN[0])} has it"
    return Setting(
        name, kind, owner, flag, summary, off, until=last, deprecated_in=first, sources=("rules/releases.json",)
    )


def _kind(entry: Accepted) -> SettingKind:
    if entry.action in _SWITCHES:
        return SettingKind.FLAG
    if entry.nargs is not None:
        return SettingKind.LIST
    return _KINDS.get(entry.type.removesuffix(" | None").removeprefix("Optional[").rstrip("]"), SettingKind.TEXT)


# --- what each reader has -------------------------------------------------------------------------


def _fields(tables: Tables, name: str, release: Release) -> Iterator[tuple[str, Accepted]]:
    for owner in _core_classes(tables):
        entry = tables.field(owner, name, release)
        if entry is not None:
            yield owner, entry


def _core_classes(tables: Tables) -> list[str]:
    return [name for name in tables.classes if "." not in name]


def _fields_of(tables: Tables, owners: Iterable[str], release: Release) -> set[str]:
    return {name for owner in owners for name in tables.fields(owner, release)}


def _of_arguments(tables: Tables, release: Release) -> set[str]:
    return {entry.dest for entry in tables.flags(release).values()}


def _of_configurations(tables: Tables, release: Release) -> set[str]:
    """Return what YAML for megatron-core may name: fields, and attributes of arguments."""
    return _fields_of(tables, _core_classes(tables), release) | _of_arguments(tables, release)


_READERS = {"config": _of_configurations, "command-line": _of_arguments}
"""What Megatron-Bridge has of its own is not there: names such as `generation_config` have other owners as well."""

"""Names that a release of megatron-core no longer has, from the tables of all releases."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.setting import Setting, SettingKind
from cgmigrate.megatron.tables import SWITCHES, Accepted, Tables, load

ARGUMENTS = "training.Arguments"
"""The owner of names that only the arguments of Megatron-LM have."""
_KINDS = {"bool": SettingKind.FLAG, "int": SettingKind.NUMBER, "float": SettingKind.NUMBER}
_NEAR = 0.8
"""How similar a new name has to be, as difflib counts, to be worth naming."""


@dataclass(frozen=True, slots=True)
class GoneSetting:
    """A name that releases had, and the newest one has not.

    ``since`` maps a reader (``config``, ``command-line``, ``bridge``) to the first release in which it has no such
    name; a reader that still has it, or never had it, is not there. ``nearest`` is a similar name that came with that
    release, empty if there is none.
    """

    setting: Setting
    since: Mapping[str, Release]
    nearest: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What one release has: the fields of megatron-core's classes, each with its class, flags, and attributes."""

    fields: Mapping[str, tuple[str, Accepted]]
    flags: Mapping[str, Accepted]
    attributes: frozenset[str]

    @classmethod
    def of(cls, tables: Tables, release: Release) -> _Known:
        """Return what a release has."""
        fields: dict[str, tuple[str, Accepted]] = {}
        for owner in tables.classes:
            for name, entry in tables.fields(owner, release).items() if "." not in owner else ():
                fields.setdefault(name, (owner, entry))
        return cls(fields, tables.flags(release), tables.attributes(release))

    @property
    def by_reader(self) -> Mapping[str, frozenset[str]]:
        """The names that a reader knows; YAML for megatron-core may have fields, and attributes of arguments.

        What Megatron-Bridge has of its own is not there: names such as `generation_config` have other owners as well.
        """
        return {"config": self.attributes | self.fields.keys(), "command-line": self.attributes}


@cache
def gone_names() -> tuple[GoneSetting, ...]:
    """Return all names that are gone, in order."""
    tables = load()
    known = {release: _Known.of(tables, release) for release in KNOWN}
    since: dict[str, dict[str, Release]] = {}
    for old, new in itertools.pairwise(KNOWN):
        later = [known[release].by_reader for release in KNOWN if release > old]
        for reader, names in known[old].by_reader.items():
            for name in names.difference(*(one[reader] for one in later)):
                if "_" in name.strip("_"):
                    since.setdefault(name, {})[reader] = new
    for name, readers in since.items():
        # Megatron-Bridge inherits the fields of megatron-core.
        if "config" in readers and any(name in one.fields for one in known.values()):
            readers["bridge"] = readers["config"]
    gone = [_gone(name, since[name], known) for name in sorted(since)]
    return (*gone, *_other_flags({one.setting.flag for one in gone}, known))


def _other_flags(named: Container[str], known: Mapping[Release, _Known]) -> Iterator[GoneSetting]:
    """Yield the flags that are gone and are not named after a setting that is: those that turn one off, and aliases."""
    every = sorted({flag for one in known.values() for flag in one.flags})
    for flag in every:
        releases = [release for release in KNOWN if flag in known[release].flags]
        name, last = flag.removeprefix("--").replace("-", "_"), releases[-1]
        if last == KNOWN[-1] or flag in named or "_" not in name:
            continue
        first, entry = KNOWN[KNOWN.index(last) + 1], known[last].flags[flag]
        summary = f"The last release that has the flag is megatron-core {last}"
        setting = Setting(
            name, _kind(entry), ARGUMENTS, flag, summary,
            until=last, deprecated_in=first, sources=("rules/releases.json",),
        )  # fmt: skip
        yield GoneSetting(setting, {"command-line": first}, "")


@cache
def gone_fields() -> Mapping[tuple[str, str], Release]:
    """Return the first release whose class has a field no longer, by class and field.

    Fields that are gone with their name are not there; see `gone_names`.
    """
    tables, names = load(), {one.setting.name for one in gone_names()}
    since: dict[tuple[str, str], Release] = {}
    for owner in tables.classes:
        fields = {release: one for release in KNOWN if (one := tables.fields(owner, release))}
        for old, new in itertools.pairwise(fields):
            lost = fields[old].keys() - names - set().union(*(fields[one] for one in fields if one >= new))
            since |= dict.fromkeys(((owner, name) for name in lost), new)
    return since


def _gone(name: str, since: Mapping[str, Release], known: Mapping[Release, _Known]) -> GoneSetting:
    reader, first = next(iter(since.items()))
    last = max(release for release in KNOWN if release < first)
    new = known[first].by_reader[reader] - known[last].by_reader[reader]
    near = difflib.get_close_matches(name, sorted(new), n=1, cutoff=_NEAR)
    remaining = {flag for release in KNOWN if release > last for flag in known[release].flags}
    return GoneSetting(_setting(name, (last, first), known[last], remaining), since, next(iter(near), ""))


def _setting(name: str, releases: tuple[Release, Release], known: _Known, remaining: Container[str]) -> Setting:
    """Return a setting of this name as the last release that has it accepts it; ``remaining`` are flags that stay.

    ``releases`` are that release and the next one.
    """
    owner, entry = known.fields.get(name, (ARGUMENTS, None))
    flags = {flag: one for flag, one in known.flags.items() if one.dest == name}
    off = next((flag for flag, one in flags.items() if one.action == "StoreFalse"), "")
    flag = next((flag for flag, one in flags.items() if one.action != "StoreFalse"), "")
    kind = _kind(entry or next(iter(flags.values())))
    flag, off = ("" if one in remaining else one for one in (flag, off))
    last, first = releases
    summary = f"The last release that has it is megatron-core {last}"
    return Setting(
        name, kind, owner, flag, summary, off, until=last, deprecated_in=first, sources=("rules/releases.json",)
    )


def _kind(entry: Accepted) -> SettingKind:
    if entry.action in SWITCHES:
        return SettingKind.FLAG
    if entry.nargs is not None:
        return SettingKind.LIST
    return _KINDS.get(entry.type.removesuffix(" | None").removeprefix("Optional[").rstrip("]"), SettingKind.TEXT)

"""The catalogue: every setting that rules and documents may name, as data.

One file a setting, ``rules/settings/<name>.yaml``; the name of the file is the name of the setting, so that discovery
needs no more than the names in the folder. A file in ``rules/settings/surroundings`` is a setting that is only read
beside others: it selects no file. A team's folder of rules may have a ``settings`` folder of the same form.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from cgmigrate.megatron.releases import OLDEST, SPLIT_IN, Release
from cgmigrate.megatron.rule_data import RuleError, is_of_upgrade, load_yaml, proof_of, rules_folder, text_of
from cgmigrate.megatron.setting import ABSENT, Setting, SettingKind, flag_of
from cgmigrate.megatron.setting_names import CLASSES, CORE_OF_CLASSES, SETTINGS, SURROUNDINGS, cores, with_hyphens
from cgmigrate.megatron.settings import FIELDS

__all__ = ["ABSENT", "FLAG_BEGINS", "Catalogue", "Setting", "SettingKind", "flag_of", "load"]


FLAG_BEGINS = r"(?:(?<![\w-])|(?<=\\[nrt]))"
"""A pattern of where a flag begins: behind no other word, or behind a line break or tab as a string has it."""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """All settings, by name: those of the capture model first, in the order in which messages name them."""

    settings: Mapping[str, Setting]
    reads_code: bool = False
    """Whether imports and calls of Megatron-LM are compared with its releases."""

    def __getitem__(self, name: str) -> Setting:
        return self.settings[name]

    def __contains__(self, name: object) -> bool:
        return name in self.settings

    def get(self, name: str) -> Setting | None:
        """Return a setting by its name, None if the catalogue has none of this name."""
        return self.settings.get(name)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The settings that sites are made of: all but those that are only read beside others."""
        return tuple(name for name, setting in self.settings.items() if setting.subject or self.older_names(name))

    @cached_property
    def name_set(self) -> frozenset[str]:
        """The `names`, for tests of membership."""
        return frozenset(self.names)

    @cached_property
    def deprecated(self) -> frozenset[str]:
        """The names of deprecated settings."""
        return frozenset(name for name in self.names if self.settings[name].deprecated)

    def deprecated_at(self, release: Release) -> frozenset[str]:
        """Return the names of the settings that a release of megatron-core deprecates, and those of other packages."""
        return frozenset(
            name
            for name in self.deprecated
            if (one := self.settings[name]).is_of_other_package or (one.deprecated_in or OLDEST) <= release
        )

    def has_newer(self, text: str, release: Release) -> bool:
        """Return whether a text has the name of a setting that a release does not have yet."""
        return any(one.since > release and name in text for name, one in self.settings.items())

    @cached_property
    def captures(self) -> frozenset[str]:
        """The names of the settings on which the capture model depends."""
        return frozenset(name for name, setting in self.settings.items() if setting.captures)

    @cached_property
    def flags(self) -> Mapping[str, str]:
        """Name → its flag on a command line, for the settings that have one."""
        return {name: flag for name in self.names if (flag := self.settings[name].flag)}

    @cached_property
    def by_key(self) -> Mapping[str, str]:
        """Key → setting, for the name of each setting and for its flag."""
        return {name: name for name in self.names} | {flag: name for name, flag in self.flags.items()}

    @cached_property
    def in_sections(self) -> Mapping[str, Mapping[str, str]]:
        """Section → key → name, for the settings that move from one section to another."""
        result: dict[str, dict[str, str]] = {}
        for name in self.names:
            section, dot, key = name.rpartition(".")
            if dot:
                result.setdefault(section, {})[key] = name
        return result

    @cached_property
    def cores(self) -> tuple[str, ...]:
        """Few texts of which every name, flag and class of megatron-core that holds values contains one."""
        return (*with_hyphens(cores(self.names)), CORE_OF_CLASSES)

    @cached_property
    def longest_name(self) -> int:
        """The length of the longest name, flag or class of values."""
        return max(map(len, (*self.by_key, *CLASSES)))

    def is_in(self, text: str) -> bool:
        """Return whether a text seems to be about a setting: it contains a core."""
        return any(core in text for core in self.cores)

    @cached_property
    def newer_names(self) -> frozenset[str]:
        """Names that only newer releases have: code that writes them beside older ones is for several releases."""
        return frozenset(
            name for name in self.new_names if not self.settings[name].captures or self.settings[name].since >= SPLIT_IN
        )

    def alternatives(self, *, deprecated: bool = False, flags: bool = False) -> str:
        """Return a regular expression of the names, or of those that are deprecated; or of their flags."""
        names = [name for name in self.names if not deprecated or self.settings[name].deprecated]
        words = [self.flags[name] for name in names if name in self.flags] if flags else list(names)
        return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))

    @cached_property
    def new_names(self) -> tuple[str, ...]:
        """The settings that replace others; one with fewer places to be written at comes first."""
        new = dict.fromkeys(name for setting in self.settings.values() for name in setting.replaced_by)
        return tuple(sorted(new, key=lambda name: len(self.lines_for(name))))

    def older_names(self, name: str) -> tuple[str, ...]:
        """Return the settings that a setting replaces."""
        return tuple(old.name for old in self.settings.values() if name in old.replaced_by)

    def all_older_names(self, name: str) -> tuple[str, ...]:
        """Return the settings that a setting replaces, and those that these replaced, nearest first."""
        names = list(self.older_names(name))
        for old in names:
            names += (older for older in self.older_names(old) if older not in names)
        return tuple(names)

    def lines_for(self, name: str) -> tuple[str, ...]:
        """Return the settings whose line a new one may take, best first."""
        others = tuple(old.name for old in self.settings.values() if name in old.line_for)
        return (*self.all_older_names(name), *others)


def load(folders: Sequence[str] = ()) -> Catalogue:
    """Return the catalogue that ships, with the settings of a team's own folders of rules. Raises RuleError."""
    return _load_with(tuple(folders), tuple(map(_state, folders))) if folders else _load()


_FileState: TypeAlias = "tuple[str, int, int, int]"
"""The name of a file, its inode, size in bytes, and time of its last change in nanoseconds."""


def _state(folder: str) -> tuple[str, tuple[_FileState, ...]]:
    """Return the absolute path of a folder of rules, and what shows that its settings are those that were read."""
    path = os.path.abspath(folder)
    states = ((file, os.stat(file)) for file in (str(file) for file, _ in _files(Path(path))))
    return path, tuple((file, state.st_ino, state.st_size, state.st_mtime_ns) for file, state in states)


@cache
def _load() -> Catalogue:
    return _read_all(())


@lru_cache(maxsize=16)
def _load_with(folders: tuple[str, ...], states: tuple[object, ...]) -> Catalogue:  # noqa: ARG001
    """Read the settings that ship, and those of folders; ``states`` says that they are as when they were read."""
    return _read_all(folders)


def _read_all(folders: tuple[str, ...]) -> Catalogue:
    settings: dict[str, Setting] = {}
    names: list[str] = []
    for folder in (rules_folder(), *map(Path, folders)):
        own = folder != rules_folder() and not is_of_upgrade(folder)
        for path, subject in _files(folder):
            if is_of_upgrade(folder) and path.stem in settings and settings[path.stem].subject:
                # A team has an entry of its own for it.
                continue
            setting = _read(path, subject=subject, own=own)
            if setting.name in settings and (settings[setting.name].subject or not subject):
                raise RuleError(f"{path}: {setting.name} is already defined in {settings[setting.name].path}")
            settings[setting.name] = setting
            names += [setting.name] if own else []
    of_upgrade = any(map(is_of_upgrade, folders))
    if of_upgrade:
        from cgmigrate.megatron.gone import gone_names

        for gone in gone_names():
            settings.setdefault(gone.setting.name, gone.setting)
        from cgmigrate.megatron import hybrid_models

        settings |= {one.name: one for one in hybrid_models.settings()}
    for setting in list(settings.values()):
        for name in setting.replaced_by:
            settings.setdefault(name, _replacement(name, setting))
    if names:
        from cgmigrate.megatron.entry_checks import check_together

        check_together(settings, names)
    ordered = sorted(settings, key=lambda name: _order(settings[name]))
    return Catalogue({name: settings[name] for name in ordered}, of_upgrade)


def _order(setting: Setting) -> tuple[int, str]:
    return (FIELDS.index(setting.name) if setting.captures else len(FIELDS), setting.name)


def _files(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files of entries in a folder of rules, each with whether it is a subject."""
    for name, subject in ((SETTINGS, True), (SURROUNDINGS, False)):
        yield from ((path, subject) for path in sorted((folder / name).glob("*.y*ml")))


def _replacement(name: str, old: Setting) -> Setting:
    """Return a setting that has no file of its own, but replaces one that has."""
    new = {type(value) for _, value in old.values if value is not None and value != ABSENT}
    kinds = {bool: SettingKind.FLAG, int: SettingKind.NUMBER, float: SettingKind.NUMBER, list: SettingKind.LIST}
    kind = kinds.get(new.pop(), SettingKind.TEXT) if len(new) == 1 else old.kind
    since = old.deprecated_in or OLDEST
    flag = "" if "." in name else flag_of(name)
    return Setting(name, kind, old.owner, flag, since=since, subject=False, path=old.path)


def _read(path: Path, *, subject: bool, own: bool) -> Setting:
    """Read one entry; a team's own is compared with the schema. Raises RuleError."""
    from cgmigrate.megatron.data_schema import SETTING, check_form, check_size
    from cgmigrate.megatron.entry_checks import EntryFile

    if path.suffix == ".yml":
        raise RuleError(f"{path}: the name of a file of settings ends in .yaml")
    text = text_of(path)
    if own:
        check_size(text, str(path))
    data = load_yaml(text, str(path))
    if own:
        check_form(data, SETTING, text, str(path))
        EntryFile(path, data, text).check()
    return _setting(path, data, subject)


def _setting(path: Path, data: Mapping[str, Any], subject: bool) -> Setting:
    graph = data.get("graph", {})
    return Setting(
        name=path.stem,
        kind=SettingKind(data["kind"]),
        owner=data["owner"],
        flag=data.get("flag", "" if "." in path.stem else flag_of(path.stem)) or "",
        summary=data["summary"],
        no_flag=data.get("no-flag", ""),
        any_key=data.get("any-key", False),
        keys={ecosystem: tuple(keys) for ecosystem, keys in data.get("keys", {}).items()},
        variables=tuple(data.get("variables", ())),
        choices=tuple(data.get("choices", ())),
        default=data.get("default"),
        unset=data.get("unset", data.get("default")),
        can_unset="unset" in data or "default" in data,
        since=_release(data.get("since")) or OLDEST,
        until=_release(data.get("until")),
        fork=data.get("fork", ""),
        deprecated_in=_release(data.get("deprecated-in")),
        replaced_by=_names(data.get("replaced-by", ())),
        line_for=_names(data.get("line-for", ())),
        values=tuple((pair["old"], pair["new"]) for pair in data.get("values", ())),
        captures=data.get("captures", False),
        graph_of=graph.get("of", ""),
        graph_fails_in=tuple(release for text in graph.get("fails-in", ()) if (release := _release(text))),
        sources=tuple(data["sources"]),
        rule=data.get("rule", ""),
        proved_by=data.get("proved-by") or proof_of(path, path.stem),
        unsafe=data.get("unsafe", ""),
        explanation=data.get("explanation", ""),
        subject=subject,
        path=str(path),
    )


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _release(text: str | None) -> Release | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    return Release(int(major), int(minor))

"""Checks of a team's entries of the catalogue beyond their form: each mistake is one sentence with file and line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgmigrate.megatron.data_schema import line_of
from cgmigrate.megatron.gone import ARGUMENTS
from cgmigrate.megatron.releases import KNOWN, UPSTREAM, Release
from cgmigrate.megatron.rule_data import RuleError, rules_folder, text_of
from cgmigrate.megatron.setting import ABSENT, Setting, SettingKind, flag_of
from cgmigrate.megatron.tables import load, release_of

_Key = str | int
_Mistake = tuple[tuple[_Key, ...], str]
"""The keys that lead to a value of the file, and what is wrong with it."""

_VALUES = {
    SettingKind.FLAG: "true, false or null",
    SettingKind.NUMBER: "a number or null",
    SettingKind.PATTERN: "a number, a list of numbers or null",
    SettingKind.LIST: "an item of the list, or a list",
}


@dataclass(frozen=True, slots=True)
class EntryFile:
    """A file of a team's own folder of settings, and what it says."""

    path: Path
    data: Mapping[str, Any]
    text: str

    def check(self) -> None:
        """Raise RuleError for the first mistake of the entry alone."""
        _raise_first(self.path, self.text, self._mistakes())

    def _mistakes(self) -> Iterator[_Mistake]:
        data = self.data
        section, dot, key = self.path.stem.rpartition(".")
        if not all(part.isidentifier() and part.isascii() for part in ((section, key) if dot else (key,))):
            yield (), "the name of the file is the name of the setting, such as moe_deepep_num_sms.yaml"
        if "captures" in data:
            yield ("captures",), "cgmigrate's capture model knows its own settings only; delete `captures`"
        if self.path.stem in _names(data.get("replaced-by", ())):
            yield ("replaced-by",), "a setting cannot replace itself; a rule with `when` and `set` changes its values"
        if "no-flag" in data and "replaced-by" in data:
            reason = (
                "is not rewritten with the setting: write an entry for it as a setting of its own, and delete this line"
            )
            yield ("no-flag",), f"{data['no-flag']} {reason}"
        yield from self._releases()
        yield from self._ecosystems()
        yield from _mistakes_of_values(data)

    def _releases(self) -> Iterator[_Mistake]:
        data = self.data
        releases = {key: release_of(data[key]) for key in ("since", "deprecated-in", "until") if key in data}
        for key, release in releases.items():
            if release > UPSTREAM:
                yield (key,), f"{key}: {release} is not known yet; the newest release is {UPSTREAM}"
        for first, last in (("since", "deprecated-in"), ("since", "until")):
            if first in releases and last in releases and releases[last] < releases[first]:
                yield (last,), f"{last}: {releases[last]} is before `{first}` ({releases[first]})"

    def _ecosystems(self) -> Iterator[_Mistake]:
        known = [path.stem for path in (rules_folder() / "ecosystems").glob("*.yaml")]
        for name in self.data.get("keys", {}):
            if name not in known:
                yield ("keys", name), f"keys: {name} is not an ecosystem{_nearest(name, known)}"


def _mistakes_of_values(data: Mapping[str, Any]) -> Iterator[_Mistake]:
    kind, choices, seen = SettingKind(data["kind"]), data.get("choices"), list[tuple[type, object]]()
    for number, pair in enumerate(data.get("values", ())):
        old, place = pair["old"], ("values", number, "old")
        if (type(old), old) in seen:
            yield place, f"values: {_shown(old)} is listed twice"
        seen.append((type(old), old))
        if not _fits(kind, old):
            yield place, f"values: {_shown(old)} is not a value of a {kind}; write {_VALUES[kind]}"
        if choices and isinstance(old, str) and old not in choices:
            yield place, f"values: {old} is not one of the `choices` ({', '.join(choices)})"
    default = data.get("default")
    if default is not None and not _fits(kind, default):
        yield ("default",), f"default: {_shown(default)} is not a value of a {kind}; write {_VALUES[kind]}"


def _fits(kind: SettingKind, value: object) -> bool:
    match kind:
        case SettingKind.FLAG:
            return value is None or isinstance(value, bool)
        case SettingKind.NUMBER:
            return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
        case SettingKind.PATTERN:
            items = value if isinstance(value, list) else [value]
            return all(_fits(SettingKind.NUMBER, item) for item in items)
        case _:
            return True


def check_together(settings: Mapping[str, Setting], own: Iterable[str]) -> None:
    """Raise RuleError for the first mistake that a team's ``own`` entries show only beside others, or beside tables."""
    for name in own:
        path = Path(settings[name].path)
        _raise_first(path, text_of(path), _mistakes_together(settings[name], settings))


def _mistakes_together(old: Setting, settings: Mapping[str, Setting]) -> Iterator[_Mistake]:
    if old.name in _replacements(old, settings):
        yield ("replaced-by",), "the settings replace each other in a circle"
    if "." not in old.owner and old.owner not in load().classes:
        same = [name for name in load().classes if name.rpartition(".")[2] == old.owner]
        nearest = f"; write {' or '.join(same)}" if same else _nearest(old.owner, load().classes)
        reason = "is no class of megatron-core; a class of your own is written with its package"
        yield ("owner",), f"owner: {old.owner} {reason}{nearest}"
    yield from _mistakes_of_releases(old)
    for name in old.replaced_by:
        yield from _mistakes_of_new(old, settings[name])
    if old.rule and old.until and old.deprecated_in and old.until.minor != old.deprecated_in.minor - 1:
        reason = "is not the release before `deprecated-in`; a name that is deprecated first and goes later has none"
        yield ("until",), f"until: {old.until} {reason}"
    yield from _mistakes_of_flag(old, settings)


def _mistakes_of_releases(setting: Setting) -> Iterator[_Mistake]:
    """Yield what the tables contradict: the first and the last release that have the name."""
    names_in = {release: _known_names(setting.owner, release, setting.section) for release in KNOWN}
    known = {release: names for release, names in names_in.items() if names}
    having = [release for release, names in known.items() if setting.name in names]
    first = min(known, default=setting.since)
    if not having:
        # Before the first release whose class is known it may have been there; the next release may have it.
        claimed = setting.until is None or setting.until >= first
        if known and claimed and setting.since <= KNOWN[-1] and not setting.fork:
            nearest = _nearest(setting.name, frozenset().union(*known.values())) or "."
            reason = f"{setting.owner} has no {setting.name} in any release{nearest}"
            yield ("owner",), f"owner: {reason} If a fork of Megatron has it, write its name as `fork`"
        return
    has = f"{setting.owner} has {setting.name}"
    # Before the first release whose class is known it may have been there as well.
    if setting.since != having[0] and not setting.since < having[0] == first:
        yield ("since",), f"since: {has} since {having[0]}, not {setting.since}"
    last = having[-1] if having[-1] < KNOWN[-1] else None
    if setting.until not in (None, last):
        until = f"until {last}" if last else "in every release since then"
        yield ("until",), f"until: {has} {until}, not until {setting.until}"
    if last is None:
        return
    gone = KNOWN[KNOWN.index(last) + 1]
    if setting.deprecated_in is not None and setting.deprecated_in > gone:
        yield ("deprecated-in",), f"deprecated-in: {has} until {last}, so {gone} is the first without it"
    if setting.until is None and setting.deprecated_in in (None, gone):
        yield ("until",), f'until: {has} until {last}; write `until: "{last}"`'


def _mistakes_of_flag(old: Setting, settings: Mapping[str, Setting]) -> Iterator[_Mistake]:
    """Yield what the parsers contradict: a flag that turns the setting off, and one that stays as it is."""
    release = old.deprecated_in
    if not old.flag or release is None:
        return
    flags = {flag: entry for known in KNOWN for flag, entry in load().flags(known).items()}
    entry = flags.get(old.flag)
    if entry is not None and entry.action == "StoreFalse":
        yield ("flag",), f"flag: {old.flag} sets {old.name} to false; write an entry of its own for it"
    # An entry of its own says that a fork has it.
    new = {flag_of(name) for name in old.replaced_by if settings[name].path == old.path}
    if entry is not None and old.flag in load().flags(min(release, KNOWN[-1])) and new and new.isdisjoint(flags):
        kept = f"no release has {min(new)}, and megatron-core {release} still has {old.flag}; write `flag: false`"
        yield ("flag",), f"flag: {kept}"


def _known_names(owner: str, release: Release, section: str = "") -> frozenset[str]:
    """Return the fields of a class in a release, or the attributes that Megatron-LM's arguments have.

    With a section, they are those of the class that has this name in the owner.
    """
    if section:
        fields = load().fields(load().class_of(owner, section, release), release)
        return frozenset(f"{section}.{name}" for name in fields)
    return load().attributes(release) if owner == ARGUMENTS else frozenset(load().fields(owner, release))


_OF_TYPES: Mapping[str, tuple[type, ...]] = {"bool": (bool,), "int": (int,), "float": (int, float)}
"""The types of values that a field takes, by its annotation."""


def _mistakes_of_new(old: Setting, new: Setting) -> Iterator[_Mistake]:
    first = next((release for release in KNOWN if new.name in _known_names(new.owner, release, new.section)), None)
    if first and old.deprecated_in and old.deprecated_in < first:
        yield ("deprecated-in",), f"deprecated-in: {new.name} is there since {first}, not {old.deprecated_in}"
    types = {entry.type for release in KNOWN if (entry := load().field(old.owner, new.name, release))}
    is_flag = old.kind is SettingKind.FLAG
    if types and types <= {"bool", "int", "float"} and is_flag is not (types == {"bool"}) and not old.values:
        yield ("kind",), f"kind: {new.name} of {old.owner} is a {min(types)}, which is no {old.kind}"
    own_file = new.path != old.path
    of_old, of_new = (
        {name for release in KNOWN for name in _known_names(old.owner, release, section)} if not own_file else set()
        for section in (old.section, new.section)
    )
    if old.name in of_old and new.name not in of_new:
        yield ("replaced-by",), f"replaced-by: {old.owner} has no {new.name} in any release{_nearest(new.name, of_new)}"
    plain = {one.removeprefix("Optional[").removesuffix("]").removesuffix(" | None") for one in types}
    fitting = {kind for one in plain for kind in _OF_TYPES[one]} if plain and plain <= _OF_TYPES.keys() else set()
    for number, (_, value) in enumerate(old.values if len(old.replaced_by) == 1 else ()):
        place = ("values", number, "new")
        if value == ABSENT:
            continue
        if fitting and type(value) not in fitting:
            yield place, f"values: {_shown(value)} is not a value of {new.name}, which is a {min(plain)}"
        if not own_file:
            continue
        if not _fits(new.kind, value):
            yield place, f"values: {_shown(value)} is not a value of {new.name}, which is a {new.kind}"
        if new.choices and isinstance(value, str) and value not in new.choices:
            yield place, f"values: {value} is not one of the choices of {new.name} ({', '.join(new.choices)})"


def _replacements(old: Setting, settings: Mapping[str, Setting]) -> list[str]:
    """Return the settings that replace a setting, and those that replace these."""
    names = list(old.replaced_by)
    for name in names:
        names += (new for new in settings[name].replaced_by if new not in names)
    return names


def _raise_first(path: Path, text: str, mistakes: Iterable[_Mistake]) -> None:
    for place, reason in mistakes:
        line = f":{line_of(text, place)}" if place else ""
        raise RuleError(f"{path}{line}: {reason}")


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _names(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _shown(value: object) -> str:
    """Return a value as YAML writes it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)

"""How a package makes megatron-core's settings of its own configuration, by its releases.

Code such as NeMo-RL's ``setup.py`` copies some keys to the fields of the model, renames or derives others, sets a few
itself, and ignores the rest. This is data (``translation`` of ``rules/ecosystems``). This module evaluates it: which
value does a field get from a configuration?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Missing, Undecided

ValueAt: TypeAlias = Callable[[str], object]
"""Returns the value at a path (dotted keys from the top of the configuration): plain, ``Undecided`` or ``Missing``."""
IsUpTo: TypeAlias = Callable[[Release], bool]
"""Whether the release of the package is known to be no newer than one. One that is not known is the newest."""


@dataclass(frozen=True, slots=True)
class FieldSource:
    """One way in which a field gets its value: from a key, or a value that the code sets.

    It holds for the releases from ``since`` to ``until``, and if each key of ``when`` has one of its values.
    """

    since: Release | None = None
    until: Release | None = None
    when: Mapping[str, Sequence[object]] = field(default_factory=dict)
    key: str = ""
    """The path of the key; empty for a value that the code sets."""
    value: object = Missing.ABSENT
    """The value that the code sets; with a key, the one if the key is not written."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> FieldSource:
        """Return it from an entry of the data."""
        when = {path: value if isinstance(value, list) else [value] for path, value in data.get("when", {}).items()}
        value = data["value"] if "value" in data else data.get("default", Missing.ABSENT)
        return cls(release_of(data.get("since")), release_of(data.get("until")), when, data.get("key", ""), value)

    def is_of(self, is_up_to: IsUpTo) -> bool:
        """Return whether the release of the package has it."""
        if self.since is not None and is_up_to(Release(self.since.major, self.since.minor - 1)):
            return False
        return self.until is None or is_up_to(self.until)

    def holds(self, value_at: ValueAt) -> bool | None:
        """Return whether its condition is met, None if that is not known."""
        known: bool | None = True
        for path, expected in self.when.items():
            value = value_at(path)
            if value is Missing.UNKNOWN or isinstance(value, Undecided):
                known = None
            # True is not 1.
            elif not any(type(value) is type(one) and value == one for one in expected):
                return False
        return known

    def read(self, value_at: ValueAt) -> object:
        """Return the value that the field gets, ``Missing.ABSENT`` if it keeps the one that it has."""
        value = value_at(self.key) if self.key else Missing.ABSENT
        return self.value if value is Missing.ABSENT else value

    def shown_key(self, value_at: ValueAt) -> str:
        """Return the key that decides about the field, empty if none does."""
        if self.key and (not self.when or value_at(self.key) is not Missing.ABSENT):
            return self.key
        return next(iter(self.when), self.key)


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one package."""

    settings: Mapping[str, Sequence[FieldSource]]
    """Setting → where it gets its value from; the first that holds decides."""
    sections: Mapping[str, Sequence[FieldSource]]
    """Class → the sections in which a configuration may set any of its fields by their names."""
    of_model: frozenset[str]
    """Settings that come with the model, and are not in the configuration unless one of these sections has them."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Translation:
        """Return it from the data of an ecosystem."""
        settings, sections = (
            {name: tuple(map(FieldSource.of, entries)) for name, entries in data.get(part, {}).items()}
            for part in ("settings", "sections")
        )
        return cls(settings, sections, frozenset(data.get("of-model", ())))

    def concerns(self, name: str, owner: str) -> bool:
        """Return whether the package decides about a setting of a class."""
        return name in self.settings or owner in self.sections

    def value(self, name: str, owner: str, value_at: ValueAt, is_up_to: IsUpTo) -> object:
        """Return the value that a setting gets: plain, ``Undecided`` or ``Missing``."""
        for source in self._sources(name, owner, is_up_to):
            holds = source.holds(value_at)
            if holds is None:
                return Missing.UNKNOWN
            if holds and (value := source.read(value_at)) is not Missing.ABSENT:
                return value
        return Missing.UNKNOWN if name in self.of_model else Missing.ABSENT

    def key(self, name: str, owner: str, value_at: ValueAt, is_up_to: IsUpTo) -> str:
        """Return the key that decides about a setting, or that may, empty if there is none."""
        sources = self._sources(name, owner, is_up_to)
        deciding = (one for one in sources if one.holds(value_at) and one.read(value_at) is not Missing.ABSENT)
        return next(
            filter(None, (one.shown_key(value_at) for one in deciding)),
            next((one.key for one in sources if one.key), ""),
        )

    def reads(self, name: str, path: str, is_up_to: IsUpTo) -> bool:
        """Return whether the value of a setting can come from a key, in this release of the package."""
        return any(one.key == path for one in self.settings.get(name, ()) if one.is_of(is_up_to))

    def _sources(self, name: str, owner: str, is_up_to: IsUpTo) -> list[FieldSource]:
        own = [one for one in self.settings.get(name, ()) if one.is_of(is_up_to)]
        sections = (one for one in self.sections.get(owner, ()) if one.is_of(is_up_to))
        return [*own, *(FieldSource(key=f"{one.key}.{name}") for one in sections)]


def release_of(text: str | None) -> Release | None:
    """Return the release of a text, None for none."""
    return Release(*map(int, text.split("."))) if text else None

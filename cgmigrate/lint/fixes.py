"""Fixes of rules: the settings to have instead, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cgmigrate.megatron.catalogue import ABSENT
from cgmigrate.megatron.settings import Undecided, without_name


@dataclass(frozen=True, slots=True)
class RuleRename:
    """A setting that takes the place of another, and its value for each value of the old one.

    Without ``values`` the value stays. Values of a list are those of its items, unless they name the whole list.
    """

    to: str
    values: tuple[tuple[object, object], ...] = ()

    def value(self, old: object) -> object:
        """Return the value for one of the old setting, ``ABSENT`` if it is not written. Raises KeyError for none."""
        if not self.values:
            return old
        for value, new in self.values:
            # True is not 1.
            if type(value) is type(old) and value == old:
                return new
        if old and isinstance(old, (list, tuple)):
            return type(old)(new for item in old if (new := self.value(item)) != ABSENT)
        raise KeyError(old)


@dataclass(frozen=True, slots=True)
class RuleFix:
    """The settings to have instead. ``unsafe`` says what may change, empty if nothing does."""

    set: Mapping[str, object] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    rename: Mapping[str, RuleRename] = field(default_factory=dict)
    drop: Mapping[str, str] = field(default_factory=dict)
    unsafe: str = ""
    proved_by: str = ""
    """The source that shows that the target reads the new settings as the source reads the old ones."""
    keeps_default: bool = False
    """Whether it writes the default of before, and nothing else."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> RuleFix:
        """Return the fix that a rule file describes."""
        return cls(
            set=data.get("set", {}),
            remove=tuple(data.get("remove", ())),
            rename={old: _rename(new) for old, new in data.get("rename", {}).items()},
            drop=data.get("drop", {}),
            unsafe=data.get("unsafe", "").strip(),
            proved_by=data.get("proved-by", "").strip(),
            keeps_default=data.get("keeps-default", False),
        )

    @property
    def names(self) -> frozenset[str]:
        """The settings that the fix writes, changes or deletes."""
        renamed = (rename.to for rename in self.rename.values())
        return frozenset((*self.set, *self.remove, *self.rename, *renamed, *self.drop))

    def apply(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Return the settings after this fix. A name dropped from its list takes an empty list along.

        Raises KeyError for a value that has no replacement; see `unmapped`.
        """
        after = dict(settings)
        for name, value in self.drop.items():
            if name in after:
                left = without_name(after.pop(name), value)
                if left is not None:
                    after[name] = left
        for old, rename in self.rename.items():
            if old in after and (new := rename.value(after.pop(old))) != ABSENT:
                after[rename.to] = new
        for name in self.remove:
            after.pop(name, None)
        return after | dict(self.set)

    def unmapped(self, settings: Mapping[str, object]) -> str:
        """Return what to choose for a value that has no replacement; empty if every value has one."""
        for old, rename in self.rename.items():
            if old not in settings:
                continue
            try:
                rename.value(settings[old])
            except KeyError:
                return _choice(old, settings[old], rename)
        return ""


def _rename(data: str | Mapping[str, Any]) -> RuleRename:
    if isinstance(data, str):
        return RuleRename(data)
    values = data.get("values", {})
    return RuleRename(data["to"], tuple(values.items() if isinstance(values, Mapping) else values))


def _choice(old: str, value: object, rename: RuleRename) -> str:
    """Return which values the replacement may have, where that for the value of the old setting is not known."""
    new = list(dict.fromkeys(shown(value) for _, value in rename.values if value != ABSENT))
    choices = " or ".join([", ".join(new[:-1]), new[-1]] if len(new) > 1 else new)
    return (
        f"`{{{rename.to}}}` has no value that corresponds to {shown(value)}: choose {choices}, and delete `{{{old}}}`"
    )


def shown(value: object) -> str:
    """Return a value as YAML writes it."""
    match value:
        case None:
            return "null"
        case Undecided():
            return value.text
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(shown, value))}]"
    return str(value)

"""One setting, as its entry in the catalogue describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cgmigrate.megatron.releases import OLDEST, Release
from cgmigrate.text.words import WordEnum

ABSENT = "absent"
"""In a value map: the replacement is not written."""


class SettingKind(WordEnum):
    """What the value of a setting is."""

    FLAG = "flag"
    """A boolean, or a flag of a command line without a value."""
    CHOICE = "choice"
    """One of some words."""
    LIST = "list"
    """Names, in a list or in one text."""
    NUMBER = "number"
    PATTERN = "pattern"
    """A number, or a list with a number for each layer; a list expression on a command line."""
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    ``name`` is that of the field; behind the section, if the setting was moved from or to one (`train.eval_iters`).
    ``owner`` is the class that has the field. ``since`` and ``until`` are the first and the last release that have it,
    ``deprecated_in`` is the first that deprecates it. ``replaced_by`` are the settings that say the same today, and
    ``line_for`` others that are written in its line where it is deleted. ``values`` are its values, each with that of
    the replacement; empty where values stay as they are. ``unset`` is what is written to undo an inherited value, and
    ``can_unset`` says that there is one. ``captures`` says that the capture model depends on it.
    """

    name: str
    kind: SettingKind
    owner: str
    flag: str
    summary: str = ""
    no_flag: str = ""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    any_key: bool = False
    """Whether it is on where one of its keys turns it on, whatever the others say."""
    variables: tuple[str, ...] = ()
    """The variables of the environment that set it; it is then no field."""
    choices: tuple[str, ...] = ()
    default: object = None
    unset: object = None
    can_unset: bool = False
    since: Release = OLDEST
    until: Release | None = None
    fork: str = ""
    """The fork of Megatron that has it, where no release does."""
    deprecated_in: Release | None = None
    replaced_by: tuple[str, ...] = ()
    line_for: tuple[str, ...] = ()
    values: tuple[tuple[object, object], ...] = ()
    captures: bool = False
    graph_of: str = ""
    """What is captured in a graph of its own where the flag is on, whatever the capture model says."""
    graph_fails_in: tuple[Release, ...] = ()
    """The releases in which that capture fails."""
    sources: tuple[str, ...] = ()
    rule: str = ""
    """The code of the rule that the entry brings along, empty if there is none."""
    proved_by: str = ""
    """The source that shows that the replacement is read as the setting was, for that rule."""
    unsafe: str = ""
    """What may change, for that rule."""
    explanation: str = ""
    """What changed and why, for that rule."""
    subject: bool = True
    """Whether its name selects files, and makes a mapping, call or command line a site."""
    path: str = ""

    @property
    def deprecated(self) -> bool:
        """Whether a known release deprecates it."""
        return self.deprecated_in is not None

    @property
    def section(self) -> str:
        """The section of a configuration that it is in (`train` of `train.eval_iters`); empty if it may be in any."""
        return self.name.rpartition(".")[0]

    @property
    def key(self) -> str:
        """Its name in its section."""
        return self.name.rpartition(".")[2]

    def is_gone_in(self, release: Release) -> bool:
        """Whether a release no longer has it, which the ones before did not deprecate."""
        removed = self.deprecated_in if self.until is not None else None
        return removed is not None and self.until is not None and self.until < removed <= release

    @property
    def is_of_other_package(self) -> bool:
        """Whether its class is none of Megatron's, whose releases count."""
        return "." in self.owner and not self.owner.startswith(("training.", "bridge."))

    @property
    def is_flag(self) -> bool:
        """Whether it is a boolean, and a flag without a value on a command line."""
        return self.kind is SettingKind.FLAG


def flag_of(name: str) -> str:
    """Return the regular flag of a setting: its name with hyphens."""
    return "--" + name.replace("_", "-")

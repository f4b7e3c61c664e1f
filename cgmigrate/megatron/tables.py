"""What each release accepts: the fields of its configuration classes and the flags of its command line.

The tables are generated from the released wheels (``scripts/release_tables.py``) and kept in ``rules/releases.json``,
which is read when it is first needed. Each entry is kept once for all releases between which it is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.rule_data import rules_folder

Row = Mapping[str, Any]
SWITCHES = ("StoreTrue", "StoreFalse", "BooleanOptional")
"""Actions of flags without a value."""
History = Mapping[str, Row | None]
"""The first release (``0.18``) with which each form of an entry appears; None where the entry is gone."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One field or flag of one release.

    ``type`` is the annotation of a field, or the function that converts a flag's words. ``choices`` is empty where
    any value of the type will do. ``default`` is a value of JSON; ``expression`` is the source text of a default that
    is none (an enum's member, a factory), else empty. A field or flag that has to be given has neither.
    """

    type: str
    choices: tuple[object, ...]
    default: object
    expression: str
    required: bool
    init: bool
    dest: str
    action: str
    nargs: object

    @classmethod
    def of(cls, row: Row) -> Accepted:
        """Return the entry of a row of the tables."""
        default: Any = row.get("default")
        expression = row.get("expression", row.get("factory", ""))
        if isinstance(default, Mapping) and set(default) == {"expression"}:
            default, expression = None, str(default["expression"])
        known = {"default", "expression", "factory", "init"} & set(row)
        return cls(
            type=row.get("type", ""),
            choices=tuple(row.get("choices", ())),
            default=default,
            expression=expression,
            required=not known and "dest" not in row,
            init=row.get("init", True),
            dest=row.get("dest", ""),
            action=row.get("action", ""),
            nargs=row.get("nargs"),
        )


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of all releases; ``releases`` maps a release (``0.19``) to the one that was read (``0.19.2``)."""

    releases: Mapping[str, str]
    classes: Mapping[str, Mapping[str, Any]]
    flags_of: Mapping[str, History]
    flags_since: Release
    """The first release whose wheel has the command line; nothing is known of flags before."""

    def fields(self, owner: str, release: Release) -> dict[str, Accepted]:
        """Return the fields of a class in a release, those of its bases first; empty if there is no such class."""
        entry = self.classes.get(owner, {"bases": {}})
        bases = at(entry["bases"], release)
        if bases is None:
            return {}
        fields: dict[str, Accepted] = {}
        for base in reversed(bases["names"]):
            fields |= self.fields(base, release)
        return fields | dict(_rows(entry["fields"], release))

    def field(self, owner: str, name: str, release: Release) -> Accepted | None:
        """Return a field of a class in a release, None if the class has none of this name.

        ``train.eval_iters`` is a field of the class that the field ``train`` has.
        """
        section, _, key = name.rpartition(".")
        return self.fields(self.class_of(owner, section, release) if section else owner, release).get(key)

    def class_of(self, owner: str, section: str, release: Release) -> str:
        """Return the class that a field of another class has, empty if that is none of the tables."""
        entry = self.fields(owner, release).get(section)
        names = re.findall(r"\w+", entry.type) if entry else []
        near = (f"{package}{name}" for name in names for package in (owner[: owner.rfind(".") + 1], "training.", ""))
        return next((one for one in near if one in self.classes), "")

    def flags(self, release: Release) -> dict[str, Accepted]:
        """Return the flags of Megatron-LM's command line in a release; empty before ``flags_since``."""
        return dict(_rows(self.flags_of, release))

    def attributes(self, release: Release) -> frozenset[str]:
        """Return the attributes of Megatron-LM's arguments in a release: the ``dest`` of each flag."""
        return frozenset(entry.dest for entry in self.flags(release).values())


def release_of(text: str) -> Release:
    """Return the release that ``0.18`` names."""
    major, minor = text.split(".")
    return Release(int(major), int(minor))


def at(history: History, release: Release) -> Row | None:
    """Return the form that an entry has in a release."""
    row = None
    for since, form in history.items():
        if release_of(since) > release:
            break
        row = form
    return row


def _rows(entries: Mapping[str, History], release: Release) -> Iterator[tuple[str, Accepted]]:
    for name, history in entries.items():
        if (row := at(history, release)) is not None:
            yield name, Accepted.of(row)


@cache
def load() -> Tables:
    """Read the tables that ship with cgmigrate."""
    data = json.loads((rules_folder() / "releases.json").read_text("utf-8"))
    return Tables(data["releases"], data["classes"], data["flags"], release_of(data["flags-since"]))


@cache
def switches() -> frozenset[str]:
    """Return the flags of Megatron-LM that have no value in any release."""
    with_value, without = set[str](), set[str]()
    for release in KNOWN:
        for flag, entry in load().flags(release).items():
            (without if entry.action in SWITCHES else with_value).add(flag)
    return frozenset(without - with_value)

"""A field or flag as the tables of releases have it: its owner, and type, choices and default by release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.tables import Accepted, History, Row, Tables, release_of


class Range(NamedTuple):
    """The releases in which an entry is the same; ``row`` is None where it is gone."""

    first: Release
    last: Release
    row: Row | None


def histories(name: str, tables: Tables) -> list[tuple[str, History]]:
    """Return what the releases accept under a name, as a field or a flag, each with its title."""
    fields = [
        (f"{_owner(owner)}.{name}", history)
        for owner, entry in tables.classes.items()
        if (history := entry["fields"].get(name))
    ]
    flags = [(flag, history) for flag, history in tables.flags_of.items() if flag == name or _sets(history, name)]
    return [*fields, *flags]


def setting_text(name: str, tables: Tables) -> str:
    """Return what the releases accept under a name, as a field or a flag; empty if none has the name."""
    known = histories(name, tables)
    parts = ["\n".join([title, *_lines(history, tables)]) for title, history in known]
    if any(title.startswith("-") for title, _ in known):
        parts.append(f"Flags are known since {tables.flags_since}.")
    return "\n\n".join(parts) + "\n" if known else ""


def names(tables: Tables) -> list[str]:
    """Return all names of fields and flags."""
    fields = (name for entry in tables.classes.values() for name in entry["fields"])
    return list(dict.fromkeys((*fields, *tables.flags_of)))


def _owner(name: str) -> str:
    package, dot, owner = name.partition(".")
    return f"Megatron-Bridge: {owner}" if dot and package == "bridge" else name


def _sets(history: History, name: str) -> bool:
    return any(row is not None and row.get("dest") == name for row in history.values())


def ranges(history: History, tables: Tables) -> Iterator[Range]:
    """Yield each range of releases in which an entry is the same."""
    known = [release_of(release) for release in tables.releases]
    starts = list(map(release_of, history))
    for first, end, row in zip(starts, [*starts[1:], None], history.values(), strict=True):
        yield Range(first, max(release for release in known if end is None or release < end), row)


def _lines(history: History, tables: Tables) -> Iterator[str]:
    for first, last, row in ranges(history, tables):
        releases = f"{first} to {last}" if first < last else str(first)
        yield f"  {releases:12}  {_accepted(Accepted.of(row)) if row is not None else 'no longer there'}"


def _accepted(entry: Accepted) -> str:
    parts = [] if entry.choices else [entry.type or entry.action]
    if entry.choices:
        parts.append("one of " + ", ".join(map(_value, entry.choices)))
    if entry.nargs is not None:
        parts.append(f"nargs {entry.nargs}")
    if entry.dest:
        parts.append(f"sets {entry.dest}")
    if not entry.init:
        parts.append("computed")
    elif entry.required:
        parts.append("required")
    else:
        parts.append(f"default {entry.expression or _value(entry.default)}")
    return "; ".join(filter(None, parts))


def _value(value: object) -> str:
    """Return a value as Python writes it; text without quotes."""
    return value if isinstance(value, str) and value else repr(value)

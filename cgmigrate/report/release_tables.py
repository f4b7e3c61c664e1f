"""A field or flag as the tables of releases have it: its owner, and type, choices and default by release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cgmigrate.lint.rules import Rule, RuleKind
from cgmigrate.megatron.catalogue import ABSENT, Catalogue, Setting
from cgmigrate.megatron.releases import OLDEST, Release
from cgmigrate.megatron.tables import Accepted, History, Row, Tables, release_of

_TYPES = {"int": ("int", "ints"), "float": ("float", "floats"), "bool": ("bool", "bools")}
"""What the words after a flag are, one and several, by the function that reads them."""
_NUMBERS = {"+": "one or more", "*": "any number of"}
"""How many words a flag takes, by the ``nargs`` of argparse."""


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
    parts = ["\n".join([title, *_lines(title, history, tables)]) for title, history in known]
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


def _lines(title: str, history: History, tables: Tables) -> Iterator[str]:
    for first, last, row in ranges(history, tables):
        releases = f"{first} to {last}" if first < last else str(first)
        yield f"  {releases:12}  {_accepted(title, Accepted.of(row)) if row is not None else 'no longer there'}"


def _accepted(title: str, entry: Accepted) -> str:
    parts = _flag(title, entry) if title.startswith("-") else _field(entry)
    return "; ".join(filter(None, parts))


def _field(entry: Accepted) -> Iterator[str]:
    """Yield what a field accepts, as Python has it."""
    yield f"one of {_choices(entry)}" if entry.choices else entry.type
    if not entry.init:
        yield "computed"
    elif entry.required:
        yield "required"
    else:
        yield f"default {entry.expression or _value(entry.default)}"


def _flag(flag: str, entry: Accepted) -> Iterator[str]:
    """Yield what a person types after a flag, the setting of another name that it sets, and its default."""
    other = entry.dest.replace("_", "-") != flag.lstrip("-")
    if entry.action == "Store":
        yield _words(entry)
        yield f"sets {entry.dest}" if other else ""
        yield _default(entry)
    else:
        yield "switch" if entry.action != "BooleanOptional" else f"switch, off as --no-{flag.lstrip('-')}"
        sets = f"sets {entry.dest}" if other else ""
        yield f"{sets} to False" if sets and entry.action == "StoreFalse" else sets


def _words(entry: Accepted) -> str:
    """Return what is typed after a flag: a number, one of its choices, or words and how many."""
    # Any other type is a function of Megatron-LM's parser, whose name means nothing to a person.
    one, many = _TYPES.get(entry.type, ("word", "words"))
    if entry.choices:
        choices = ", ".join(_value(one) for one in entry.choices if one is not None)
        one, many = f"one of {choices}", f"of {choices}"
    if entry.nargs is None:
        return one
    return f"{_NUMBERS.get(str(entry.nargs), entry.nargs)} {many}"


def _default(entry: Accepted) -> str:
    """Return the value that a flag has where it is not typed."""
    if entry.expression:
        return f"default {entry.expression.rpartition('.')[2]}"
    if entry.default is None or entry.default == []:
        return "no default"
    words = entry.default if isinstance(entry.default, list) else [entry.default]
    return "default " + " ".join(map(_value, words))


def _choices(entry: Accepted) -> str:
    return ", ".join(map(_value, entry.choices))


def _value(value: object) -> str:
    """Return a value as Python writes it; text without quotes."""
    return value if isinstance(value, str) and value else repr(value)


# --- the catalogue --------------------------------------------------------------------------------

_GENERAL = (RuleKind.FILE, RuleKind.READER)
"""Kinds of rules that are about every setting."""


def entry_text(setting: Setting, catalogue: Catalogue, rules: Mapping[str, Rule]) -> str:
    """Return a setting: its summary, kind, releases, replacement, values, rules and sources."""
    parts = [setting.name, "", setting.summary or f"Replaces {_names(catalogue.older_names(setting.name))}", ""]
    parts += [f"{label}: {text}" for label, text in _facts(setting) if text]
    parts += [f"Value: {_shown(old)} is {_new(new, setting)}" for old, new in setting.values]
    about = [rule for rule in rules.values() if setting.name in rule.fields and rule.kind not in _GENERAL]
    if about:
        parts += ["", "Rules:", *(f"  {rule.id}  {rule.summary}" for rule in about)]
    elif setting.deprecated:
        parts += ["", f"No rule reports it; one with `fix: {{migrate: {setting.name}}}` does."]
    if setting.sources:
        parts += ["", "Sources:", *(f"  - {source}" for source in setting.sources)]
    return "\n".join(parts) + "\n"


def releases_of(setting: Setting) -> str:
    """Return the releases that have a setting, and which one deprecates it."""
    since = f"since {setting.since}" if setting.since > OLDEST else f"{OLDEST} or earlier"
    until = f" to {setting.until}" if setting.until else ""
    by = f", replaced by {_names(setting.replaced_by)}" if setting.replaced_by else ""
    deprecated = f"; deprecated in {setting.deprecated_in}{by}" if setting.deprecated_in else ""
    return f"{since}{until}{deprecated}"


def _facts(setting: Setting) -> Iterable[tuple[str, str]]:
    choices = f": {', '.join(setting.choices)}" if setting.choices else ""
    return (
        ("Kind", f"{setting.kind}{choices}"),
        ("Field of", setting.owner),
        ("Flag", setting.no_flag or setting.flag),
        ("Releases", releases_of(setting)),
        ("Default", _shown(setting.default) if setting.default is not None else ""),
    )


def _new(value: object, setting: Setting) -> str:
    """Return a value of the replacement as a file has it."""
    name = _names(setting.replaced_by)
    return f"written without {name}" if value == ABSENT else f"{name}: {_shown(value)} today"


def _names(names: Iterable[str]) -> str:
    return " or ".join(names)


def _shown(value: object) -> str:
    from cgmigrate.lint.fixes import shown

    return shown(value)

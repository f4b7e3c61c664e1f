"""The smallest set of changes that turns the settings of a site into others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import MergedValue, Settings, Undecided


@dataclass(frozen=True, slots=True)
class Rename:
    """A setting gets another name where it is; an equal value stays as written."""

    old: str
    new: str
    value: object


@dataclass(frozen=True, slots=True)
class Revalue:
    """A setting gets another value."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """A setting is deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A new setting is written after the setting ``after``, or after what that one is renamed to."""

    name: str
    value: object
    after: str


Change = Rename | Revalue | Remove | Add


def changes(before: Settings, after: Settings, catalogue: Catalogue) -> list[Change]:
    """Return the smallest set of changes that turns one site's own settings into others.

    The result looks like a person's edit: a new setting takes the line of the deprecated one that it replaces.
    ``catalogue`` says which one that is.
    """
    removed = [name for name in before if name not in after]
    result: list[Change] = [
        Revalue(name, after[name]) for name in before if name in after and not same(before[name], after[name])
    ]
    places: dict[str, str] = {}
    for new in _new_names(before, after, catalogue):
        lines = catalogue.lines_for(new)
        old = next((name for name in lines if name in removed), None)
        if old is not None:
            removed.remove(old)
            result.append(Rename(old, new, after[new]))
            places[new] = old
        else:
            candidates = [places.get(name, name) for name in (*lines, *catalogue.new_names)]
            beside = next((name for name in candidates if name in before and name not in removed), None)
            result.append(Add(new, after[new], after=beside or (list(before)[-1] if before else "")))
    result += [Remove(name) for name in removed]
    return result


def _new_names(before: Settings, after: Settings, catalogue: Catalogue) -> list[str]:
    """Return the settings that are new, those that replace others first."""
    new = [name for name in after if name not in before]
    first = [name for name in catalogue.new_names if name in new]
    return [*first, *(name for name in new if name not in first)]


def differ(left: Settings, right: Settings) -> bool:
    """Return whether two mappings of settings differ, in names, values or types of values."""
    return left.keys() != right.keys() or any(not same(left[name], right[name]) for name in left)


def changed_names(left: Settings, right: Settings) -> frozenset[str]:
    """Return the settings that differ in two mappings, in presence, value or type of value."""
    names = left.keys() | right.keys()
    return frozenset(name for name in names if (name in left) != (name in right) or not same(left[name], right[name]))


def same(left: object, right: object) -> bool:
    """Whether two values are equal and of one type, so that True is not 1."""
    return type(left) is type(right) and left == right


# --- merged settings ------------------------------------------------------------------------------

_REASON = "different values in the mappings that `<<` merges, and the version of PyYAML decides which one takes effect"


def together(sources: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the values of mappings without an order; one that differs among them is a ``MergedValue``."""
    result: dict[str, object] = {}
    for source in reversed(sources):
        for name, value in source.items():
            is_alike = name not in result or same(result[name], value)
            result[name] = value if is_alike else _either(name, sources)
    return result


def _either(name: str, sources: Sequence[Mapping[str, object]]) -> MergedValue:
    """Return the value that is one of several; the text says of which, so that other values make it another one."""
    values = [source[name] for source in sources if name in source]
    texts = (value.text if isinstance(value, Undecided) else str(value) for value in values)
    return MergedValue(" or ".join(dict.fromkeys(texts)), _REASON)

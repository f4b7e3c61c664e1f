"""Settings whose values code chooses by conditions: the sites for each branch, and one rewrite for all branches.

Conditions are taken as independent of each other: every combination of branches has to be migrated to the
same settings, and each new value must follow from one condition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from cgmigrate.documents.changes import same
from cgmigrate.documents.sites import Site
from cgmigrate.megatron.settings import IMPL, MODULES, Choice, Settings, Undecided

MOST = 8
"""Combinations of branches that are examined at most."""


class CannotMergeError(Exception):
    """Values with conditions that cannot be migrated; the message says why, empty if another diagnostic does."""


@dataclass(frozen=True, slots=True)
class Variant:
    """All sites, those of one component with one combination of branches; ``picks`` by site and setting."""

    sites: list[Site]
    picks: Mapping[tuple[int, str], int]
    conditions: str
    """The picked values in words, for messages."""


def has_choice(site: Site) -> bool:
    """Return whether a condition chooses one of the site's own values."""
    return any(isinstance(written.value, Choice) for written in site.written)


def first_branches(site: Site) -> Site:
    """Return a site with the value of the first branch of each condition."""
    return _picked(site, {})


def undecided(site: Site, reason: str) -> Site:
    """Return a site whose values with conditions are not known."""
    why = f"a conditional value ({reason})" if reason else "a value computed at run time"
    return replace(
        site,
        written=tuple(
            replace(written, value=Undecided(str(written.value), why)) if isinstance(written.value, Choice) else written
            for written in site.written
        ),
    )


def variants(sites: Sequence[Site], component: Sequence[int]) -> list[Variant]:
    """Return the sites for each combination of branches in one component. Raises CannotMergeError for too many."""
    choices = _choices(sites, component)
    if prod(len(choice.branches) for choice in choices.values()) > MOST:
        raise CannotMergeError(f"its conditions have more than {MOST} combinations with those of other settings")
    result = []
    for numbers in product(*(range(len(choice.branches)) for choice in choices.values())):
        picks = dict(zip(choices, numbers, strict=True))
        changed = list(sites)
        for index in component:
            changed[index] = _picked(sites[index], picks)
        conditions = [f"`{name}` is {shown_value(choices[at, name].branches[n])}" for (at, name), n in picks.items()]
        result.append(Variant(changed, picks, " and ".join(conditions)))
    return result


def merged_rewrites(
    sites: Sequence[Site],
    component: Sequence[int],
    options: Sequence[Variant],
    rewrites: Sequence[Mapping[int, Settings]],
) -> dict[int, Settings]:
    """Return the own settings of sites that are right for every variant; ``rewrites`` are those for each.

    Raises CannotMergeError if there are no such settings.
    """
    result: dict[int, Settings] = {}
    for index in component:
        _require_same_names(index, options, rewrites)
        own = _choices(sites, [index])
        result[index] = {
            name: _merged(name, own, options, [settings[index][name] for settings in rewrites])
            for name in rewrites[0][index]
        }
        if sum(isinstance(value, Choice) for value in result[index].values()) < len(own):
            raise CannotMergeError("all its branches set the same value: write it without the condition")
    if all(result[index] == sites[index].own for index in component):
        raise CannotMergeError
    return result


def _require_same_names(index: int, options: Sequence[Variant], rewrites: Sequence[Mapping[int, Settings]]) -> None:
    """Raise CannotMergeError unless a site gets the same settings in all variants, if with different values."""
    names = [frozenset(settings[index]) for settings in rewrites]
    if len(set(names)) == 1:
        return
    # Of the ways to write the site, the usual one; modules and implementations stay where they are.
    usual = max(dict.fromkeys(names), key=lambda kind: (Counter(names)[kind], MODULES in kind, IMPL in kind, len(kind)))
    at = next(at for at, kind in enumerate(names) if kind != usual)
    shown = " and ".join(f"`{name}: {shown_value(value)}`" for name, value in rewrites[at][index].items())
    raise CannotMergeError(f"where {options[at].conditions}, different settings are needed: {shown or 'none'}")


def _merged(
    name: str, own: Mapping[tuple[int, str], Choice], options: Sequence[Variant], values: Sequence[object]
) -> object:
    """Return one value for all variants: the same in all, or one for each branch of one condition of the site."""
    if all(same(value, values[0]) for value in values):
        return values[0]
    for key in sorted(own, key=lambda key: key[1] != name):
        by_branch: dict[int, object] = {}
        for option, value in zip(options, values, strict=True):
            by_branch.setdefault(option.picks[key], value)
        if all(same(by_branch[option.picks[key]], value) for option, value in zip(options, values, strict=True)):
            return Choice(own[key].texts, tuple(value for _, value in sorted(by_branch.items(), key=lambda i: i[0])))
    raise CannotMergeError(f"`{name}` would depend on several conditions at once")


def _choices(sites: Sequence[Site], component: Sequence[int]) -> dict[tuple[int, str], Choice]:
    return {
        (index, written.setting): written.value
        for index in component
        for written in sites[index].written
        if isinstance(written.value, Choice)
    }


def _picked(site: Site, picks: Mapping[tuple[int, str], int]) -> Site:
    written = tuple(
        replace(item, value=item.value.branches[picks.get((site.index, item.setting), 0)])
        if isinstance(item.value, Choice)
        else item
        for item in site.written
    )
    return replace(site, written=written)


def shown_value(value: object) -> str:
    """Return a value of a setting as messages show it."""
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)

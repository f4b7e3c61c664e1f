"""Settings whose values code chooses by conditions: sites as they are for each branch, and back to one text.

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
"""So many combinations of branches are examined, no more."""


class CannotChooseError(Exception):
    """Values with conditions that cannot be migrated; the message says why, empty where that is told elsewhere."""


@dataclass(frozen=True, slots=True)
class Variant:
    """All sites, those of one component with one combination of branches; ``picks`` by site and setting."""

    sites: list[Site]
    picks: Mapping[tuple[int, str], int]
    told: str


def has_choice(site: Site) -> bool:
    """Whether a condition chooses one of the site's own values."""
    return any(isinstance(written.value, Choice) for written in site.written)


def first_branches(site: Site) -> Site:
    """A site as it is where each condition takes its first branch."""
    return _picked(site, {})


def undecided(site: Site, reason: str) -> Site:
    """A site whose values with conditions are not known."""
    told = f"a conditional value ({reason})" if reason else "a value that is computed when the code runs"
    return replace(
        site,
        written=tuple(
            replace(written, value=Undecided(str(written.value), told))
            if isinstance(written.value, Choice)
            else written
            for written in site.written
        ),
    )


def variants(sites: Sequence[Site], component: Sequence[int]) -> list[Variant]:
    """The sites for each combination of branches in one component. Raises CannotChooseError for too many."""
    choices = _choices(sites, component)
    if prod(len(choice.branches) for choice in choices.values()) > MOST:
        raise CannotChooseError(f"its conditions have more than {MOST} combinations with those beside it")
    found = []
    for numbers in product(*(range(len(choice.branches)) for choice in choices.values())):
        picks = dict(zip(choices, numbers, strict=True))
        changed = list(sites)
        for index in component:
            changed[index] = _picked(sites[index], picks)
        told = [f"`{name}` is {_shown(choices[at, name].branches[n])}" for (at, name), n in picks.items()]
        found.append(Variant(changed, picks, " and ".join(told)))
    return found


def combined(
    sites: Sequence[Site], component: Sequence[int], options: Sequence[Variant], found: Sequence[Mapping[int, Settings]]
) -> dict[int, Settings]:
    """The own settings of sites that are ``found`` with every variant. Raises CannotChooseError if there are none."""
    result: dict[int, Settings] = {}
    for index in component:
        _same_names(index, options, found)
        own = _choices(sites, [index])
        result[index] = {
            name: _combined(index, name, own, options, [rewrites[index][name] for rewrites in found])
            for name in found[0][index]
        }
        if sum(isinstance(value, Choice) for value in result[index].values()) < len(own):
            raise CannotChooseError("all its branches come to mean the same: write one value without the condition")
    if all(result[index] == sites[index].own for index in component):
        raise CannotChooseError
    return result


def _same_names(index: int, options: Sequence[Variant], found: Sequence[Mapping[int, Settings]]) -> None:
    names = [frozenset(rewrites[index]) for rewrites in found]
    if len(set(names)) == 1:
        return
    # Of the ways to write the site, the usual one; modules and implementations stay where they are.
    usual = max(dict.fromkeys(names), key=lambda kind: (Counter(names)[kind], MODULES in kind, IMPL in kind, len(kind)))
    at = next(at for at, kind in enumerate(names) if kind != usual)
    shown = " and ".join(f"`{name}: {_shown(value)}`" for name, value in found[at][index].items())
    raise CannotChooseError(f"where {options[at].told}, other settings are to be written: {shown or 'none'}")


def _combined(
    index: int,
    name: str,
    own: Mapping[tuple[int, str], Choice],
    options: Sequence[Variant],
    values: Sequence[object],
) -> object:
    """One value for all variants: the same in all, or one for each branch of one condition of the site."""
    if all(same(value, values[0]) for value in values):
        return values[0]
    for key in sorted(own, key=lambda key: key[1] != name):
        by_branch: dict[int, object] = {}
        for option, value in zip(options, values, strict=True):
            by_branch.setdefault(option.picks[key], value)
        if all(same(by_branch[option.picks[key]], value) for option, value in zip(options, values, strict=True)):
            return Choice(own[key].texts, tuple(value for _, value in sorted(by_branch.items(), key=lambda i: i[0])))
    raise CannotChooseError(f"`{name}` would depend on several conditions at once")


def _choices(sites: Sequence[Site], component: Sequence[int]) -> dict[tuple[int, str], Choice]:
    return {
        (index, written.field): written.value
        for index in component
        for written in sites[index].written
        if isinstance(written.value, Choice)
    }


def _picked(site: Site, picks: Mapping[tuple[int, str], int]) -> Site:
    written = tuple(
        replace(item, value=item.value.branches[picks.get((site.index, item.field), 0)])
        if isinstance(item.value, Choice)
        else item
        for item in site.written
    )
    return replace(site, written=written)


def _shown(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)

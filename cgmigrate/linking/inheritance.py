"""Effective settings: what a site has together with the sites it is merged from.

In one file, YAML's anchors and merge keys: a site's own settings win over what it merges, the nearest
source over farther ones; where sources without an order differ, a setting is undecided. Across files, a stack: the
sites that are merged before a site, and those after it.
Rewriting has to go the other way: what must a site write itself, so that together with what its sources will say it
has the settings that it should have?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.changes import same, together
from cgmigrate.documents.sites import Site
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Settings


@dataclass(frozen=True, slots=True)
class Stack:
    """The sites of other files that are merged with a site, by index, in the order in which they are merged."""

    below: tuple[int, ...] = ()
    above: tuple[int, ...] = ()


Stacks = Mapping[int, Stack]
"""The stack of each site that is merged with sites of other files, by index."""
NO_STACKS: Stacks = {}
_NO_STACK = Stack()


def effective(sites: Sequence[Site], stacks: Stacks = NO_STACKS) -> dict[int, Settings]:
    """Return each site's settings after merging, by index."""
    return effective_in(sites, list(_sources_first(sites)), {}, stacks)


def effective_in(
    sites: Sequence[Site], component: Sequence[int], own: Mapping[int, Settings], stacks: Stacks = NO_STACKS
) -> dict[int, Settings]:
    """Return the settings after merging of one component's sites, with other own settings for some."""
    done = contributions(sites, component, own)
    if not stacks:
        return done
    return {index: _in_stack(stacks.get(index, _NO_STACK), done[index], done) for index in component}


def contributions(sites: Sequence[Site], component: Sequence[int], own: Mapping[int, Settings]) -> dict[int, Settings]:
    """Return what the sites of one component have in their files, with other own settings for some."""
    done: dict[int, Settings] = {}
    for index in component:
        done[index] = {**_inherited(sites[index], done), **own.get(index, sites[index].own)}
    return done


def merged(layers: Iterable[int], done: Mapping[int, Settings]) -> Settings:
    """Return the settings of sites that are merged in order; ``done`` is what each of them has in its file."""
    settings: dict[str, object] = {}
    for index in layers:
        settings.update(done[index])
    return settings


def _in_stack(stack: Stack, own: Settings, done: Mapping[int, Settings]) -> Settings:
    return {**merged(stack.below, done), **own, **merged(stack.above, done)}


def components(
    sites: Sequence[Site], layers: Iterable[Sequence[int]] = (), stacks: Stacks = NO_STACKS
) -> list[list[int]]:
    """Return the sites in groups that share settings, each in order with sources first.

    ``layers`` are sites of several files that are merged into one mapping.
    """
    group = list(range(len(sites)))

    def find(index: int) -> int:
        while group[index] != index:
            group[index] = group[group[index]]
            index = group[index]
        return index

    for site in sites:
        for source in (*site.inherits, *site.linked):
            group[find(site.index)] = find(source)
    for first, *others in layers:
        for other in others:
            group[find(first)] = find(other)
    result: dict[int, list[int]] = {}
    for index in _sources_first(sites, stacks):
        result.setdefault(find(index), []).append(index)
    return list(result.values())


def own_after(
    sites: Sequence[Site],
    component: Sequence[int],
    finals: Mapping[int, Settings],
    catalogue: Catalogue,
    stacks: Stacks = NO_STACKS,
) -> dict[int, Settings]:
    """Return the own settings that give each site of a component its final settings.

    A site without final settings keeps its own. A setting that its sources will have is written only if the site
    wrote it before, or one that it replaces; a setting that they have and the site should not have is unset.
    """
    done: dict[int, Settings] = {}
    rewrites: dict[int, Settings] = {}
    for index in component:
        site, stack = sites[index], stacks.get(index, _NO_STACK)
        in_file = _inherited(site, done)
        inherited = {**merged(stack.below, done), **in_file}
        # What is merged over the site has been decided before it, and needs nothing below it.
        around = {**inherited, **merged(stack.above, done)} if stack.above else inherited
        final = finals.get(index)
        if final is None:
            rewrites[index] = site.own
            done[index] = {**in_file, **site.own}
            continue
        own = {
            name: value
            for name, value in final.items()
            if name not in around or not same(around[name], value) or wrote(site, name, catalogue)
        }
        own |= {name: catalogue[name].unset for name in inherited if name not in final and name in catalogue.name_set}
        rewrites[index] = own
        done[index] = {**in_file, **own}
    return rewrites


def wrote(site: Site, name: str, catalogue: Catalogue) -> bool:
    """Return whether the site wrote this setting itself before, under this or an older name."""
    older = (catalogue[old] for old in catalogue.all_older_names(name) if old in site.own)
    # A boolean that is false sets no implementation.
    return name in site.own or any(site.own[old.name] is not False or not old.captures for old in older)


def _inherited(site: Site, done: Mapping[int, Settings]) -> Settings:
    nearest, others = site.inherits[: site.unordered], site.inherits[site.unordered :]
    return {**merged(reversed(others), done), **together([done[source] for source in nearest])}


def _sources_first(sites: Sequence[Site], stacks: Stacks = NO_STACKS) -> Iterable[int]:
    """Return the indices of sites, each after those from which it inherits and those of its stack.

    An anchor precedes its aliases in YAML, but a site's own index may be lower than that of a
    mapping inside it.
    """
    order: list[int] = []
    seen: set[int] = set()
    stack = [(site.index, False) for site in reversed(sites)]
    while stack:
        index, done = stack.pop()
        if done:
            order.append(index)
        elif index not in seen:
            seen.add(index)
            stack.append((index, True))
            around = stacks.get(index, _NO_STACK)
            sources = (*sites[index].inherits, *around.below, *around.above)
            stack += [(source, False) for source in sources if source not in seen]
    return order

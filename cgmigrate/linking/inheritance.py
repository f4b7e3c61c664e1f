"""Effective settings: what a site has together with the sites it is merged from.

YAML's anchors and merge keys for now. A site's own settings win over what it merges, the nearest
source over farther ones. Rewriting has to go the other way: what must a site write itself, so that
together with what its sources will say it has the settings that it should have?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cgmigrate.documents.changes import same
from cgmigrate.documents.sites import Site
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Settings


def effective(sites: Sequence[Site]) -> dict[int, Settings]:
    """Return each site's settings after merging, by index."""
    return effective_in(sites, list(_sources_first(sites)), {})


def effective_in(sites: Sequence[Site], component: Sequence[int], own: Mapping[int, Settings]) -> dict[int, Settings]:
    """Return the settings after merging of one component's sites, with other own settings for some."""
    done: dict[int, Settings] = {}
    for index in component:
        done[index] = {**_inherited(sites[index], done), **own.get(index, sites[index].own)}
    return done


def components(sites: Sequence[Site]) -> list[list[int]]:
    """Return the sites in groups that share settings, each in order with sources first."""
    group = list(range(len(sites)))

    def find(index: int) -> int:
        while group[index] != index:
            group[index] = group[group[index]]
            index = group[index]
        return index

    for site in sites:
        for source in (*site.inherits, *site.linked):
            group[find(site.index)] = find(source)
    result: dict[int, list[int]] = {}
    for index in _sources_first(sites):
        result.setdefault(find(index), []).append(index)
    return list(result.values())


def own_after(
    sites: Sequence[Site], component: Sequence[int], finals: Mapping[int, Settings], catalogue: Catalogue
) -> dict[int, Settings]:
    """Return the own settings that give each site of a component its final settings.

    A setting that its sources will have is written only if the site wrote it before, or one that it
    replaces; a setting that they have and the site should not have is unset.
    """
    done: dict[int, Settings] = {}
    rewrites: dict[int, Settings] = {}
    for index in component:
        site = sites[index]
        inherited = _inherited(site, done)
        final = finals[index]
        own = {
            name: value
            for name, value in final.items()
            if name not in inherited or not same(inherited[name], value) or wrote(site, name, catalogue)
        }
        own |= {name: catalogue[name].unset for name in inherited if name not in final and name in catalogue.name_set}
        rewrites[index] = own
        done[index] = {**inherited, **own}
    return rewrites


def wrote(site: Site, name: str, catalogue: Catalogue) -> bool:
    """Return whether the site wrote this setting itself before, under this or an older name."""
    older = (catalogue[old] for old in catalogue.all_older_names(name) if old in site.own)
    # A boolean that is false names no implementation.
    return name in site.own or any(site.own[old.name] is not False or not old.captures for old in older)


def _inherited(site: Site, done: Mapping[int, Settings]) -> Settings:
    settings: dict[str, object] = {}
    for source in reversed(site.inherits):
        settings.update(done[source])
    return settings


def _sources_first(sites: Sequence[Site]) -> Iterable[int]:
    """Return the indices of sites, each after those from which it inherits.

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
            stack += [(source, False) for source in sites[index].inherits if source not in seen]
    return order

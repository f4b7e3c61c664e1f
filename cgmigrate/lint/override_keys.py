"""Overrides on command lines that Hydra and OmegaConf would refuse after a fix.

Without a sign, the key of an override has to exist in the configuration, and with ``+`` it must not. ``++`` is accepted
in both cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.merged_files import MergedObject
from cgmigrate.megatron.settings import Settings

_SIGN = re.compile(r"[\"']?([+~]*)")
_MISSING = "`{name}` has no `+`, so a file of the recipe has to have this key, and none would: write `++`"
_EXISTS = "`+{name}` adds a key, and a file of the recipe would have it already: write `++`"


def refused_override(
    objects: Iterable[MergedObject],
    sites: Sequence[Site],
    rewrites: Mapping[int, Settings],
    document_of: Callable[[int], Document],
) -> str:
    """Return why a loader would refuse an override after the rewrite of some sites, empty if it would not.

    ``document_of`` returns the document of a site.
    """
    overridden = (merged.layers for merged in objects if sites[merged.layers[-1]].commands)
    return next(filter(None, (_refused(layers, sites, rewrites, document_of) for layers in overridden)), "")


def _refused(
    layers: Sequence[int],
    sites: Sequence[Site],
    rewrites: Mapping[int, Settings],
    document_of: Callable[[int], Document],
) -> str:
    below = [index for index in layers if not sites[index].commands]
    before = {name for index in below for name in sites[index].own}
    after = {name for index in below for name in rewrites.get(index, sites[index].own)}
    for index in layers:
        site = sites[index]
        for name in rewrites.get(index, {}) if site.commands else ():
            signs = _signs(site, document_of(index).text)
            if signs == {"+"} and name in after:
                return _EXISTS.format(name=name)
            # Where the old key was in no file either, the program declares its keys.
            if "" in signs and name not in after and not before.isdisjoint(site.own):
                return _MISSING.format(name=name)
    return ""


def _signs(site: Site, text: str) -> set[str]:
    """Return the signs of the overrides of a site."""
    matches = (_SIGN.match(text, use.span.start) for use in site.written)
    return {match[1] for match in matches if match is not None}

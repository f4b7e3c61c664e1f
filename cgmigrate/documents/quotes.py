"""Quotes of rewritten settings, from the text that was edited and read again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from cgmigrate.documents.sites import Document, Site
from cgmigrate.megatron.settings import Settings

Quotes = Mapping[int, Mapping[str, str]]
"""Index of a site → field → the text of that setting."""


def quotes_of(sites: Sequence[Site], after: Document, edited: Mapping[int, Settings]) -> dict[int, dict[str, str]]:
    """Return the text of each setting of the edited ones among some sites, as ``after`` has it.

    A site that loses all its settings is no site afterwards, so sites are paired by their paths, in order.
    """
    after_by_path = _by_path(site for site in after.sites if site.own)
    result: dict[int, dict[str, str]] = {}
    for path, alike in _by_path(site for site in sites if edited.get(site.index, site.own)).items():
        for site, counterpart in zip(alike, after_by_path[path], strict=False):
            own = edited.get(site.index)
            if own is not None and own.keys() == counterpart.own.keys():
                written = counterpart.written
                result[site.index] = {one.setting: after.text[one.span.start : one.span.end] for one in written}
    return result


def _by_path(sites: Iterable[Site]) -> defaultdict[tuple[str, ...], list[Site]]:
    result: defaultdict[tuple[str, ...], list[Site]] = defaultdict(list)
    for site in sites:
        result[site.path].append(site)
    return result

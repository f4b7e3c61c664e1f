"""Attributes of Megatron-LM's arguments whose type a release changed, from the tables of all releases."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.settings import FIELDS
from cgmigrate.megatron.tables import Accepted, load


@dataclass(frozen=True, slots=True)
class Listed:
    """The first release in which an attribute is a list, and the values that its items may have."""

    since: Release
    choices: tuple[str, ...]
    is_of_config: bool
    """Whether the field of TransformerConfig, which gets it, may be a list since then as well."""


@cache
def became_lists() -> Mapping[str, Listed]:
    """Return the attributes that were one value, by name. Those of the capture model have rules of their own."""
    result: dict[str, Listed] = {}
    for old, new in itertools.pairwise(KNOWN):
        before, after = ({one.dest: one for one in load().flags(release).values()} for release in (old, new))
        for name in before.keys() & after.keys() - set(FIELDS):
            if not _is_list(before[name]) and _is_list(after[name]):
                takes = [load().field("TransformerConfig", name, release) for release in (old, new)]
                is_of_config = all(takes) and ["List[" in one.type for one in takes if one] == [False, True]
                result[name] = Listed(new, tuple(map(str, after[name].choices)), is_of_config=is_of_config)
    return result


def _is_list(entry: Accepted) -> bool:
    return entry.nargs not in (None, "?")

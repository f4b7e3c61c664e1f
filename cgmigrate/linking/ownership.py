"""Who owns the settings of a site, and which sites inherit because their owner says so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from cgmigrate.documents.sites import Inside, Site
from cgmigrate.linking.ecosystems import Ecosystem
from cgmigrate.linking.inheritance import effective
from cgmigrate.linking.owner_conditions import TESTS_OF_PATH, Condition, OwnerEvidence, passes_at, passes_beside_paths
from cgmigrate.megatron.settings import INFERENCE, LAYER_MODULES, MODULES, SCOPE, names_in

_NAMES = {*LAYER_MODULES, "full", "full_iteration", "full_iteration_inference", *("none", "layer", "block")}
"""Words that are values of a scope or of modules."""

BY_NAMES_ALONE = 90
"""From this rank on, only the names identify the owner; an owner identified by another use of the text wins."""
PROSE = Ecosystem("prose (a description, not a setting)", 0, None, ())
SHARED = "its text is also used at {path}, which belongs to {other}"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a site: None if that is ambiguous. ``conflict`` says why one text has several owners."""

    ecosystem: Ecosystem | None
    conflict: str = ""


def owned_sites(
    sites: Sequence[Site], top_level: Sequence[str], ecosystems: Sequence[Ecosystem]
) -> tuple[list[Site], list[Owner]]:
    """Return the sites of a file with all that they inherit, and the owner of each.

    ``top_level`` are the names at the top of the file.
    """
    merged = effective(sites)
    owners = Owners(top_level, ecosystems)
    by_site = [owners.of(site, merged[site.index].keys()) for site in sites]
    return _with_parents(sites, by_site), by_site


def _with_parents(sites: Sequence[Site], owners: Sequence[Owner]) -> list[Site]:
    """Return the sites; those that override the mapping around them inherit from its site, if the file has it."""
    by_path = {(site.example, site.inside, site.path): site.index for site in sites}
    result = list(sites)
    for site, owner in zip(sites, owners, strict=True):
        if owner.ecosystem is None or not owner.ecosystem.overrides_parent or not site.path:
            continue
        parent = by_path.get((site.example, site.inside, site.path[:-1]))
        inherits = site.inherits if parent is None else (*site.inherits, parent)
        result[site.index] = replace(site, inherits=inherits, overrides_around=True)
    return result


class Owners:
    """The owners of the sites of one file.

    A text that others merge is used at the place of each of them, and so is each text that it merges: a chain has
    places with the square of its length. So the tests of a site are evaluated once for the site, and those of a place
    once for all sites with the same results.
    """

    def __init__(self, top_level: Sequence[str], ecosystems: Sequence[Ecosystem]) -> None:
        self._top_level = frozenset(top_level)
        self._ecosystems = ecosystems
        self._at: dict[tuple[bool, tuple[tuple[int, int], ...]], _OwnerAtPath] = {}

    def of(self, site: Site, names: Collection[str]) -> Owner:
        """Return who owns a site's settings, at every place at which its text is used.

        ``names`` are the settings that the site has, those it merges included.
        """
        texts = [written.value for written in site.written if written.setting in (SCOPE, MODULES, INFERENCE)]
        if any(isinstance(text, str) and is_prose(text) for text in texts):
            # A card about a model has sentences under the names of settings.
            return Owner(PROSE)
        part = _innermost(site.inside) or site.example
        top_level = self._top_level if part is None else frozenset(part.top_level)
        at = self._owner_at_path(OwnerEvidence(site, names, top_level))
        owner = at[site.path]
        # Most texts have one owner at all of their places, which may be many.
        is_owned_alike = {id(owner), id(None)}.issuperset(map(id, map(at.__getitem__, site.alias_paths)))
        for path, other in () if is_owned_alike else [(path, at[path]) for path in site.alias_paths]:
            if other is None:
                continue
            if owner is None or (other.reader is not owner.reader and owner.rank >= BY_NAMES_ALONE > other.rank):
                owner = other
            elif other.reader is not owner.reader and other.rank < BY_NAMES_ALONE:
                conflict = SHARED.format(path=".".join(path), other=other.name)
                return Owner(owner if owner.reader else other, conflict)
        return Owner(owner)

    def _owner_at_path(self, around: OwnerEvidence) -> _OwnerAtPath:
        in_code = around.site.origin is not None
        remaining = tuple(self._remaining(around, in_code))
        if (in_code, remaining) not in self._at:
            conditions = [
                (self._ecosystems[number], self._ecosystems[number].conditions(in_code)[position])
                for number, position in remaining
            ]
            self._at[in_code, remaining] = _OwnerAtPath(conditions)
        return self._at[in_code, remaining]

    def _remaining(self, around: OwnerEvidence, in_code: bool) -> Iterator[tuple[int, int]]:
        """Return the conditions that only a path can decide, up to one that passes at every path.

        Each is the position of an ecosystem and that of the condition in it.
        """
        for number, ecosystem in enumerate(self._ecosystems):
            for position, condition in enumerate(ecosystem.conditions(in_code)):
                if passes_beside_paths(condition, around):
                    yield number, position
                    if TESTS_OF_PATH.isdisjoint(condition):
                        return


class _OwnerAtPath(dict[tuple[str, ...], "Ecosystem | None"]):
    """Path → owner, for sites with the same results of all other tests: the first ecosystem that passes there."""

    def __init__(self, conditions: Sequence[tuple[Ecosystem, Condition]]) -> None:
        super().__init__()
        self._conditions = conditions

    def __missing__(self, path: tuple[str, ...]) -> Ecosystem | None:
        owners = (ecosystem for ecosystem, condition in self._conditions if passes_at(condition, path))
        self[path] = next(owners, None)
        return self[path]


def _innermost(inside: Inside | None) -> Inside | None:
    while inside is not None and inside.within is not None:
        inside = inside.within
    return inside


_GRAMMAR = re.compile(
    r"(?<![a-z])(?:an?|the|of|for|to|in|on|with|without|and|or|is|are|be|if|when|then|than|only|not|as|at|by|from|plus|that)"
    r"(?![a-z])",
    re.IGNORECASE,
)
"""Words of sentences, which no choice of a setting has."""


def is_prose(value: str) -> bool:
    """Return whether a value is a sentence, with spaces or underscores: most of its words are no values of a list."""
    words = names_in(value)
    grammar = len(_GRAMMAR.findall(value))
    is_sentence = grammar > 1 or len(words) > (2 if grammar else 3)
    named = sum(word in _NAMES for word in words)
    # A sentence may list the choices.
    return is_sentence and (named * 2 < len(words) or (value.rstrip().endswith(".") and named < len(words) - 1))

"""Key groups: the mappings of a project that have some keys, and the code that names these keys, which move together.

A name at any place of the code that is not followed (``documents.python.key_places``) is a reason not to move any.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import shown_path

if TYPE_CHECKING:
    from cgmigrate.documents.python.key_places import KeyPlace
    from cgmigrate.documents.sites import Document, Site
    from cgmigrate.megatron.catalogue import Catalogue

MOST_FILES = 2_000
"""Files with mappings that one group may have."""
_Read = Callable[[str], "Document | None"]
_Naming = Callable[[Sequence[str]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """The files of a group, by their real paths; ``names`` are the deprecated keys that their mappings have, and
    those that the same keys replace."""

    data: tuple[str, ...]
    names: frozenset[str]
    code: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    """New key → the place of a mapping that has no deprecated one: code that names new keys reads it."""
    reason: str = ""
    """Why its members cannot move; empty if that is not known."""

    @property
    def members(self) -> tuple[str, ...]:
        """The files that change together."""
        return (*self.data, *self.code)


def key_group_of(
    data: Iterable[str], code: Iterable[str], read: _Read, naming: _Naming, catalogue: Catalogue
) -> KeyGroup | None:
    """Return the group of a project, None if no mapping has a deprecated key.

    ``data`` are the files of the project with settings, ``code`` those of Python; ``read`` returns the document of one,
    and ``naming`` the files of Python that have some names.
    """
    own: dict[str, frozenset[str]] = {}
    others: dict[str, str] = {}
    for path in sorted(data):
        document = read(path)
        if document is None:
            continue
        named = [(site, catalogue.deprecated & site.own.keys()) for site in document.sites if is_mapping(site)]
        if any(names for _, names in named):
            own[path] = frozenset(name for _, names in named for name in names)
            continue
        for site, _ in named:
            line = site.span.lines(document.text)[0]
            for name in site.own:
                others.setdefault(name, f"{shown_path(path)}:{line}")
    if not own or len(own) > MOST_FILES:
        return None
    names = frozenset().union(*own.values())
    new = {name for old in names for name in catalogue[old].replaced_by}
    beside = {old for old in catalogue.deprecated if new.issuperset(catalogue[old].replaced_by or ("",))}
    group = KeyGroup(tuple(own), names | beside, others=others)
    return _with_code(group, code, read, naming, catalogue)


def is_mapping(site: Site) -> bool:
    """Return whether the settings of a site are keys of a mapping, and no flags or objects."""
    return site.origin is None and not site.flags


def _with_code(
    group: KeyGroup, code: Iterable[str], read: _Read, naming: _Naming, catalogue: Catalogue
) -> KeyGroup | None:
    from cgmigrate.documents.python import PythonDocument
    from cgmigrate.documents.python.key_places import KeyForm, KeyNotFollowedError

    paths, is_named = [], False
    newer = {name for old in group.names for name in newer_names(old, catalogue)}
    for path in sorted(code):
        if is_part_of_megatron(os.path.abspath(path)) or not isinstance(document := read(path), PythonDocument):
            continue
        try:
            places = document.key_places(group.names)
        except KeyNotFollowedError as error:
            return KeyGroup(group.data, group.names, reason=f"{shown_path(path)}:{error.line} ({error})")
        through = frozenset[str]().union(*(place.gets.through for place in places if place.gets))
        if others := [one for one in naming(sorted(through)) if one != path] if through else []:
            return KeyGroup(group.data, group.names, reason=f"{shown_path(others[0])} may set a key to other values")
        sets_newer = any(not newer.isdisjoint(site.own) for site in document.sites)
        if places or sets_newer or _places_of(document, newer):
            paths.append(path)
        is_named = is_named or any(place.form is not KeyForm.SHOWN for place in places)
    if not is_named:
        # Mappings that no code names do not depend on each other.
        return None
    return KeyGroup(group.data, group.names, tuple(paths), group.others)


def _places_of(document, names: Collection[str]) -> Sequence[KeyPlace]:  # type: ignore[no-untyped-def]
    from cgmigrate.documents.python.key_places import KeyNotFollowedError

    try:
        places: Sequence[KeyPlace] = document.key_places(names)
    except KeyNotFollowedError:
        return ()
    return places


def newer_names(old: str, catalogue: Catalogue) -> set[str]:
    """Return the captured settings that replace a deprecated one."""
    return {name for name in catalogue.captures if old in catalogue.older_names(name)}

"""Sets of YAML files that loaders merge, and the objects that come of it.

An *object* is one mapping of a composition: the sites of several files at one place, each merged over those before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Site
from cgmigrate.linking.compositions import (
    Composition,
    CompositionError,
    KeyPath,
    Layer,
    NoEntryError,
    Unresolved,
    compositions_of,
)
from cgmigrate.linking.inheritance import Stack, Stacks

if TYPE_CHECKING:
    from cgmigrate.documents.yaml import YamlDocument
    from cgmigrate.documents.yaml.tree import Node
    from cgmigrate.linking.yaml_files import YamlFiles

MOST_FILES = 20_000
"""Files of one set; beyond this number it is not known what is merged."""


@dataclass(frozen=True, slots=True)
class UnknownMerge:
    """Why it is not known what a file is merged with. ``entry`` is the file that merges, ``named`` what it names."""

    entry: str
    named: str
    reason: str


class CannotLinkError(Exception):
    """What a merge does to a setting is not known; ``merge`` says why."""

    def __init__(self, merge: UnknownMerge) -> None:
        super().__init__(merge.reason)
        self.merge = merge


@dataclass(frozen=True, slots=True)
class Contribution:
    """A file of a composition: its number among the members (-1 for one without settings), and where it goes.

    ``replaces`` are the paths at which it has something else than a mapping: what is below it there is lost.
    """

    number: int
    mount: KeyPath
    replaces: tuple[KeyPath, ...] = ()
    lost: frozenset[str] = frozenset()
    """Its top-level keys whose mappings do not count, since another file replaces them."""

    def has(self, site: Site) -> bool:
        """Return whether a site of its file belongs to it."""
        return not (site.path and site.path[0] in self.lost)


@dataclass(frozen=True, slots=True)
class MergedEntry:
    """An entry point of a set: a file, and its contributions in the order in which they are merged."""

    path: str
    contributions: tuple[Contribution, ...]
    number: int
    """The number of its own file among the members, -1 for one without settings."""
    is_own: bool = True
    """Whether it is what its file is, and not another reading of it or one with a choice of the command line."""
    choice: str = ""
    is_certain: bool = True

    @property
    def mount(self) -> KeyPath:
        """The keys under which the content of its own file goes."""
        return next((one.mount for one in self.contributions if one.number == self.number), ())


@dataclass(frozen=True, slots=True)
class MergedObject:
    """A mapping of an entry point: the sites that are merged into it, by index, and the one of the entry's own file."""

    entry: MergedEntry
    path: KeyPath
    layers: tuple[int, ...]
    own: int | None = None


@dataclass(frozen=True, slots=True)
class LinkedSites:
    """The sites of several files as one list, and how they are merged; an index is a position in the list."""

    sites: Sequence[Site]
    objects: Sequence[MergedObject]
    stacks: Stacks


@dataclass(frozen=True, slots=True)
class MergedSites:
    """How the sites of several files are merged."""

    entries: Sequence[MergedEntry]
    deep: bool = True
    """Whether all loaders surely merge mappings key by key: those that read ``defaults:`` do. One that reads
    ``extends:`` may replace a mapping as a whole."""

    def shifted(self, offset: int) -> list[MergedEntry]:
        """Return the entry points where the files have other numbers: each is higher by the offset."""
        return [
            replace(
                entry,
                number=entry.number + offset if entry.number >= 0 else -1,
                contributions=tuple(
                    replace(one, number=one.number + offset) if one.number >= 0 else one for one in entry.contributions
                ),
            )
            for entry in self.entries
        ]

    def linked(self, sites: Sequence[Sequence[Site]]) -> LinkedSites:
        """Return the sites of all files with how they are merged; ``sites`` are those of each file."""
        offsets = [0, *accumulate(map(len, sites))]
        every = [_moved(site, of_file, offsets[number]) for number, of_file in enumerate(sites) for site in of_file]
        objects = [merged for entry in self.entries for merged in _objects_of(entry, sites, offsets)]
        stacks: dict[int, Stack] = {}
        for merged in objects:
            if merged.own is not None and merged.entry.is_own and merged.own not in stacks:
                position = len(merged.layers) - 1 - merged.layers[::-1].index(merged.own)
                stacks[merged.own] = Stack(merged.layers[:position], merged.layers[position + 1 :])
        return LinkedSites(every, objects, stacks)


def _moved(site: Site, of_file: Sequence[Site], offset: int) -> Site:
    """Return a site with the indices of the list of all files; that of the mapping around it is part of its stack."""
    around = site.path[:-1] if site.overrides_around else None
    inherits = [index for index in site.inherits if of_file[index].path != around]
    return replace(
        site,
        index=site.index + offset,
        inherits=tuple(index + offset for index in inherits),
        linked=tuple(index + offset for index in site.linked),
    )


def _objects_of(entry: MergedEntry, sites: Sequence[Sequence[Site]], offsets: Sequence[int]) -> Iterator[MergedObject]:
    """Yield the objects of one entry point."""
    layers: dict[KeyPath, list[int]] = {}
    around: dict[KeyPath, KeyPath] = {}
    own: dict[KeyPath, int] = {}
    for contribution in entry.contributions:
        for path in contribution.replaces:
            layers |= {known: [] for known in layers if known[: len(path)] == path}
        for site in sites[contribution.number] if contribution.number >= 0 else ():
            if not contribution.has(site):
                continue
            path, index = contribution.mount + site.path, offsets[contribution.number] + site.index
            layers.setdefault(path, []).append(index)
            if site.overrides_around:
                around[path] = path[:-1]
            if contribution.number == entry.number:
                own[path] = index
    for path, indices in layers.items():
        below = layers.get(around[path], []) if path in around else []
        if indices:
            # A file that is merged twice counts where it is merged last.
            last = tuple(reversed(dict.fromkeys(reversed((*below, *indices)))))
            yield MergedObject(entry, path, last, own.get(path))


# --- the files of a set ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Members:
    """The files with settings of a set, by their real paths, and how their sites are merged."""

    paths: tuple[str, ...]
    merge: MergedSites


@dataclass
class MergedFiles:
    """Finds the sets of files that are merged; each is worked out once."""

    files: YamlFiles
    _members: dict[str, Members | UnknownMerge] = field(default_factory=dict)
    _compositions: dict[str, list[Composition] | UnknownMerge] = field(default_factory=dict)

    def members(self, path: str) -> Members:
        """Return the files with settings that one is merged with, itself included. Raises CannotLinkError."""
        if path not in self._members:
            try:
                members = self._find_members(path)
                self._members |= dict.fromkeys(members.paths, members)
            except CannotLinkError as error:
                self._members[path] = error.merge
        result = self._members[path]
        if isinstance(result, UnknownMerge):
            raise CannotLinkError(result)
        return result

    def with_settings(self, composition: Composition) -> list[str]:
        """Return the files of a composition that have settings."""
        return [path for path in composition.paths if self.files.has_settings(path)]

    def refuse(self, members: Members, merge: UnknownMerge) -> None:
        """Record that it is not known how some files change together."""
        self._members |= dict.fromkeys(members.paths, merge)

    def _find_members(self, path: str) -> Members:
        paths = {path: None}
        taken: dict[tuple[str, int], Composition] = {}
        waiting = [path]
        while waiting:
            at = waiting.pop()
            for entry in (at, *self.files.builders_of(at)):
                for number, composition in enumerate(self._compositions_of(entry, at)):
                    with_settings = self.with_settings(composition)
                    if at in with_settings and (entry, number) not in taken:
                        taken[entry, number] = composition
                        waiting += [one for one in with_settings if one not in paths]
                        paths |= dict.fromkeys(with_settings)
            if len(paths) > MOST_FILES:
                raise CannotLinkError(UnknownMerge(at, "", "too many files are merged with each other"))
        return Assembly(self.files, sorted(paths)).members(list(taken.values()))

    def _compositions_of(self, entry: str, path: str) -> list[Composition]:
        """Return the compositions of an entry point as far as they concern a file. Raises CannotLinkError."""
        if entry not in self._compositions:
            try:
                self._compositions[entry] = compositions_of(entry, self.files)
            except NoEntryError as error:
                # Those that include it are its entry points.
                alone = [Composition(entry, (Layer(entry),))]
                unknown = UnknownMerge(entry, self._named_in(entry), str(error))
                self._compositions[entry] = alone if self.files.builders_of(entry) else unknown
            except CompositionError as error:
                self._compositions[entry] = UnknownMerge(entry, self._named_in(entry), str(error))
        result = self._compositions[entry]
        if isinstance(result, UnknownMerge):
            if self._reached(entry) <= {path}:
                return [Composition(entry, tuple(dict.fromkeys((Layer(path), Layer(entry)))))]
            raise CannotLinkError(result)
        for composition in result:
            self._check_resolved(composition, path)
        return result

    def _check_resolved(self, composition: Composition, path: str) -> None:
        """Check that no file that is not known brings settings that are merged with those of a file."""
        unresolved = [one for one in composition.unresolved if not one.is_harmless]
        known = self.with_settings(composition)
        if path not in known and not any(path in one.files for one in unresolved):
            return
        other = bool(set(known) - {path}) or any(one.files != {path} for one in unresolved)
        if unresolved and other and len(unresolved) + bool(known) > 1:
            raise CannotLinkError(_unknown(composition, unresolved[0]))

    def _reached(self, entry: str) -> set[str]:
        """Return the files with settings that an entry point may be built on, itself included."""
        seen, waiting = {entry}, [entry]
        while waiting:
            new = self.files.may_name(waiting.pop()) - seen
            seen |= new
            waiting += new
        return {path for path in seen if self.files.has_settings(path)}

    def _named_in(self, entry: str) -> str:
        return ", ".join(one.text for one in self.files.references(entry).defaults if not one.is_self)

    def inherits_settings(self, path: str) -> bool:
        """Return whether a file that one is merged with as an entry point has settings."""
        try:
            return any(
                one != path and self.files.has_settings(one)
                for composition in self._compositions_of(path, path)
                for one in composition.paths
            )
        except CannotLinkError:
            return False


def _unknown(composition: Composition, unresolved: Unresolved) -> UnknownMerge:
    return UnknownMerge(composition.entry, unresolved.text, unresolved.reason)


@dataclass(frozen=True, slots=True)
class Assembly:
    """Numbers the files of a set, and checks that merging treats each of their sites as a mapping."""

    files: YamlFiles
    paths: Sequence[str]

    def members(self, compositions: Sequence[Composition]) -> Members:
        """Return the members with their entry points. Raises CannotLinkError."""
        numbers = {path: number for number, path in enumerate(self.paths)}
        if len(numbers) == 1:
            self._check_reads(compositions)
            (path,) = self.paths
            return Members((path,), MergedSites([MergedEntry(path, (Contribution(0, ()),), 0)]))
        of_members = [self._document(path) for path in self.paths]
        for path, document in zip(self.paths, of_members, strict=True):
            _check_sites(path, document)
        self._check_reads(compositions)
        first: dict[str, Composition] = {}
        for one in compositions:
            first.setdefault(one.entry, one)
        entries = [
            MergedEntry(
                one.entry,
                self.contributions(one, numbers),
                numbers.get(one.entry, -1),
                first[one.entry] is one,
                one.choice,
                one.is_certain,
            )
            for one in compositions
        ]
        deep = all(one.is_deep for one in compositions)
        merge = MergedSites(_distinct(entries), deep)
        return Members(tuple(self.paths), merge)

    def _document(self, path: str) -> YamlDocument:
        document = self.files.document(path)
        assert document is not None, "it has settings"
        return document

    def _check_reads(self, compositions: Sequence[Composition]) -> None:
        """Check that no file of the compositions reads a setting. Raises CannotLinkError."""
        for path in dict.fromkeys(path for one in compositions for path in one.paths):
            text = self.files.setting_read_in(path)
            if text and (path not in self.paths or len(self.paths) > 1):
                raise CannotLinkError(UnknownMerge(path, text, "it reads a setting of the merged configuration"))

    def contributions(self, composition: Composition, numbers: Mapping[str, int]) -> tuple[Contribution, ...]:
        """Return what each layer of a composition contributes; ``numbers`` are those of the members.

        Raises CannotLinkError.
        """
        paths = {
            layer.mount + site.path
            for layer in composition.layers
            if layer.path in numbers
            for site in self._document(layer.path).sites
        }
        result = [self._contribution(layer, numbers.get(layer.path, -1), paths) for layer in composition.layers]
        for layer, contribution in zip(composition.layers, result, strict=True):
            if contribution.replaces and not composition.is_flat:
                where = f"`{'.'.join(contribution.replaces[0])}`"
                raise CannotLinkError(UnknownMerge(layer.path, where, "it replaces a mapping in one of several files"))
        return tuple(result)

    def _contribution(self, layer: Layer, number: int, paths: Collection[KeyPath]) -> Contribution:
        """Return what a layer contributes; ``paths`` are those of all sites of its composition."""
        depth = len(layer.mount)
        inside = {path[depth:] for path in paths if path[:depth] == layer.mount}
        document = self.files.document(layer.path)
        replaces = _replaced(layer.path, document, inside) if document is not None else ()
        return Contribution(number, layer.mount, tuple(layer.mount + path for path in replaces), layer.lost)


def _distinct(entries: Iterable[MergedEntry]) -> list[MergedEntry]:
    """Return entry points without those that merge the same as another one and have no settings of their own."""
    result: list[MergedEntry] = []
    seen: set[tuple[tuple[Contribution, ...], bool]] = set()
    for entry in entries:
        contributions = tuple(one for one in entry.contributions if one.number >= 0 or one.replaces)
        key = (contributions, entry.is_certain)
        if entry.number >= 0 or key not in seen:
            result.append(entry)
            seen.add(key)
    return result


def _check_sites(path: str, document: YamlDocument) -> None:
    """Check that each site of a file is a mapping with a path of its own. Raises CannotLinkError."""
    nodes = _nodes_by_path(document)
    for site in document.sites:
        node = nodes.get(site.path)
        reason = ""
        if node is None or node.kind != "map" or node.start != site.span.start or site.flags or site.alias_paths:
            reason = "a setting is in a list, behind an alias, or in a key with dots"
        elif any(written.value == "???" for written in site.written):
            reason = "`???` is no value"
        if reason:
            line = document.text.count("\n", 0, site.span.start) + 1
            raise CannotLinkError(UnknownMerge(path, f"line {line}", reason))


def _nodes_by_path(document: YamlDocument) -> dict[KeyPath, Node | None]:
    """Return the nodes of a file by the keys that lead to them through mappings, None for keys written twice."""
    nodes: dict[KeyPath, Node | None] = {}
    waiting: list[tuple[KeyPath, Node]] = [((), root) for root in document.roots]
    while waiting:
        path, node = waiting.pop()
        nodes[path] = None if path in nodes else node
        if node.kind == "map":
            waiting += [((*path, key.value), value) for key, value in node.pairs() if key.kind == "scalar"]
    return nodes


def _replaced(path: str, document: YamlDocument, tails: Collection[KeyPath]) -> Iterator[KeyPath]:
    """Yield the paths at or above those of sites at which a file replaces a mapping. Raises CannotLinkError."""
    above = {tail[:length] for tail in tails for length in range(1, len(tail) + 1)}
    for root in document.roots:
        waiting: list[tuple[KeyPath, Node]] = [((), root)]
        while waiting:
            at, node = waiting.pop()
            if at and node.kind != "map":
                yield _replacement(path, at, node)
            elif node.kind == "map":
                waiting += [
                    ((*at, key.value), value)
                    for key, value in node.pairs()
                    if key.kind == "scalar" and (*at, key.value) in above
                ]


def _replacement(path: str, at: KeyPath, node: Node) -> KeyPath:
    if node.kind == "alias" or (node.kind == "scalar" and ("$" in node.value or node.value == "???")):
        raise CannotLinkError(UnknownMerge(path, f"`{'.'.join(at)}`", "it has the value of another key"))
    return at

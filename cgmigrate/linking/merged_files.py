"""YAML files that a loader merges, where the rule of the merge is known.

Known are ``defaults:`` with a relative path or a list of them, each merged over the one before, and one key such as
``extends:`` with a path. The loader merges mappings key by key and replaces everything else, as OmegaConf does. All
other forms (Hydra's groups, interpolations, ``_override_``) are unknown, and so are files that have them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Site
from cgmigrate.linking.chains import MAY_BUILD, builds_on_of, entries, files_named
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import read_bytes

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.documents.yaml import YamlDocument
    from cgmigrate.documents.yaml.tree import Node
    from cgmigrate.megatron.catalogue import Catalogue

BUILDING_WORDS = ("defaults", "extends", "inherits", "_base_")
"""Words of a file that may build on others."""
MOST_FILES = 2_000
"""Files of one group; beyond this number the group is not known."""
_EXTENDS = frozenset(("extends", "_extends_", "inherits", "_base_"))
_PATH = re.compile(r"(?!/)[^${}@\s]+\.ya?ml")
_INTERPOLATION = re.compile(r"\$\{[^}]*\}")
_NAME = re.compile(rb"[^\s\"'\[\]{},:]+\.ya?ml\b")
_ESCAPE = re.compile(rb"\\[xuU]")

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MayBuild:
    """A file that may build on others, before it is parsed."""

    path: str
    data: bytes
    is_unclear: bool
    """Whether it may name a file in other words than its name: by a link, or with escapes."""

    @classmethod
    def of(cls, path: str, data: bytes) -> MayBuild:
        """Return what the bytes of a file show; ``path`` is real."""
        beside = os.fsencode(os.path.dirname(path))
        names = set(_NAME.findall(data))
        links = any(os.path.islink(os.path.join(beside, name)) for name in names if b"\0" not in name)
        return cls(path, data, links or _ESCAPE.search(data) is not None)

    def may_name(self, stem: bytes, name: re.Pattern[bytes]) -> bool:
        """Return whether the file may name another one, by the stem of its name and the pattern of that word."""
        return self.is_unclear or (stem in self.data and name.search(self.data) is not None)


@dataclass(slots=True)
class YamlFiles:
    """The YAML files that a run may need, each read and parsed once; paths are real."""

    data: dict[str, bytes]
    """The files of the run that have settings."""
    others: Callable[[], Iterable[str]]
    """Lists further files that may build on others, in the run and in its checkouts."""
    catalogue_of: Callable[[str], Catalogue]
    """Returns the settings that a file may have."""
    merged_over: dict[str, str] = field(default_factory=dict)
    """Path → a file that is merged over it, where more of the merge is not known."""
    _documents: dict[str, YamlDocument | None] = field(default_factory=dict)
    _children: list[MayBuild] | None = None
    _groups: dict[str, MergedFiles | None] = field(default_factory=dict)

    def document(self, path: str) -> YamlDocument | None:
        """Return the document of a file, None if it cannot be read."""
        if path not in self._documents:
            from cgmigrate.documents.syntax import Syntax, document_of
            from cgmigrate.documents.yaml import YamlDocument

            try:
                document = document_of(path, decode(self._data(path))[0], Syntax.YAML, self.catalogue_of(path))
                self._documents[path] = document if isinstance(document, YamlDocument) else None
            except (OSError, UnicodeDecodeError, RecursionError, MemoryError):
                self._documents[path] = None
        return self._documents[path]

    def add(self, path: str, document: Document) -> None:
        """Add the document of a file that is parsed already."""
        from cgmigrate.documents.yaml import YamlDocument

        if isinstance(document, YamlDocument):
            self._documents[path] = document

    def builds_on(self, path: str, data: bytes) -> str:
        """Return the files that a file builds on, as it names them, empty when there are none."""
        if not MAY_BUILD.search(data):
            return ""
        document = self.document(os.path.realpath(path))
        return builds_on_of(path, document) if document else ""

    def group_of(self, path: str) -> MergedFiles | None:
        """Return the files that are merged with one, itself included; None if a rule of a merge is not known."""
        if path not in self._groups:
            group = self._find_group(path)
            self._groups |= dict.fromkeys(group.parents if group else (path,), group)
        return self._groups[path]

    def known_document(self, path: str) -> YamlDocument | None:
        """Return the document of a file if it is parsed already."""
        return self._documents.get(path)

    def forget_group(self, path: str) -> None:
        """Record that the rules of the merges of a file and its group are not known."""
        if (group := self._groups.get(path)) is not None:
            for child, parents in group.parents.items():
                self.merged_over |= dict.fromkeys(parents, child)
            self._groups |= dict.fromkeys(group.parents)

    def _data(self, path: str) -> bytes:
        return self.data[path] if path in self.data else read_bytes(path)

    def _find_group(self, path: str) -> MergedFiles | None:
        members: dict[str, tuple[str, ...]] = {}
        waiting = [path]
        while waiting:
            at = waiting.pop()
            if at in members:
                continue
            document = self.document(at)
            parents = parents_of(at, document) if document else None
            children = None if parents is None else self._children_of(at)
            if parents is None or children is None or len(members) >= MOST_FILES:
                return None
            members[at] = parents
            waiting += [*parents, *children]
        return None if _has_cycle(members) else MergedFiles(members)

    def _children_of(self, path: str) -> list[str] | None:
        """Return the files that are merged over one, None if the rule of such a merge is not known."""
        stem = os.fsencode(os.path.basename(path).rpartition(".")[0])
        # A parse takes longer than all of these searches: `model` is in most files, but few name model.yaml.
        name = re.compile(rb"(?<![\w.-])" + re.escape(stem) + rb"(?![\w-]|\.(?!ya?ml))")
        result = []
        for other in self._may_build():
            child = other.path
            if child == path or not other.may_name(stem, name) or (document := self.document(child)) is None:
                continue
            parents = parents_of(child, document)
            if parents is not None and path in parents:
                result.append(child)
            elif parents is None and _may_name(child, document, path):
                return None
        return result

    def _may_build(self) -> Sequence[MayBuild]:
        if self._children is None:
            self._children = []
            for path in sorted({*self.data, *map(os.path.realpath, self.others())}):
                try:
                    data = self._data(path)
                except OSError:
                    continue
                if MAY_BUILD.search(data):
                    self._children.append(MayBuild.of(path, data))
        return self._children


def _may_name(child: str, document: YamlDocument, path: str) -> bool:
    """Return whether a file may name another one in a form that is not known."""
    named = entries(builds_on_of(child, document))
    tails = ["/" + "/".join(part for part in name.split("/") if part not in ("", ".", "..")) for name in named]
    return any(path.rpartition(".")[0].endswith(tail) for tail in tails)


def _has_cycle(members: Mapping[str, Sequence[str]]) -> bool:
    done: set[str] = set()
    while True:
        new = {path for path, parents in members.items() if path not in done and done.issuperset(parents)}
        if not new:
            return len(done) < len(members)
        done |= new


def _is_special(document: YamlDocument) -> bool:
    """Whether a loader does something else than merge, or an interpolation names a setting."""
    if "_override_" in document.text:
        return True
    return any(document.catalogue.is_in(match.group()) for match in _INTERPOLATION.finditer(document.text))


def parents_of(path: str, document: YamlDocument) -> tuple[str, ...] | None:
    """Return the real paths of the files that one is merged over, the last one nearest; None in an unknown form."""
    if len(document.roots) != 1 or document.roots[0].kind != "map" or _is_special(document):
        return None if document.builds_on or files_named(path, document.top_level_words) else ()
    named = [(key.value, value) for key, value in document.roots[0].pairs() if _is_reference(key, value, path)]
    if not named:
        return () if not document.builds_on and not files_named(path, document.top_level_words) else None
    others = [key for key, _ in files_named(path, document.top_level_words) if key != named[0][0]]
    names = _names(named[0][1])
    if len(named) > 1 or others or names is None or (named[0][0] != "defaults" and len(names) != 1):
        return None
    parents = [os.path.realpath(os.path.join(os.path.dirname(path), name)) for name in names]
    return tuple(parents) if all(map(os.path.isfile, parents)) and len(set(parents)) == len(parents) else None


def _is_reference(key: Node, value: Node, path: str) -> bool:
    if key.kind != "scalar":
        return False
    return key.value == "defaults" or (key.value in _EXTENDS and _names(value) is not None and bool(path))


def _names(value: Node) -> list[str] | None:
    """Return the paths that a value lists, None if it is something else than plain paths."""
    items = value.items if value.kind == "seq" else [value]
    plain = all(item.kind == "scalar" and item.alias_of is None and item.tag is None for item in items)
    names = [item.value for item in items] if plain and value.alias_of is None else []
    return names if names and all(_PATH.fullmatch(name) for name in names) else None


@dataclass(frozen=True, slots=True)
class MergedFiles:
    """Files that are merged: the parents of each, the last one nearest. Paths are real."""

    parents: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Members:
    """The files with settings of a group, and how their sites inherit from each other. Paths are real."""

    paths: tuple[str, ...]
    merge: MergedSites


def members_of(group: MergedFiles, files: YamlFiles, path: str) -> Members:
    """Return the files of a group that have settings. Raises CannotLinkError if a merge does more than is known."""
    documents = {one: document for one in sorted(group.parents) if (document := files.document(one)) is not None}
    with_settings = [one for one, document in documents.items() if document.sites]
    if with_settings == [path]:
        return Members((path,), MergedSites([()]))
    order = list(documents)
    check_mergeable(list(documents.values()), [[order.index(parent) for parent in group.parents[one]] for one in order])
    parents = [[with_settings.index(one) for one in _nearest(group, one, with_settings)] for one in with_settings]
    deep = all(documents[one].builds_on for one, below in group.parents.items() if below and one in documents)
    return Members(tuple(with_settings), MergedSites(parents, deep))


def _nearest(group: MergedFiles, path: str, with_settings: Collection[str]) -> list[str]:
    """Return the files with settings that one is merged over, where files without settings stand for their parents."""
    result = []
    for parent in group.parents[path]:
        result += [parent] if parent in with_settings else _nearest(group, parent, with_settings)
    return result


def inherits_settings(path: str, files: YamlFiles) -> bool:
    """Return whether a file that one is merged over has settings, as far as the rules of the merges are known."""
    waiting, seen = [path], set[str]()
    while waiting:
        at = waiting.pop()
        document = files.document(at)
        if at in seen or document is None:
            continue
        if at != path and document.sites:
            return True
        seen.add(at)
        waiting += parents_of(at, document) or ()
    return False


# --- sites of merged files ------------------------------------------------------------------------


class CannotLinkError(Exception):
    """What a merge does to a setting is not known; the message says why."""


@dataclass(frozen=True, slots=True)
class MergedSites:
    """The sites of merged files: a mapping inherits from the mapping at the same place in the files below it."""

    parents: Sequence[Sequence[int]]
    """By the number of a file: the files that it is merged over, the last one nearest."""
    deep: bool = True
    """Whether all loaders surely merge mappings key by key: those that read ``defaults:`` with paths do. One that reads
    ``extends:`` may replace a mapping as a whole."""

    def unlinked(self, sites: Sequence[Site], files: Sequence[int]) -> list[Site]:
        """Return sites without what they inherit from other files; ``files`` are the numbers of their files."""
        return [
            replace(site, inherits=tuple(one for one in site.inherits if files[one] == files[site.index]))
            for site in sites
        ]

    def linked(self, sites: Sequence[Sequence[Site]]) -> list[Site]:
        """Return the sites of all files as one list in which they inherit across files."""
        by_path = [{site.path: site.index for site in of_file} for of_file in sites]
        offsets = [sum(map(len, sites[:number])) for number in range(len(sites))]
        result: list[Site] = []
        for number, of_file in enumerate(sites):
            offset = offsets[number]
            for site in of_file:
                below = [
                    offsets[other] + index
                    for parent in reversed(self.parents[number])
                    for other, index in self._sources(parent, site.path, by_path)
                ]
                result.append(_moved(site, offset, below))
        return result

    def _sources(
        self, number: int, path: KeyPath, by_path: Sequence[Mapping[KeyPath, int]]
    ) -> Iterator[tuple[int, int]]:
        """Yield the sites that a file gives at a path, nearest first: its own, or those of its parents."""
        if path in by_path[number]:
            yield number, by_path[number][path]
            return
        for parent in reversed(self.parents[number]):
            yield from self._sources(parent, path, by_path)


def _moved(site: Site, offset: int, below: Sequence[int]) -> Site:
    if not offset and not below:
        return site
    return replace(
        site,
        index=site.index + offset,
        inherits=(*(index + offset for index in site.inherits), *below),
        linked=tuple(index + offset for index in site.linked),
    )


def check_mergeable(documents: Sequence[YamlDocument], parents: Sequence[Sequence[int]]) -> None:
    """Check that merging files treats each of their sites as a mapping. Raises CannotLinkError."""
    kinds = [_nodes_by_path(document) for document in documents]
    paths = {site.path for document in documents for site in document.sites}
    for document, nodes in zip(documents, kinds, strict=True):
        for site in document.sites:
            node = nodes.get(site.path)
            if node is None or node.kind != "map" or node.start != site.span.start or site.flags or site.alias_paths:
                raise CannotLinkError("a setting is in a list, behind an alias, or in a key with dots")
            if any(written.value == "???" for written in site.written):
                raise CannotLinkError("`???` is no value")
        if any(_is_replaced(path, nodes) for path in paths):
            raise CannotLinkError("a value replaces a mapping with settings")
    for number, of_file in enumerate(parents):
        several = [path for path in paths if _sites_at(of_file, path, documents, parents) > 1]
        if any(path not in {site.path for site in documents[number].sites} for path in several):
            raise CannotLinkError("a file merges the settings of several others and has none of its own")


def _sites_at(
    numbers: Sequence[int], path: KeyPath, documents: Sequence[YamlDocument], parents: Sequence[Sequence[int]]
) -> int:
    """Return how many sites some files give at a path."""
    result = 0
    for number in numbers:
        if any(site.path == path for site in documents[number].sites):
            result += 1
        else:
            result += _sites_at(parents[number], path, documents, parents)
    return result


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


def _is_replaced(path: KeyPath, nodes: Mapping[KeyPath, Node | None]) -> bool:
    """Return whether a file has something else than a mapping at a path or above it."""
    for length in range(len(path) + 1):
        above = path[:length]
        if above in nodes and ((node := nodes[above]) is None or node.kind != "map"):
            return True
    return False

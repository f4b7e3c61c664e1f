"""Interpolations of keys of the same configuration: ``cuda_graph_scope: ${graphs.scope}``.

A value is followed through all files of a composition, and through further interpolations. It is known if every
composition of the file gives the same one; a key that holds it is never renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.megatron.settings import Interpolation, Settings, Undecided

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Site, Use
    from cgmigrate.documents.yaml import YamlDocument
    from cgmigrate.documents.yaml.tree import Node
    from cgmigrate.linking.compositions import Composition, KeyPath
    from cgmigrate.linking.inherited_keys import InheritedKeys
    from cgmigrate.linking.yaml_files import YamlFiles
    from cgmigrate.megatron.catalogue import Catalogue

_MOST_STEPS = 10
"""Interpolations that are followed one after the other."""
Source = tuple["KeyPath", str]
"""Where an interpolation is: the path of the site, and its text."""


class _UnknownError(Exception):
    """The value of an interpolation is not known."""


@dataclass(frozen=True, slots=True)
class FollowedValues:
    """What other keys and files give to the settings of one file: the interpolations whose values are known.

    ``nodes`` are what they yield. ``keys`` are the keys that hold these values, with dots.
    """

    nodes: Mapping[Source, Node] = field(default_factory=dict)
    read: Mapping[KeyPath, str] = field(default_factory=dict)
    """The mappings of the file of which an interpolation reads a setting, each with one such interpolation."""
    starts: frozenset[int] = frozenset()
    """Where the followed interpolations are in the text."""
    keys: frozenset[str] = frozenset()
    inherited: InheritedKeys = field(default_factory=dict)
    """Further keys that the mappings of the file have from others."""

    def in_sites(self, sites: Sequence[Site], catalogue: Catalogue) -> Sequence[Site]:
        """Return sites with the values of their interpolations, and with the keys that they inherit."""
        if self.inherited:
            sites = [
                replace(site, neighbours={**self.inherited.get(site.path, {}), **site.neighbours}) for site in sites
            ]
        if not self.nodes:
            return sites
        return [
            replace(site, written=tuple(replace(use, value=self._value(site, use, catalogue)) for use in site.written))
            for site in sites
        ]

    def _value(self, site: Site, use: Use, catalogue: Catalogue) -> object:
        if not isinstance(use.value, Interpolation):
            return use.value
        value = self.value(site.path, use.value, use.setting, catalogue)
        return use.value if isinstance(value, Undecided) else value

    def value(self, path: KeyPath, written: Interpolation, name: str, catalogue: Catalogue) -> object:
        """Return what a setting has from an interpolation in the mapping at a path, ``Undecided`` if not known."""
        from cgmigrate.documents.yaml.values import value_of

        node = self.nodes.get((path, written.text))
        return written if node is None else value_of(catalogue[name], node, False)

    def kept(self, site: Site, after: Settings, catalogue: Catalogue) -> Settings:
        """Return settings with the interpolations that yield their values; ``site`` is that of the document."""
        from cgmigrate.documents.changes import same

        result = dict(after)
        for name, value in after.items():
            for older in (name, *catalogue.all_older_names(name)):
                written = site.own.get(older)
                if not isinstance(written, Interpolation) or (older != name and older in after):
                    continue
                if same(self.value(site.path, written, name, catalogue), value):
                    result[name] = written
                    break
        return result

    def lost(self, site: Site, after: Settings) -> str:
        """Return an interpolation of a site that its new settings do not have, empty if there is none."""
        kept = {value.text for value in after.values() if isinstance(value, Interpolation)}
        known = [use.value.text for use in site.written if isinstance(use.value, Interpolation)]
        return next((text for text in known if (site.path, text) in self.nodes and text not in kept), "")


NOTHING_FOLLOWED = FollowedValues()


def followed_values(paths: Iterable[str], compositions: Sequence[Composition], files: YamlFiles) -> Followed:
    """Return what is known about the interpolations in the settings of some files."""
    followed = Followed()
    for path in paths:
        document = files.document(path)
        for site, use in _interpolated(document) if document else ():
            followed.add(path, site, use, [one for one in compositions if path in one.paths], files)
    return followed


def _interpolated(document: YamlDocument) -> Iterator[tuple[Site, Use]]:
    """Yield the settings that are interpolations, with their sites, where one text is one place."""
    inherited = {index for site in document.sites for index in site.inherits}
    for site in document.sites:
        if site.alias_paths or site.flags or site.inherits or site.index in inherited:
            continue
        for use in site.written:
            if isinstance(use.value, Interpolation) and use.key == use.setting:
                yield site, use


@dataclass
class Followed:
    """What is known about the interpolations of several files."""

    _nodes: dict[str, dict[Source, Node]] = field(default_factory=dict)
    _read: dict[str, dict[KeyPath, str]] = field(default_factory=dict)
    _starts: dict[str, set[int]] = field(default_factory=dict)
    _keys: dict[str, set[str]] = field(default_factory=dict)

    def of(self, path: str) -> FollowedValues:
        """Return what is known about the interpolations of one file."""
        return FollowedValues(
            self._nodes.get(path, {}),
            self._read.get(path, {}),
            frozenset(self._starts.get(path, ())),
            frozenset(self._keys.get(path, ())),
        )

    def starts(self, path: str) -> frozenset[int]:
        """Return where the followed interpolations of a file are in its text."""
        return frozenset(self._starts.get(path, ()))

    def add(self, path: str, site: Site, use: Use, compositions: Sequence[Composition], files: YamlFiles) -> None:
        """Follow one interpolation through all compositions of its file."""
        from cgmigrate.documents.changes import same
        from cgmigrate.documents.yaml.values import value_of

        assert isinstance(use.value, Interpolation)
        document = files.document(path)
        assert document is not None
        try:
            if not compositions:
                return
            routes = [
                _Lookup(composition, files).route(layer.mount + site.path, use)
                for composition in compositions
                for layer in composition.layers
                if layer.path == path
            ]
        except _UnknownError:
            return
        setting = document.catalogue[use.setting]
        values = [value_of(setting, route[-1].node, False) for route in routes]
        if isinstance(values[0], Undecided) or not all(same(value, values[0]) for value in values):
            return
        self._nodes.setdefault(path, {})[site.path, use.value.text] = routes[0][-1].node
        written = _child(_at(document, site.path), use.key)
        assert written is not None
        self._starts.setdefault(path, set()).add(written.start)
        for step in (step for route in routes for step in route):
            self._starts.setdefault(step.path, set()).add(step.node.start)
            self._keys.setdefault(path, set()).add(".".join(step.at))
            if step.inner[-1] in document.catalogue.by_key:
                self._read.setdefault(step.path, {}).setdefault(step.inner[:-1], use.value.text)


@dataclass(frozen=True, slots=True)
class _Step:
    """A key on the way to the value of an interpolation: its value in a file, and its paths: whole, and in the file."""

    path: str
    node: Node
    at: KeyPath
    inner: KeyPath


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Looks up keys in a composition."""

    composition: Composition
    files: YamlFiles

    def route(self, place: KeyPath, use: Use) -> list[_Step]:
        """Return the keys that lead to the value of a setting of the mapping at a place. Raises _UnknownError."""
        from cgmigrate.documents.yaml.values import interpolation_in

        written, at = use.value, (*place, use.key)
        steps: list[_Step] = []
        while isinstance(written, Interpolation):
            if written.dots > len(at) or len(steps) > _MOST_STEPS or self.composition.unresolved:
                raise _UnknownError
            at = (*at[: len(at) - written.dots], *written.keys) if written.dots else written.keys
            steps.append(self._value(at))
            written = interpolation_in(steps[-1].node)
        return steps

    def _value(self, at: KeyPath) -> _Step:
        """Return the value of a key. Raises _UnknownError."""
        with_top = 0
        step: _Step | None = None
        for layer in reversed(self.composition.layers):
            inner = at[len(layer.mount) :]
            if at[: len(layer.mount)] != layer.mount or not inner or inner[0] in layer.lost:
                continue
            document = self.files.document(layer.path)
            if document is None:
                raise _UnknownError
            with_top += inner[0] in document.top_level
            node = None if step else _at(document, inner)
            if node is not None:
                step = _Step(layer.path, node, at, inner)
        if step is None or (with_top > 1 and not self.composition.is_deep):
            raise _UnknownError
        return step


def _at(document: YamlDocument, path: KeyPath) -> Node | None:
    """Return the value at a path of a file, None if the file has none. Raises _UnknownError."""
    if not document.roots:
        return None
    if len(document.roots) > 1:
        raise _UnknownError
    node: Node | None = document.roots[0]
    for key in path:
        if node is None:
            return None
        node = _child(node, key)
    return node


def _child(node: Node | None, key: str) -> Node | None:
    from cgmigrate.documents.yaml.merges import is_merge

    if node is None or node.kind != "map":
        # A scalar replaces the mapping of another file.
        raise _UnknownError
    values = [value.target for name, value in node.pairs() if name.kind == "scalar" and name.value == key]
    if len(values) > 1 or any(value.value == "???" for value in values):
        raise _UnknownError
    if not values and any(
        name.kind != "scalar" or is_merge(name) or name.value == "_override_" for name, _ in node.pairs()
    ):
        raise _UnknownError
    return values[0] if values else None

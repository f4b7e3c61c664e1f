"""Keys that a mapping has from the files that its own builds on: they show whose settings it has.

A recipe that only sets ``model: {enable_cuda_graph: true}`` over a base with ``model: {num_layers: 32}`` sets
megatron-core's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cgmigrate.linking.compositions import Composition, KeyPath

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Site
    from cgmigrate.documents.yaml import YamlDocument
    from cgmigrate.documents.yaml.tree import Node
    from cgmigrate.linking.yaml_files import YamlFiles

InheritedKeys = Mapping["KeyPath", Mapping[str, object]]
"""Path of a mapping in a file → the keys that it has from other files, with their values."""


def inherited_keys(path: str, compositions: Sequence[Composition], files: YamlFiles) -> InheritedKeys:
    """Return the keys that the mappings with settings of an entry point have from the files that it builds on."""
    from cgmigrate.documents.yaml.keys import plain_pairs

    document = files.document(path)
    result: dict[KeyPath, dict[str, object]] = {}
    for composition in compositions if document else ():
        mount = next((layer.mount for layer in composition.layers if layer.path == path), ())
        for layer in composition.layers:
            below = files.document(layer.path) if layer.path != path else None
            for site in document.sites if document and below else ():
                place, depth = mount + site.path, len(layer.mount)
                if place[:depth] != layer.mount or layer.lost.intersection(place[depth : depth + 1]):
                    continue
                if below and (mapping := _mapping_at(below, place[depth:])):
                    result.setdefault(site.path, {}).update(plain_pairs(mapping, below.catalogue).get("", {}))
    return result


def with_inherited(sites: Sequence[Site], inherited: InheritedKeys) -> Sequence[Site]:
    """Return sites with the keys that they inherit."""
    if not inherited:
        return sites
    return [replace(site, neighbours={**inherited.get(site.path, {}), **site.neighbours}) for site in sites]


def _mapping_at(document: YamlDocument, path: KeyPath) -> Node | None:
    """Return the mapping at a path of a file, None if it has none there."""
    node = document.roots[0] if document.roots else None
    for key in path:
        if node is None or node.kind != "map":
            return None
        node = next((value.target for name, value in node.pairs() if name.target.value == key), None)
    return node if node is not None and node.kind == "map" else None

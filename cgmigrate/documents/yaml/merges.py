"""Merge keys (``<<``): what they merge into a mapping."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.documents.yaml.tree import MERGE, Node, contains


def is_merge(key: Node) -> bool:
    """Whether a key is a merge key; a quoted ``<<`` is a name like any other."""
    if key.kind != "scalar":
        return False
    return key.tag == MERGE or (key.value == "<<" and key.implicit and key.tag in (None, "!"))


def merge_sources(mapping: Node) -> list[Node]:
    """Return what ``<<`` names, nearest first for PyYAML up to 6.0.3; see ``documents.merging`` for newer ones.

    In one list the first takes precedence, of several ``<<`` the last.
    """
    result: list[Node] = []
    for key, value in mapping.pairs():
        if is_merge(key):
            result = (list(value.target.items) if value.target.kind == "seq" else [value]) + result
    return result


def merges_in(closing: Sequence[Node]) -> dict[int, list[Node]]:
    """Return for each mapping (by id) with ``<<`` the mappings merged into it, nearest first, but none around it."""
    merged: dict[int, list[Node]] = {}
    for mapping in closing:
        if mapping.kind == "map" and any(is_merge(key) for key, _ in mapping.pairs()):
            sources = [source.target for source in merge_sources(mapping)]
            merged[id(mapping)] = [node for node in sources if node.kind == "map" and not contains(node, mapping)]
    return merged


def merge_error(mapping: Node) -> str:
    """Return why YAML readers refuse what the mapping merges, empty when they do not."""
    for source in merge_sources(mapping):
        if source.target.kind != "map":
            return "`<<` names something that is not a mapping"
        if contains(source.target, mapping):
            return "it merges a mapping that holds it"
    return ""

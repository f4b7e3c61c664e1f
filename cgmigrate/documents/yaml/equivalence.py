"""Equality of a file before and after: nothing but the settings of rewritten sites may differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cgmigrate.documents.changes import Add, Rename, same
from cgmigrate.documents.yaml.keys import MappingNodes, is_flag, settings_in, split_key
from cgmigrate.documents.yaml.site_rewriter import key_spelled, plan_changes
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.documents.yaml.values import value_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Settings

if TYPE_CHECKING:
    from cgmigrate.documents.yaml import YamlDocument


class DocumentComparison:
    """Compares all that two documents contain: keys, values and their types, tags, anchors, aliases.

    Only the settings of the sites in ``rewrites`` may differ, and they must be as in ``rewrites``.
    """

    def __init__(
        self,
        before: YamlDocument,
        after: YamlDocument,
        places: Sequence[MappingNodes],
        rewrites: Mapping[int, Settings],
    ) -> None:
        self.before, self.after, self.places, self.rewrites = before, after, places, rewrites
        self.catalogue = before.catalogue
        self.touched: dict[int, list[int]] = {}
        for index in rewrites:
            self.touched.setdefault(id(places[index].mapping), []).append(index)

    def first_difference(self) -> int | None:
        """Return the first offset at which the text before differs from the text after; None if there is none."""
        if self.before.anchors != self.after.anchors or len(self.before.roots) != len(self.after.roots):
            return 0
        counterparts: dict[int, Node] = {}
        aliases: list[tuple[Node, Node]] = []
        stack = list(zip(self.before.roots, self.after.roots, strict=True))
        while stack:
            left, right = stack.pop()
            counterparts[id(left)] = right
            inner = self._inside(left, right) if _alike(left, right) else None
            if inner is None:
                return left.outer
            stack += inner
            if left.kind == "alias":
                aliases.append((left, right))
        return next(
            (left.outer for left, right in aliases if counterparts.get(id(left.target)) is not right.target), None
        )

    def _inside(self, left: Node, right: Node) -> list[tuple[Node, Node]] | None:
        """Return the pairs of nodes inside two that have to be alike; None if a setting is wrong."""
        indices = self.touched.get(id(left))
        if indices is None:
            return _paired(left.items, right.items)
        prefixes = {self.places[index].prefix for index in indices}
        result = _paired(*(_without_settings(node, prefixes, self.catalogue) for node in (left, right)))
        settings = settings_in(right, self.catalogue)
        for index in indices:
            inner = self._settings(index, settings.get(self.places[index].prefix, []))
            if result is None or inner is None:
                return None
            result += inner
        return result

    def _settings(self, index: int, written: Sequence[tuple[str, Node, Node]]) -> list[tuple[Node, Node]] | None:
        own, after, place = self.before.sites[index].own, self.rewrites[index], self.places[index]
        now = {name: (key, value) for name, key, value in written}
        if len(now) != len(written) or now.keys() != after.keys():
            return None if after or written else []
        plan = plan_changes(own, after, place, self.catalogue)
        renamed = {change.new: change.old for change in plan if isinstance(change, Rename)}
        models = {change.name: change.after for change in plan if isinstance(change, Add)} | renamed
        result: list[tuple[Node, Node]] = []
        for name, (key, value) in now.items():
            source = name if name in own else renamed.get(name)
            if name in own:
                result.append((place.pairs[name][0], key))
            elif not self._is_spelled(name, key, place, models[name]):
                return None
            if source is not None and same(own[source], after[name]):
                result.append((place.pairs[source][1], value))
            elif not same(value_of(self.catalogue[name], value, is_flag(key.target.value)), after[name]):
                return None
        return result

    def _is_spelled(self, name: str, key: Node, place: MappingNodes, model: str) -> bool:
        """Whether a new key is spelled like the one that it replaces or follows."""
        return (
            model in place.pairs
            and key.kind == "scalar"
            and key_spelled(self.catalogue[name], place, place.pairs[model][0]) == (key.value, key.style)
        )


def _alike(left: Node, right: Node) -> bool:
    alike = (left.kind, left.anchor, left.tag) == (right.kind, right.anchor, right.tag)
    return alike and (left.value, left.implicit) == (right.value, right.implicit)


def _paired(left: Sequence[Node], right: Sequence[Node]) -> list[tuple[Node, Node]] | None:
    return list(zip(left, right, strict=True)) if len(left) == len(right) else None


def _without_settings(mapping: Node, prefixes: set[str], catalogue: Catalogue) -> list[Node]:
    """Return the keys and values of a mapping without the settings that have one of the prefixes."""
    kept: list[Node] = []
    for key, value in mapping.pairs():
        split = split_key(key, catalogue)
        if split is not None and split[0] in prefixes:
            continue
        inside = catalogue.in_sections.get(key.value, {}) if value.kind == "map" and "" in prefixes else {}
        rest = [node for pair in value.pairs() if pair[0].value not in inside for node in pair] if inside else [value]
        # A section that has nothing else may be new, or empty now.
        kept += [key, *rest] if rest else []
    return kept

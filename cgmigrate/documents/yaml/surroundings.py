"""Values beside the settings of a mapping: in the mapping itself, and in others of the same configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.yaml.merges import is_merge, merge_sources
from cgmigrate.documents.yaml.tree import Node, closing_order, contains
from cgmigrate.documents.yaml.values import plain_value, scalar_value
from cgmigrate.megatron.settings import Missing, Undecided

_MAX_POSITIONS = 100
"""Configurations that share one text through aliases and merge keys; beyond this number, values are not known."""


@dataclass(frozen=True, slots=True)
class _Position:
    """A part of a configuration: a mapping, and the names before the last dot of its dotted keys."""

    mapping: Node
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Holder:
    """A collection that holds another one, by itself or through an alias; ``key`` is None in a list."""

    collection: Node
    key: Node | None


class Surroundings:
    """The configurations that the mappings of a file belong to."""

    def __init__(self, roots: Sequence[Node]) -> None:
        self._holders: dict[int, list[_Holder]] = {}
        for collection in closing_order(roots):
            for child in collection.items[1::2] if collection.kind == "map" else collection.items:
                around_itself = child.kind == "alias" and contains(child.target, child)
                if child.target.kind in ("map", "seq") and not around_itself:
                    self._holders.setdefault(id(child.target), []).append(_Holder(collection, child.key))
                    if child.key is not None and is_merge(child.key) and child.target.kind == "seq":
                        for source in child.target.items:
                            self._holders.setdefault(id(source.target), []).append(_Holder(collection, child.key))

    def value(self, mapping: Node, prefix: tuple[str, ...], section: Sequence[str], keys: Sequence[str]) -> object:
        """Return the value at ``keys`` of the configuration in which a mapping is the part called ``section``.

        ``prefix`` are the names before the last dot of the mapping's dotted keys. The value is plain data,
        ``Undecided`` or ``Missing``; it is not known if the mapping is in several configurations with different values.
        """
        positions = [_Position(mapping, prefix)]
        for name in reversed(section):
            positions = list(dict.fromkeys(outer for inner in positions for outer in self._outer(inner, name)))
            if len(positions) > _MAX_POSITIONS:
                return Missing.UNKNOWN
        if section:
            positions = list(dict.fromkeys(other for inner in positions for other in self._merging(inner, section[0])))
        values = [value_in(position.mapping, (*position.prefix, *keys)) for position in positions]
        if not values or any(type(value) is not type(values[0]) or value != values[0] for value in values):
            return Missing.UNKNOWN
        return values[0]

    def _outer(self, position: _Position, name: str) -> Iterator[_Position]:
        """Yield where the part around a position is, for each place at which the position is called ``name``."""
        if position.prefix:
            if position.prefix[-1] == name:
                yield _Position(position.mapping, position.prefix[:-1])
            return
        for holder in self._holders_of(position.mapping):
            assert holder.key is not None
            if is_merge(holder.key):
                yield from self._outer(_Position(holder.collection), name)
            elif holder.key.target.kind == "scalar":
                *before, last = holder.key.target.value.split(".")
                if last == name:
                    yield _Position(holder.collection, tuple(before))

    def _holders_of(self, node: Node) -> Iterator[_Holder]:
        """Yield the mappings that hold a node under a key, through lists as well."""
        for holder in self._holders.get(id(node), ()):
            if holder.key is None:
                yield from self._holders_of(holder.collection)
            else:
                yield holder

    def _merging(self, position: _Position, name: str) -> Iterator[_Position]:
        """Yield a position, and those of the mappings that merge its mapping and have no ``name`` of their own."""
        yield position
        for holder in self._holders_of(position.mapping):
            if holder.key is not None and is_merge(holder.key):
                own = any(key.target.value == name for key, _ in holder.collection.pairs() if not is_merge(key))
                if not own:
                    yield from self._merging(_Position(holder.collection, position.prefix), name)


def value_in(mapping: Node, path: tuple[str, ...]) -> object:
    """Return the value at a path of keys, merged ones included: plain data, ``Undecided`` or ``Missing``."""
    shadows = False
    for key, value in reversed(list(mapping.pairs())):
        if key.target.kind != "scalar" or is_merge(key):
            continue
        parts = tuple(key.target.value.split("."))
        if parts != path[: len(parts)]:
            continue
        read = _value_below(value.target, path[len(parts) :])
        if read is not Missing.ABSENT:
            return read
        shadows = True
    if shadows:
        return Missing.ABSENT
    for source in merge_sources(mapping):
        if source.target.kind != "map" or contains(source.target, mapping):
            return Missing.UNKNOWN
        if (read := value_in(source.target, path)) is not Missing.ABSENT:
            return read
    return Missing.ABSENT


def _value_below(node: Node, path: tuple[str, ...]) -> object:
    """Return the value at a path inside the value of a key."""
    if not path:
        return plain_value(node)
    if node.kind == "map":
        return value_in(node, path)
    if node.kind == "scalar" and scalar_value(node) is None:
        return Missing.ABSENT
    return Undecided(node.value, "a value where a mapping is expected")

"""Values beside the settings of a mapping: in the mapping itself, and in others of the same configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.changes import same
from cgmigrate.documents.yaml.tree import Node, closing_order, contains, is_merge, merge_sources
from cgmigrate.documents.yaml.values import plain_value, scalar_value
from cgmigrate.megatron.settings import Missing, Undecided
from cgmigrate.text.remembered import remembered

_MAX_POSITIONS = 100
"""Configurations that share one text through aliases and merge keys; beyond this number, values are not known."""


_HIDDEN = object()
"""In place of a value that is absent and cannot come from another merged mapping: its section is there without it."""


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


class YamlSurroundings:
    """The configurations that the mappings of a file belong to."""

    def __init__(self, roots: Sequence[Node]) -> None:
        self._values = _Values()
        self._around: dict[tuple[int, str], Sequence[_Position]] = {}
        """Where the parts around a mapping are, by its id and a name."""
        self._holders: dict[int, list[_Holder]] = {}
        self._collections = closing_order(roots)
        self._environments = [one for one in self._collections if one.kind == "map" and any(_variables(one))]
        for collection in self._collections:
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
        values = [self._values.at(position.mapping, (*position.prefix, *keys)) for position in positions]
        if not values or any(type(value) is not type(values[0]) or value != values[0] for value in values):
            return Missing.UNKNOWN
        return values[0]

    def variable(self, offset: int, name: str) -> object:
        """Return the value of a variable of the environment at an offset: plain data, ``Undecided`` or ``Missing``."""
        around = (one for one in self._environments if one.start <= offset < one.end)
        for key, value in (pair for mapping in around for one in _variables(mapping) for pair in one.pairs()):
            if key.target.value == name:
                plain = plain_value(value.target)
                is_computed = isinstance(plain, str) and "$" in plain
                return Undecided(str(plain), "a value computed at run time") if is_computed else plain
        return Missing.UNKNOWN if self._may_set(name) else Missing.ABSENT

    @remembered
    def _may_set(self, name: str) -> bool:
        """Return whether an alias, or a text with the name of a variable that is not read, may set it."""
        read = {id(item) for one in self._environments for known in _variables(one) for item in known.items}
        others = (item for one in self._collections for item in one.items if id(item) not in read)
        return any(one.kind == "alias" or (one.kind == "scalar" and name in one.value) for one in others)

    def _outer(self, position: _Position, name: str) -> Iterator[_Position]:
        """Yield where the part around a position is, for each place at which the position is called ``name``."""
        if position.prefix:
            if position.prefix[-1] == name:
                yield _Position(position.mapping, position.prefix[:-1])
            return
        waiting = [] if (id(position.mapping), name) in self._around else [position.mapping]
        # No recursion: a chain of merges may be longer than the stack.
        while waiting:
            unread = [node for node in self._mergers_of(waiting[-1]) if (id(node), name) not in self._around]
            if unread:
                waiting += unread
                continue
            mapping = waiting.pop()
            # One more than the most shows that there are too many.
            positions = dict.fromkeys(self._around_mapping(mapping, name))
            self._around[id(mapping), name] = tuple(positions)[: _MAX_POSITIONS + 1]
        yield from self._around[id(position.mapping), name]

    def _mergers_of(self, mapping: Node) -> Iterator[Node]:
        """Yield the mappings that merge one."""
        for holder in self._holders_of(mapping):
            if holder.key is not None and is_merge(holder.key):
                yield holder.collection

    def _around_mapping(self, mapping: Node, name: str) -> Iterator[_Position]:
        """Yield where the part around a mapping is, also of the mappings that merge it, for which that is known."""
        for holder in self._holders_of(mapping):
            assert holder.key is not None
            if is_merge(holder.key):
                yield from self._around[id(holder.collection), name]
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


class _Values:
    """Values of mappings with what they merge; each is read once, since rules ask at every mapping of a chain."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[str, ...]], object] = {}

    def at(self, mapping: Node, path: tuple[str, ...]) -> object:
        """Return the value at a path of keys, merged ones included: plain data, ``Undecided`` or ``Missing``."""
        waiting = [] if (id(mapping), path) in self._known else [mapping]
        # No recursion: a chain of merges may be longer than the stack.
        while waiting:
            current = waiting[-1]
            unread = [node for node in self._merged_by(current) if (id(node), path) not in self._known]
            waiting += unread
            if not unread:
                self._known[id(current), path] = self._read(current, path)
                waiting.pop()
        value = self._known[id(mapping), path]
        return Missing.ABSENT if value is _HIDDEN else value

    def _read(self, mapping: Node, path: tuple[str, ...]) -> object:
        """Return a value in a mapping or in those that it merges, for which it is known, or ``_HIDDEN``."""
        shadows = False
        for parts, value in self._pairs_of(mapping):
            if parts != path[: len(parts)]:
                continue
            read = self._below(value, path[len(parts) :])
            if read is not Missing.ABSENT:
                return read
            shadows = True
        return _HIDDEN if shadows else self._read_merged(mapping, path)

    def _read_merged(self, mapping: Node, path: tuple[str, ...]) -> object:
        """Return a value in the mappings that one merges: versions of PyYAML disagree on which of them counts."""
        result: object = Missing.ABSENT
        for source in merge_sources(mapping):
            if source.target.kind != "map" or contains(source.target, mapping):
                return Missing.UNKNOWN
            read = self._known[id(source.target), path]
            if read is Missing.ABSENT:
                continue
            if result is not Missing.ABSENT and not same(result, read):
                return Missing.UNKNOWN
            result = read
        return result

    def _merged_by(self, mapping: Node) -> Iterator[Node]:
        """Yield the mappings that one merges, up to one that cannot be merged."""
        for source in merge_sources(mapping):
            if source.target.kind != "map" or contains(source.target, mapping):
                return
            yield source.target

    @remembered
    def _pairs_of(self, mapping: Node) -> Sequence[tuple[tuple[str, ...], Node]]:
        """Return the keys of a mapping in parts, each with its value, the last pair first."""
        return [
            (tuple(key.target.value.split(".")), value.target)
            for key, value in reversed(list(mapping.pairs()))
            if key.target.kind == "scalar" and not is_merge(key)
        ]

    def _below(self, node: Node, path: tuple[str, ...]) -> object:
        """Return the value at a path inside the value of a key."""
        if not path:
            return plain_value(node)
        if node.kind == "map":
            return self.at(node, path)
        if node.kind == "scalar" and scalar_value(node) is None:
            return Missing.ABSENT
        return Undecided(node.value, "a value where a mapping is expected")


# --- variables of the environment -----------------------------------------------------------------

_KEYS = frozenset(("env", "envs", "environment", "variables", "env_vars", "env_variables", "environment_variables"))
"""Keys, in small letters, whose values are mappings of variables of the environment."""


def _variables(mapping: Node) -> Iterator[Node]:
    """Yield the mappings of variables in a mapping."""
    for key, value in mapping.pairs():
        if key.target.kind == "scalar" and key.target.value.lower() in _KEYS and value.target.kind == "map":
            yield value.target

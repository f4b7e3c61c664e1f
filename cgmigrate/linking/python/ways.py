"""Which changes lead to the states of objects: each way in which code of the project leaves one.

A state may have several ways: another recipe leaves the same settings. A test gets an object of a state only if it may
use all code of one of these ways, and changes that are not proved together are those of one way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from cgmigrate.linking.python.rounds import Name

State = tuple[str, int]
"""The kind of what has a state, and the number of the state."""
OBJECT, RECORD = "object", "record"
Way = frozenset[Name]
_MOST_WAYS = 24
_NONE: tuple[Way, ...] = (frozenset(),)


@dataclass(slots=True)
class Ways:
    """The ways to each state. The first state of an object and of a record needs no change."""

    _edges: dict[tuple[Way, tuple[State, ...], State], None] = field(default_factory=dict)
    _known: dict[State, tuple[Way, ...]] = field(default_factory=dict)

    def lead(self, uses: Way, sources: Iterable[State], target: State) -> None:
        """Note that code with some changes, which gets objects of some states, leaves one of another state."""
        self._edges.setdefault((uses, tuple(sorted(set(sources))), target))

    def close(self) -> None:
        """Compute the ways to all states."""
        self._known = {(OBJECT, 0): _NONE, (RECORD, 0): _NONE}
        is_stable = False
        while not is_stable:
            is_stable = True
            for uses, sources, target in self._edges:
                if not self._known.keys() >= set(sources):
                    continue
                before = self._known.get(target, ())
                after = _shortest((*before, *self.through(uses, sources)))
                if after != before:
                    self._known[target], is_stable = after, False

    def counts(self) -> Counter[Name]:
        """Return to how many states each change leads."""
        return Counter(name for ways in self._known.values() for name in frozenset().union(*ways))

    def through(self, uses: Way, sources: Sequence[State]) -> list[Way]:
        """Return the ways through code with some changes that gets objects of some states."""
        every = [self._known.get(one, _NONE) for one in sources]
        return list(dict.fromkeys(uses.union(*one) for one in islice(product(*every), _MOST_WAYS * _MOST_WAYS)))

    def within(self, sources: Sequence[State], changes: Way) -> bool:
        """Return whether changes lead to objects of some states, and a way to each has only some changes."""
        every = [[way for way in self._known.get(one, _NONE) if way <= changes] for one in sources]
        return all(every) and any(way for ways in every for way in ways)


def _shortest(ways: Iterable[Way]) -> tuple[Way, ...]:
    """Return the ways that have no other one in them, the shortest first, in an order of their own."""
    result: list[Way] = []
    for way in sorted(dict.fromkeys(ways), key=lambda one: (len(one), sorted(one))):
        if not any(one <= way for one in result):
            result.append(way)
    return tuple(result[:_MOST_WAYS])

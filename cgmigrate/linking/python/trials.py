"""Which changes make code differ: it is evaluated again with some of them skipped, or written in another form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from cgmigrate.linking.python.pieces import Unit
from cgmigrate.linking.python.rounds import Name

Forms = Mapping[Name, int]
"""The changes that are made, each with the number of its form."""
_MOST_CHANGES = 8
"""Of code that depends on more changes, no two are skipped together."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Trials with code that gets no object from other code.

    ``differs`` evaluates a unit with some changes made. ``last_forms`` are the last forms in which they can be written.
    ``counts`` is how many states depend on each change, and ``again`` are those that fail before others do.
    """

    differs: Callable[[Unit, Forms], bool]
    last_forms: Mapping[Name, int]
    counts: Mapping[Name, int]
    again: Collection[Name]

    def mended(self, unit: Unit, used: Collection[Name], made: Forms) -> Forms | None:
        """Return the changes to make so that a unit is as before, None if that is not clear.

        ``used`` are the changes on which the unit depends. First each is written in another form, then one is
        skipped, then two; of several, those of which the fewest objects depend.
        """
        possible = sorted(used & made.keys(), key=lambda name: (name not in self.again, self.counts.get(name, 0), name))
        return next((forms for forms in self._attempts(possible, made) if not self.differs(unit, forms)), None)

    def _attempts(self, possible: list[Name], made: Forms) -> Iterator[Forms]:
        for name in possible:
            yield from ({**made, name: form} for form in range(made[name] + 1, self.last_forms[name] + 1))
        for count in (1, 2) if len(possible) <= _MOST_CHANGES else (1,):
            skipped = sorted(combinations(possible, count), key=lambda names: self._cost(possible, names))
            yield from ({name: form for name, form in made.items() if name not in names} for names in skipped)

    def _cost(self, possible: list[Name], names: Collection[Name]) -> tuple[int, int]:
        return sum(self.counts.get(name, 0) for name in names), max(map(possible.index, names))

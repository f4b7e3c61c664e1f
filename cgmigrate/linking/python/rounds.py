"""One attempt to prove changes of a project: the states that its objects may have, and why changes are not proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from cgmigrate.proof.flow.modules import Modules
from cgmigrate.linking.python.pieces import Unit
from cgmigrate.linking.python.values import FrozenSettings
from cgmigrate.megatron.releases import Release

_DELETED = 2
"""How many other forms a fix has that deletes a setting: it is the first of three."""
Name = tuple[str, int]
"""The name of a change: its file, and its number there."""
Place = tuple[str, int]
"""A file and a line."""


@dataclass(frozen=True, slots=True)
class Change:
    """A set of edits of one file; ``places`` are the lines of the statements that it changes.

    ``forms`` is in how many forms it can be written; each is right for more objects than the one before.
    """

    name: Name
    path: str
    places: frozenset[Place]
    forms: int = 1
    reads: bool = False
    """Whether it changes how code reads settings."""
    needs_owner: bool = False
    """Whether its file does not show that the object is Megatron's: code that gives it one has to."""
    takes_values: bool = False
    """Whether it renames a setting whose value code computes: often from what callers give."""
    of_keywords: bool = False
    """Whether it changes entries of a dict that only become keyword arguments: no code uses their names as data."""
    through: str = ""
    """The function of the checkout that passes on what it changes, if that is a call."""


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases that read the old texts and the edited ones."""

    source: Release
    target: Release


@dataclass(slots=True)
class States:
    """The states that code leaves: pairs of settings, before and after."""

    pairs: list[tuple[FrozenSettings, FrozenSettings]] = field(default_factory=lambda: [((), ())])
    _numbers: dict[tuple[FrozenSettings, FrozenSettings], int] = field(default_factory=lambda: {((), ()): 0})

    def add(self, pair: tuple[FrozenSettings, FrozenSettings]) -> int:
        """Add a state, unless it is known; return its number."""
        number = self._numbers.setdefault(pair, len(self.pairs))
        if number == len(self.pairs):
            self.pairs.append(pair)
        return number


@dataclass(slots=True)
class Progress:
    """How far a unit is evaluated: the number of states it was given, and how many objects it gets from others."""

    states: int = 0
    opens: int = 0
    records: int = 0
    """The number of states of records that it was given, if it gets a record."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is different after some changes, and the file of the code that shows it."""

    reason: str
    path: str


@dataclass(slots=True)
class Round:
    """One attempt to prove some changes."""

    forms: Mapping[Name, int]
    """The changes that are made, each with the number of its form."""
    after: Modules
    open_forms: Mapping[Name, int] = field(default_factory=dict)
    """In how many other forms each change can be written."""
    again: Collection[Name] = ()
    """The changes that failed before, and are tried again: they fail again before others do."""
    states: States = field(default_factory=States)
    records: States = field(default_factory=States)
    """The states of records of the project's own."""
    sources: dict[int, set[int]] = field(default_factory=dict)
    """The states of the objects from which records are made, by the number of the record's state."""
    progress: dict[Unit, Progress] = field(default_factory=dict)
    failed: dict[Name, str] = field(default_factory=dict)
    moved: dict[Name, int] = field(default_factory=dict)
    """The changes that are written in another form next."""
    moved_for: list[tuple[Name, frozenset[Name]]] = field(default_factory=list)
    """Those of them that are only one of several changes that may be to blame, each with these."""
    because: dict[Name, Mapping[Name, int | None]] = field(default_factory=dict)
    """Beside which others a change failed, each with the number of its form; None if it was not made."""
    needs: list[tuple[frozenset[Name], tuple[tuple[str, int], ...]]] = field(default_factory=list)
    """The changes that a path needs, and the states of the objects and records that it gets."""
    groups: list[frozenset[Name]] = field(default_factory=list)
    """The changes that are only right together."""
    passed: set[Name] = field(default_factory=set)
    """The changes in tests with which a test passes before and after."""
    met: set[Name] = field(default_factory=set)
    """The changes of code that met an object whose settings change."""
    owned: set[Name] = field(default_factory=set)
    """The changes of code that met an object of Megatron's own classes."""
    counts: Counter[Name] = field(default_factory=Counter)
    """To how many states each change leads."""
    differences: dict[frozenset[Name], Difference] = field(default_factory=dict)
    """Why some changes are not proved together."""
    kept: frozenset[Name] = field(init=False)
    """The changes that are made."""

    def __post_init__(self) -> None:
        self.kept = frozenset(self.forms)

    def blame(self) -> None:
        """Withhold one change of those that are not proved together: the one that the fewest objects need.

        One that can be written in other forms is written in the next one instead: that with the most of them. Where
        changes delete settings, these come first, since the others may differ only because of them. Of several, it is
        one in the file of the code that differs.
        """
        if not self._blame(fewest_forms=_DELETED):
            self._blame(fewest_forms=0)

    def _blame(self, fewest_forms: int) -> bool:
        """Blame changes of which one has some other forms at least; return whether there are such ones."""
        known = set(self.failed)
        made = {name: form for name, form in self.forms.items() if name not in known}
        is_blamed = False
        for names, one in sorted(self.differences.items(), key=lambda one: (len(one[0]), sorted(one[0]))):
            most = max(self.open_forms.get(name, 0) for name in names)
            if most < fewest_forms or not known.isdisjoint(names):
                continue
            is_blamed = True
            possible = self._to_blame(names, most, one.path)
            known.update(possible)
            if most:
                self.moved |= {name: self.forms[name] + 1 for name in possible}
                self.moved_for += ((name, names) for name in possible)
                continue
            for name in possible:
                self.withhold(name, one.reason, names, made)
        return is_blamed

    def _to_blame(self, names: Collection[Name], most: int, path: str) -> list[Name]:
        possible = [name for name in names if self.open_forms.get(name, 0) == most]
        possible = [name for name in possible if name in self.again] or possible
        fewest = min(self.counts[name] for name in possible)
        possible = [name for name in possible if self.counts[name] == fewest]
        return [name for name in possible if name[0] == path] or possible

    def withhold(self, name: Name, reason: str, others: Iterable[Name], made: Mapping[Name, int]) -> None:
        """Note that a change fails beside others; ``made`` are the changes that are made, each in its form."""
        self.failed[name] = reason
        self.because[name] = {other: made.get(other) for other in others if other != name}

"""Comparison of one unit of code before and after edits: what both do with the objects that they use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.linking.python.calls import value_of_call
from cgmigrate.linking.python.evaluation import Code, Handlers, Path, Run, Touched, Unknowns, paths_of
from cgmigrate.linking.python.known_paths import KnownPaths
from cgmigrate.proof.flow.modules import Module, Modules, is_test
from cgmigrate.linking.python.outcomes import agree, is_half_renamed, keeps_old, keeps_replaced, rest_of
from cgmigrate.linking.python.path_pairs import (
    left_by,
    made_in_both,
    meets_change,
    opened_in_both,
    outcome,
    plain,
    reads_in_vain,
    records_of,
)
from cgmigrate.linking.python.pieces import Unit, part_of, unit_of
from cgmigrate.linking.python.relevance import Relevance
from cgmigrate.linking.python.rounds import Place
from cgmigrate.proof.flow.shims import is_shim
from cgmigrate.linking.python.statements import execute, store
from cgmigrate.linking.python.values import CannotFollowError, FrozenSettings, is_plain, key_of
from cgmigrate.proof.flow.world import World
from cgmigrate.megatron.settings import DEPRECATED

_HANDLERS = Handlers(value_of_call, execute, store)
StatePair = tuple[FrozenSettings, FrozenSettings]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two paths through a unit, before and after the edits.

    ``opened`` and ``opened_records`` are the states of the objects and records that it gets from other code: each by
    its number among those that it was compared with. ``left`` and ``records`` are the states that it leaves.
    ``difference`` says what is different, empty if nothing is.
    """

    uses: frozenset[Place]
    uses_megatron: frozenset[Place]
    """Those uses whose object is of Megatron's own classes."""
    opened: tuple[int, ...]
    opened_records: tuple[int, ...]
    left: tuple[StatePair, ...]
    records: tuple[StatePair, ...]
    difference: str
    meets_change: bool
    """Whether it uses an object that has other settings after the edits."""
    opens: int
    """How many objects it gets from other code, before or after."""


@dataclass(frozen=True, slots=True)
class StatesOfUnit:
    """The states that a unit may get from other code, before and after the edits."""

    pairs: Sequence[StatePair]
    before: Unknowns
    after: Unknowns


@dataclass(frozen=True, slots=True)
class _Side:
    """Code before or after the edits."""

    modules: Modules
    world: World
    unknowns: Unknowns
    code: Code
    """The code that is used."""
    is_after: bool = False
    """Whether it is the code after the edits, or that before them under the new release."""


@dataclass(frozen=True, slots=True)
class Comparer:
    """Compares units; ``source`` and ``target`` are the releases that read the old texts and the edited ones."""

    modules: Modules
    relevance: Relevance
    source: World
    target: World
    known: KnownPaths = field(default_factory=KnownPaths)
    _agreeing: dict[StatePair, bool] = field(default_factory=dict)

    def compare(
        self, unit: Unit, after: Modules, states: StatesOfUnit, needs: Callable[[Path], bool], touched: Touched
    ) -> Iterator[Comparison]:
        """Yield the comparisons of all paths through a unit for which ``needs`` is true.

        Raises CannotFollowError.
        """
        edited = self._edited(unit, after, touched.after)
        new = _Side(after, self.target, states.after, touched.after, is_after=True)

        def evaluate(own: Touched) -> Iterator[Path]:
            return self._paths(unit, _Side(self.modules, self.source, states.before, own.before), {}, own)

        for before in self.known.of(unit, states.before, touched, evaluate):
            if _is_of_no_use(unit, before) or not needs(before):
                yield _unused(before)
                continue
            if edited is None:
                # All of its statements are deleted.
                others: Iterable[Path] = (Path(),)
            elif _is_unchanged(unit, edited) and self._is_same_after(before, after, touched):
                others = (before,)
            else:
                others = self._paths(edited, new, dict(before.choices), touched)
            for one in others:
                yield self._compared(unit, (before, one), states, touched)

    def _compared(self, unit: Unit, paths: tuple[Path, Path], states: StatesOfUnit, touched: Touched) -> Comparison:
        before, after = paths
        left = tuple(left_by(before, after, states.pairs))
        difference = self._difference(unit, before, after, left, states.pairs)
        if difference and self._may_be_by_release(before, left, states):
            # The new release may do something else with the old text, too: then no edit makes the difference.
            on_target = replace(self, source=self.target, _agreeing={})
            old = _Side(self.modules, self.target, states.before, touched.before, is_after=True)
            for unedited in self._paths(unit, old, dict(before.choices), touched):
                pairs = tuple(left_by(unedited, after, states.pairs))
                if not on_target._difference(unit, unedited, after, pairs, states.pairs):
                    difference = ""
                    break
        return Comparison(
            frozenset(before.uses),
            frozenset(before.uses_megatron),
            tuple(number for _, number in before.opened),
            tuple(number for _, number in before.opened_records),
            left,
            tuple(records_of(before, after)),
            difference,
            meets_change(before, after),
            max(len(before.opened), len(after.opened)),
        )

    def _is_same_after(self, before: Path, after: Modules, touched: Touched) -> bool:
        """Return whether a path uses neither a setting, nor code that is edited, nor what depends on the release."""
        if before.uses or before.opened or before.opened_records or touched.asks_release:
            return False
        if not touched.before.is_same({path: self.modules.read(path) for path in touched.before.files}, after):
            return False
        touched.after.add(touched.before)
        return True

    def _edited(self, unit: Unit, after: Modules, code: Code) -> Unit | None:
        module = after.read(unit.module.path)
        scope = unit_of(module, unit.function) if module is not None and unit.scope is not None else None
        if scope is None or scope.scope is None:
            code.use_file(unit.module.path)
        else:
            code.use_function(unit.module.path, scope.scope)
        if module is unit.module:
            return unit
        if module is None:
            raise CannotFollowError(f"{unit.module.path} is not read after the edits")
        if unit.nodes:
            return part_of(module, unit.name, self.relevance.uses_in(unit.module.path))
        edited = unit_of(module, unit.name_in_module)
        return replace(edited, name=unit.name) if edited else None

    def _paths(self, unit: Unit, side: _Side, decided: Mapping[str, int], touched: Touched) -> Iterator[Path]:
        return self._paths_of(unit.name.partition("#")[0], unit.evaluate, side, decided, touched)

    def _paths_of(
        self,
        name: str,
        evaluate: Callable[[Run], object],
        side: _Side,
        decided: Mapping[str, int],
        touched: Touched,
    ) -> Iterator[Path]:
        def run_of(planned: Sequence[int]) -> Run:
            run = Run(side.modules, side.world, self.relevance, _HANDLERS, side.unknowns, planned, decided)
            run.touched, run.code, run.follows_edit = touched, side.code, side.is_after
            return run

        return paths_of(name, evaluate, run_of)

    def _difference(
        self, unit: Unit, before: Path, after: Path, left: Iterable[StatePair], states: Sequence[StatePair]
    ) -> str:
        """Return what is different after the edits, empty if nothing is."""
        name = unit.name.partition("#")[0]
        if before.error != after.error:
            return f"`{name}` would end with {after.error or 'no error'} ({unit.place})"
        if not self._captures_the_same(before, left):
            return f"`{name}` would give the settings another meaning ({unit.place})"
        if what := self._half_renamed(unit, before, after, states):
            return f"`{name}` would {what}"
        if not self._does_the_same(unit, before, after):
            return f"`{name}` would do something else with the settings ({unit.place})"
        for bound, value in before.bound.items():
            if not self._is_same(value, after.bound.get(bound)):
                return f"`{bound}` in `{name}` would have another value ({unit.place})"
        return ""

    def _half_renamed(self, unit: Unit, before: Path, after: Path, states: Sequence[StatePair]) -> str:
        """Return what a path does with an object of which only a part is renamed, empty if there is none."""
        made = any(is_half_renamed(*one) for one in made_in_both(before, after))
        if made or any(_uncovers(*one) for one in opened_in_both(before, after, states)):
            return f"leave an object with old names and new ones ({unit.place})"
        for path, line in reads_in_vain(before, after, of_test=is_test(unit.module.path)):
            module = self.modules.read(path)
            # A shim asks for both.
            if module is None or not is_shim(module):
                return f"read what nothing sets any more ({path}:{line})"
        return ""

    def _does_the_same(self, unit: Unit, before: Path, after: Path) -> bool:
        if outcome(before, self.source) == outcome(after, self.target):
            return True
        # A test may ask for what is shown, and what reads an old name shows that there are no graphs. So does what
        # reads a new one of an object that keeps the old ones.
        if (
            is_test(unit.module.path)
            or not set(after.reads) <= set(before.reads)
            or any(keeps_old(one.attributes) for one in after.used.values())
        ):
            return False
        return outcome(before, self.source, with_logs=False) == outcome(after, self.target, with_logs=False)

    def _may_be_by_release(self, before: Path, left: Iterable[StatePair], states: StatesOfUnit) -> bool:
        """Return whether the objects that capture something else keep an old setting, which is still reported.

        Objects that capture the same when a path gets them do so behind it.
        """
        opened = [states.pairs[number] for _, number in before.opened]
        if opened and all(map(self.agrees, opened)):
            return False
        return before.is_with_fakes or all(
            self.agrees(one) or any(plain(one[1]).get(name) for name in DEPRECATED) for one in left
        )

    def _captures_the_same(self, before: Path, left: Iterable[StatePair]) -> bool:
        """Return whether objects capture the same. Megatron never gets an object that only a test makes."""
        return before.is_with_fakes or all(map(self.agrees, left))

    def agrees(self, state: StatePair) -> bool:
        """Return whether an object with a state captures the same before and after."""
        if state not in self._agreeing:
            self._agreeing[state] = agree(plain(state[0]), plain(state[1]), self.source, self.target)
        return self._agreeing[state]

    def _is_same(self, old: object, new: object) -> bool:
        """Return whether a name that a part binds is the same for other parts."""
        if not is_plain(old) or not is_plain(new):
            # The settings of an object are compared where code uses them.
            return is_plain(old) == is_plain(new) and rest_of(old, self.source) == rest_of(new, self.target)
        return key_of(old) == key_of(new)


def _uncovers(came: StatePair, left: StatePair) -> bool:
    """Return whether an object keeps an old setting where a path leaves it, which the old text replaces there."""
    return keeps_replaced(*map(plain, left)) and not keeps_replaced(*map(plain, came))


def _is_of_no_use(unit: Unit, path: Path) -> bool:
    """Return whether no code that works takes a path: a test fails, or code fails with an object that it gets.

    A check that refuses an object works.
    """
    gets_objects = bool(path.opened or path.opened_records)
    return bool(path.error) and (is_test(unit.module.path) or (gets_objects and not path.is_check))


def _is_unchanged(unit: Unit, edited: Unit) -> bool:
    return edited is unit or (edited.scope is unit.scope and edited.nodes == unit.nodes and unit.scope is not None)


def _unused(path: Path) -> Comparison:
    """Return a comparison that shows only which objects and records a path gets."""
    opened = tuple(number for _, number in path.opened_records)
    return Comparison(frozenset(), frozenset(), (), opened, (), (), "", False, len(path.opened))


@dataclass(frozen=True, slots=True)
class Known:
    """What a unit does with the states that it was given: the same while the code stays that it uses.

    ``modules`` are the edited ones with that code.
    """

    code: Code
    modules: Mapping[str, Module | None]
    comparisons: tuple[Comparison, ...]
    error: CannotFollowError | None
    """Why it is not followed, None if it is."""
    gets_objects: bool
    gets_records: bool
    """Whether it gets objects or records from other code."""

    def holds_in(self, after: Modules) -> bool:
        """Return whether the code is the same in edited modules."""
        return self.code.is_same(self.modules, after)

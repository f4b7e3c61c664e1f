"""Proofs that edits of several files leave what every object of a project captures as it is.

Every function of the project that uses a setting is evaluated, with the old texts under the old release and with the
edited ones under the new release. An object that it makes itself begins with the defaults. One that it gets from other
code may have any *state* that code of the project leaves: a pair of the settings before and after the edits. So no
caller has to be known. The states grow until no code leaves a new one. Edits are proved if on each path of each
function every object captures the same before and after, and everything else that the code does is the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.callers import Callers, FilesWith, is_private, takes_values
from cgmigrate.linking.python.change_places import ChangePlaces
from cgmigrate.linking.python.changed_names import is_replaced_by_tests
from cgmigrate.linking.python.comparisons import Comparer, Comparison, Known, StatePair, StatesOfUnit
from cgmigrate.linking.python.data_names import DataNames
from cgmigrate.linking.python.evaluation import (
    Code,
    NotFollowedError,
    Path,
    TooManyPathsError,
    Touched,
    Unknowns,
)
from cgmigrate.linking.python.hidden_setters import HiddenSetter, HiddenSetters
from cgmigrate.linking.python.kept_objects import KeptObjects
from cgmigrate.linking.python.layers import copies_built, is_layer
from cgmigrate.linking.python.leading_code import code_used_by, is_table, relevance_of, words_of
from cgmigrate.proof.flow.modules import Modules, is_test
from cgmigrate.linking.python.name_places import Places
from cgmigrate.linking.python.option_writes import option_write
from cgmigrate.linking.python.own_objects import reads_record
from cgmigrate.linking.python.path_pairs import is_new, shortened
from cgmigrate.linking.python.pieces import (
    AnyFunction,
    Unit,
    functions_of,
    inner_units,
    only_called_at_top,
    only_called_in,
    parts_around,
    parts_of_function,
    parts_of_top,
    smaller_parts,
)
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.relevance import Relevance, sets_by_computed_name
from cgmigrate.linking.python.rounds import Change, Difference, Name, Place, Progress, Releases, Round
from cgmigrate.linking.python.seen_changes import SeenChanges, watching
from cgmigrate.proof.flow.shims import is_shim
from cgmigrate.linking.python.stand_ins import StandIns
from cgmigrate.linking.python.test_data import using
from cgmigrate.linking.python.test_reach import may_have_fakes
from cgmigrate.linking.python.trials import Forms, Trials
from cgmigrate.linking.python.unknown_origins import WORDS as COMPUTING
from cgmigrate.linking.python.unknown_origins import reached_by_computed_names
from cgmigrate.linking.python.values import CannotFollowError
from cgmigrate.linking.python.variations import modules_named, varied
from cgmigrate.linking.python.ways import OBJECT, RECORD, State, Way, Ways
from cgmigrate.proof.flow.world import SETTINGS, World
from cgmigrate.megatron.types import Reader

_MOST_ROUNDS = 48
"""How often edits fail, and the rest is proved again."""
_MOST_STATES = 1024


_Key = tuple[Unit, StatePair, StatePair, bool, bool]
"""A unit, the states of the object and the record that it gets, whether the record may be made from such an object,
and whether a test needs it."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A change that was written in another form than ``form``, since it or one of ``others`` was to blame.

    These are beside it, each in its form then.
    """

    name: Name
    form: int
    others: Mapping[Name, int]


@dataclass(frozen=True, slots=True)
class _Proved:
    """Changes that are proved, in groups, each in its form, and why the others are not."""

    changes: frozenset[Name]
    groups: list[frozenset[Name]]
    forms: dict[Name, int]
    failed: dict[Name, str]


@dataclass
class Proofs:
    """The proofs of some changes. ``edited`` returns the modules with changes made, each in one of its forms.

    ``seeds`` are the files of the project with settings.
    """

    modules: Modules
    seeds: Sequence[str]
    changes: Sequence[Change]
    releases: Releases
    edited: Callable[[Mapping[Name, int]], Modules]
    files_with: FilesWith
    failed: dict[Name, str] = field(default_factory=dict)
    """Why a change is not proved."""
    forms: dict[Name, int] = field(default_factory=dict)
    """The form in which a change is proved, if it is not the first one."""
    _because: dict[Name, Mapping[Name, int | None]] = field(default_factory=dict)
    """Beside which others a change failed because of a difference, each in its form; None if it was not made."""
    _moves: list[_Move] = field(default_factory=list)
    _last_forms: dict[Name, int] = field(default_factory=dict)
    """The last form in which a change is written that fails in the ones behind it."""
    _reasons: dict[Name, str] = field(default_factory=dict)
    """Why those failed at first that are tried again."""
    _units: list[Unit] = field(default_factory=list)
    _closed: list[Unit] = field(default_factory=list)
    """Functions that only code calls which is evaluated."""
    _called: dict[Unit, Unit] = field(default_factory=dict)
    """The functions that parts at the top of modules call, and do nothing else, by these parts."""
    _replaced: set[Unit] = field(default_factory=set)
    """Functions that are not followed: their parts are evaluated instead."""
    _files: tuple[str, ...] = ()
    _relevance: Relevance | None = None
    _known: dict[Unit, list[Known]] = field(default_factory=dict)
    """What units do that depend on no state, with the code of each attempt."""
    _ways: Ways = field(default_factory=Ways)
    """The ways to the states of the current round."""
    _differing_paths: list[tuple[Unit, Way, tuple[State, ...], str]] = field(default_factory=list)
    """The paths that are different after the edits, with their changes and the states of the objects that they get."""
    _code: dict[Unit, Code] = field(default_factory=dict)
    """The code that units use before the edits."""
    _variations: dict[tuple[Unit, StatePair], list[Known]] = field(default_factory=dict)
    """What units do that get one object of a state that no code leaves."""
    _by_state: dict[_Key, list[Known]] = field(default_factory=dict)
    """What units do that get one object, and perhaps one record, by their states."""

    def components(self) -> list[frozenset[Name]]:
        """Return the changes that are proved, in groups of which each is proved only as a whole."""
        followed = frozenset[Place]().union(*(one.places for one in self.changes if one.of_keywords))
        if place := DataNames(self._references, self.files_with, followed).find():
            reason = f"names of settings are data at {place}, and code that may get them uses attributes by such names"
            self.failed.update((one.name, reason) for one in self.changes)
            return []
        if place := option_write(self.seeds, self.modules, self._renamed_places()):
            reason = f"an option sets a recipe by a deprecated name at {place}"
            self.failed.update((one.name, reason) for one in self.changes)
            return []
        self.failed |= {
            change.name: f"a test replaces `{change.through}`, and may see its keyword arguments"
            for change in self.changes
            if change.through and is_replaced_by_tests(change.through, self.modules)
        }
        self.failed |= dict(self._reads_of_records())
        self.failed |= StandIns(self._references, self.files_with, self.changes).seen()
        changed = {one.path for one in self.changes}
        leading = frozenset(self._places.leading(self.seeds))
        for path, code in reached_by_computed_names(self.files_with(COMPUTING), self.modules, changed, leading):
            reason = f"the code at {code} may get its object, and sets attributes by names that it computes"
            self.failed.update({one.name: reason for one in self.changes if one.path == path})
        files = self._files = self._with_callers()
        self._relevance = relevance_of(self._references, files, [one.function for one in self._setters])
        results = self._places.results(files, self.files_with)
        self._relevance.may_return_changed = results.may_return
        self._relevance.method_may_return_changed = results.method_may_return
        self._relevance.keeps_object = KeptObjects(self.modules, self.files_with, self._relevance.holders).in_attribute
        self.failed |= self._seen.by_parts_of_names() | self._seen.by_helpers()
        units = list(self._all_units(files))
        callers = Callers(self.modules, files, self.files_with)
        callers.find({one.scope.name for one in units if one.scope and self._may_be_closed(one)})
        for one in units:
            (self._units if self._needs_evaluation(one, callers) else self._closed).append(one)
        self._add_data()
        whole = {one.scope: one for one in self._units if one.scope and not (one.nodes or one.around)}
        self._called = {one: whole[node] for one in self._units if (node := only_called_at_top(one)) in whole}
        return self._groups()

    def _reads_of_records(self) -> Iterator[tuple[Name, str]]:
        """Yield the changes that would read a new name of a record of the project's own, each with the reason."""
        for change in self.changes:
            module = self.modules.read(change.path)
            lines = {line for path, line in change.places if path == change.path}
            if module is not None and (name := reads_record(lines, module, self.modules)):
                yield change.name, f"`{name}` is an object of the project's own, which keeps its names"

    def _add_data(self) -> None:
        """Add the code that shows what tests do with settings that they have as data."""
        in_data = self._seen.in_data(self.seeds)
        self.failed |= {name: reason for name, reason in in_data.withheld.items() if name not in self.failed}
        self._units += filter(None, in_data.units.values())

    def _groups(self) -> list[frozenset[Name]]:
        """Return the changes that are proved, in groups of which each is proved only as a whole.

        Some may have failed only because of others that failed, or were written in another form, after them: these are
        tried again, once, and so are forms that only those needed. The attempt that proves more counts.
        """
        first: _Proved | None = None
        again: Collection[Name] = ()
        for _ in range(_MOST_ROUNDS):
            kept = frozenset(one.name for one in self.changes if one.name not in self.failed)
            if not kept:
                break
            current = self._round(kept, again)
            if current.failed or current.moved or self._withhold_unused(current):
                continue
            proved = _Proved(kept, current.groups, dict(self.forms), dict(self.failed))
            if first is not None:
                first = max(proved, first, key=lambda one: len(one.changes))
                break
            first, again = proved, self._worth_another_attempt()
            if not self._undo_needless() and not again:
                break
            for name in again:
                self._reasons[name] = self.failed.pop(name)
        if first is None:
            return []
        self.forms, self.failed = first.forms, first.failed
        return first.groups

    def _undo_needless(self) -> bool:
        """Write changes in their first forms that were moved beside others that are not made as they were then."""
        needless = [one for one in self._moves if self._are_others(one.others)]
        self._undo(needless)
        return bool(needless)

    def _withhold_unused(self, current: Round) -> bool:
        """Withhold the changes that no object of the project shows to be right, and return whether there are some.

        A test that passes with no object gets one by code that is not followed. A reader that meets no object whose
        settings change reads what keeps the old names. A file that imports nothing of Megatron may be about other
        objects.
        """
        unused = [name for name in current.kept if is_test(name[0]) and name not in current.passed]
        self.failed |= dict.fromkeys(unused, "no object is known with which this test passes")
        readers = {one.name for one in self.changes if one.reads} & current.kept - self.failed.keys()
        self.failed |= dict.fromkeys(readers - current.met, "no object is known that reaches this code with new names")
        unowned = {one.name for one in self.changes if one.needs_owner} & current.kept - self.failed.keys()
        self.failed |= dict.fromkeys(unowned - current.owned, "no object of Megatron is known that reaches this code")
        if unused or readers - current.met or unowned - current.owned:
            return True
        # The others were proved with the edits of these.
        unseen = current.kept.difference(*current.groups) - self.failed.keys()
        self.failed |= dict.fromkeys(unseen, "no code that is followed shows what it changes")
        return bool(unseen)

    def _worth_another_attempt(self) -> list[Name]:
        """Return the changes that failed beside others that are made no more, or in another form."""
        return [name for name, others in self._because.items() if self._are_others(others)]

    def _are_others(self, forms: Mapping[Name, int | None]) -> bool:
        """Return whether some changes are not made as they were, each in its form; None if it was not made."""
        return any((None if name in self.failed else self.forms.get(name, 0)) != was for name, was in forms.items())

    def _round(self, kept: frozenset[Name], again: Collection[Name]) -> Round:
        """Try to prove some changes, and note which fail; ``again`` are those that are tried again."""
        forms = {name: self.forms.get(name, 0) for name in sorted(kept)}
        open_forms = {name: max(last - forms[name], 0) for name, last in self._last.items() if name in forms}
        current = Round(forms, self.edited(forms), open_forms, again)
        self._prove(current)
        if not self._mend(current):
            current.blame()
        self._move(current)
        self.failed |= {name: self._reasons.get(name, reason) for name, reason in current.failed.items()}
        self._because |= current.because
        return current

    @property
    def _last(self) -> dict[Name, int]:
        """The number of the last form in which each change can be written."""
        return {one.name: self._last_forms.get(one.name, one.forms - 1) for one in self.changes}

    def _move(self, current: Round) -> None:
        """Note the forms of the changes that are written in another one next.

        Those that were to blame beside a change that fails now are written in their form before: it may have been that
        change alone. So are those that fail themselves in such a form: then another one is to blame.
        """
        for name in [one for one in current.failed if one in current.forms]:
            self._take_back(name, current)
        for name, names in current.moved_for:
            others = {one: current.forms[one] for one in names if one != name}
            self._moves.append(_Move(name, current.forms[name], others))
        self.forms |= current.moved
        self._undo([one for one in self._moves if not current.failed.keys().isdisjoint(one.others)])

    def _undo(self, moves: Collection[_Move]) -> None:
        """Write changes in their forms before some moves, of which the last is undone first."""
        for one in reversed(self._moves):
            if one in moves:
                self.forms[one.name] = one.form
        self._moves = [one for one in self._moves if one not in moves]

    def _take_back(self, name: Name, current: Round) -> None:
        """Write a change in its form before that fails in the form in which it was written because of several."""
        move = next((one for one in reversed(self._moves) if one.name == name and one.others), None)
        if move is None or move.form >= current.forms[name]:
            return
        self._moves.remove(move)
        current.moved[name] = self._last_forms[name] = move.form
        del current.failed[name]
        current.because.pop(name, None)

    def _mend(self, current: Round) -> bool:
        """Find which changes make code differ that gets no object; return whether there is such code.

        What differs with objects may do so because of these.
        """
        trials = Trials(self._differs, self._last, current.counts, current.again)
        made: Forms = {name: form for name, form in current.forms.items() if name not in current.failed}
        before = made
        for unit, (uses, difference) in self._differing_alone().items():
            if not self._differs(unit, made):
                continue
            if (mended := trials.mended(unit, uses, made)) is None:
                continue
            for name in sorted(made.keys() - mended.keys()):
                current.withhold(name, difference, uses & made.keys(), mended)
            others = frozenset(uses & made.keys())
            current.moved_for += ((name, others) for name, form in mended.items() if form != made[name])
            made = mended
        current.moved |= {name: form for name, form in made.items() if form != current.forms[name]}
        return made != before

    def _differing_alone(self) -> dict[Unit, tuple[Way, str]]:
        """Return the units that differ and get no object, each with the changes that it uses, and how it differs."""
        result: dict[Unit, tuple[Way, str]] = {}
        for unit, uses, sources, difference in self._differing_paths:
            if not sources:
                known, first = result.get(unit, (frozenset(), difference))
                result[unit] = (known | uses, first)
        return result

    def _differs(self, unit: Unit, forms: Forms) -> bool:
        """Return whether a unit that gets no object differs with some changes made."""
        known = self._compared(unit, range(1), range(1), Round(forms, self.edited(forms)))
        return known.error is not None or any(one.difference for one in known.comparisons)

    @cached_property
    def _comparer(self) -> Comparer:
        source, target = self.releases.source, self.releases.target
        return Comparer(self.modules, self.relevance, World(source, Reader.BRIDGE), World(target, Reader.BRIDGE))

    @property
    def relevance(self) -> Relevance:
        """Which code is evaluated."""
        assert self._relevance is not None
        return self._relevance

    def _all_units(self, files: Iterable[str]) -> Iterator[Unit]:
        for path in files:
            if (module := self.modules.read(path)) is None:
                continue
            if is_shim(module) and not any(path == one.path for one in self.changes):
                # It says for each release what it does.
                continue
            yield from parts_of_top(module, self.relevance.uses_in(path))
            for name, node, inside in functions_of(module):
                is_layers = inside is not None and is_layer(inside, module, self.modules)
                if self.relevance.is_relevant(node) and not is_layers and not copies_built(node, module, self.modules):
                    yield Unit(name, module, node)
            yield from (one for one in inner_units(module) if one.scope and self.relevance.is_relevant(one.scope))

    def _renamed_places(self) -> set[Place]:
        """Return the places of the changes that do not depend on what callers or options give."""
        return {at for at, names in self._places.at.items() if not self._computed.issuperset(names)}

    def _takes_values(self, unit: Unit) -> bool:
        """Return whether a function sets what its callers give to a setting that is renamed."""
        return not self._computed.isdisjoint(self._places.of(unit))

    @cached_property
    def _computed(self) -> frozenset[Name]:
        return frozenset(one.name for one in self.changes if one.takes_values)

    def _may_be_closed(self, unit: Unit) -> bool:
        """Return whether all uses of a function may be known.

        It is no method, and private. Others may call a public one with any object; one that sets what its callers give
        to a setting is evaluated with any value.
        """
        scope = unit.scope
        if scope is None or unit.around or "." in unit.name or not takes_values(scope):
            return False
        if scope.decorator_list or scope.name.startswith("test"):
            # A decorator may keep it for other code.
            return False
        return is_private(scope.name) and not self._takes_values(unit)

    def _needs_evaluation(self, unit: Unit, callers: Callers) -> bool:
        """Return whether a function may be used by other code than what is evaluated, or than layers."""
        if unit.scope is None:
            return True
        name = unit.scope.name
        if is_test(unit.module.path) and not self._seen.may_be_seen(unit):
            return False
        if unit.around:
            return True
        if not unit.scope.decorator_list and is_private(name) and not self._places.of(unit) and callers.is_unused(name):
            return False
        return not callers.only_called(name) and (bool(self._places.of(unit)) or not callers.only_in_layers(name))

    # --- one attempt ------------------------------------------------------------------------------

    def _prove(self, current: Round) -> None:
        """Evaluate all units until no code leaves a new state."""
        ways = self._ways = Ways()
        self._differing_paths = []
        known = (0, 0, 0)
        while known != (known := (len(current.states.pairs), len(current.records.pairs), len(self._units))):
            if max(known[:2]) > _MOST_STATES:
                current.failed.update(dict.fromkeys(current.kept, "the settings of the project have too many values"))
                return
            for unit in [one for one in self._units if self._may_leave_states(one)]:
                self._prove_unit(unit, current)
                if current.failed.keys() >= current.forms.keys():
                    # No other code shows more.
                    return
        self._vary(current)
        # Tests leave no states that other code gets.
        ways.close()
        for unit in [one for one in self._units if is_test(one.module.path)]:
            self._prove_unit(unit, current)
        self._add_differences(ways, current)

    def _may_leave_states(self, unit: Unit) -> bool:
        """Return whether code of the project may get objects of a unit with other settings than before."""
        return not is_test(unit.module.path) or any(is_test(path) for path, _ in self._places.of(unit))

    def _vary(self, current: Round) -> None:
        """Compare code that asks for modules with objects that have other ones than those of the project."""
        states = list(enumerate(current.states.pairs))
        for unit in [one for one in self._units if not is_test(one.module.path)]:
            progress = current.progress.get(unit)
            names = modules_named(unit, self._code.get(unit, Code())) if progress and progress.opens == 1 else ()
            for number, pair in states if names else ():
                for other in varied(pair, names):
                    self._compare_variation(unit, number, other, current)

    def _compare_variation(self, unit: Unit, number: int, pair: StatePair, current: Round) -> None:
        """Note how a unit differs with a variation of a state, which is as it is by the same changes."""
        possible = self._variations.setdefault((unit, pair), [])
        known = next((one for one in reversed(possible) if one.holds_in(current.after)), None)
        if known is None:
            known = self._varied(unit, pair, current)
            possible.append(known)
        for one in known.comparisons:
            uses = self._changes_at(one.uses) & current.kept
            if one.difference and one.opened and (uses or number):
                self._differing_paths.append((unit, uses, ((OBJECT, number),), one.difference))

    def _varied(self, unit: Unit, pair: StatePair, current: Round) -> Known:
        """Return the comparisons of a unit with one state that no code leaves; none if it is not followed then."""
        touched, old = Touched(), Unknowns([pair[0]])
        states = StatesOfUnit([pair], old, replace(old, states=[pair[1]]))
        comparisons = list[Comparison]()
        try:
            comparisons += self._comparer.compare(unit, current.after, states, lambda _path: True, touched)
        except (CannotFollowError, NotFollowedError):
            comparisons.clear()
        modules = {path: current.after.read(path) for path in touched.after.files}
        return Known(touched.after, modules, tuple(comparisons), None, touched.is_open, touched.has_records)

    def _prove_unit(self, unit: Unit, current: Round) -> None:
        if unit in self._replaced or self._is_proved_as_function(unit, current):
            return
        progress = current.progress.setdefault(unit, Progress())
        count = len(current.states.pairs)
        if progress.records and progress.records < len(current.records.pairs):
            progress.states = 0
        if progress.states and (not progress.opens or progress.states == count):
            return
        # One object has the new states; of several, each may have them all.
        first = progress.states if progress.opens == 1 else 0
        try:
            opens = progress.opens
            if not progress.states:
                # Most code that is not followed shows that with one state.
                opens = self._compare(unit, range(1), current)
                first = int(opens == 1)
            if opens == 1:
                # Each state alone: what a unit does with one is kept for later rounds.
                alone = (self._compare(unit, range(at, at + 1), current) for at in range(first, count))
                opens = max(alone, default=1)
            elif opens and first < count:
                opens = self._compare(unit, range(first, count), current)
            if opens > 1 and first:
                opens = self._compare(unit, range(count), current)
        except CannotFollowError as error:
            self._not_followed(unit, error, current)
            return
        progress.states, progress.opens = count, max(opens, progress.opens)

    def _is_proved_as_function(self, unit: Unit, current: Round) -> bool:
        """Evaluate the function that a part only calls; return whether it is followed, so that the part does the same.

        Most programs end with `main()`.
        """
        if (called := self._called.get(unit)) is None:
            return False
        self._prove_unit(called, current)
        return called not in self._replaced

    def _not_followed(self, unit: Unit, error: CannotFollowError, current: Round) -> None:
        """Evaluate the parts of a function that is not followed; code that is no function is not proved."""
        reason = str(error)
        if unit.shown_at:
            reason = f"what tests do with the settings at {unit.place} is not followed: {reason}"
            current.failed |= dict.fromkeys(self._seen.by_test(unit) & current.kept - current.failed.keys(), reason)
            return
        if not unit.nodes:
            assert unit.scope is not None
            is_evaluated = isinstance(error, TooManyPathsError) or not self._seen.may_return_object(
                unit.scope, unit.module
            )
            if not is_evaluated and not is_test(unit.module.path):
                # Code that is not known may get an object that it returns.
                for name in self._seen.by_function(unit) & current.kept:
                    current.failed.setdefault(name, f"`{unit.scope.name}` is not followed: {reason}")
            if is_test(unit.module.path):
                reason = f"the test at {unit.place} is not followed: {reason}"
                current.failed |= dict.fromkeys(
                    self._seen.by_whole(unit) & current.kept - current.failed.keys(), reason
                )
            parts = self._parts_around(unit, error) or parts_of_function(unit, self.relevance.uses_in(unit.module.path))
            inner = [one for one in only_called_in(unit) if one.scope and self.relevance.is_relevant(one.scope)]
            self._replace(unit, [*parts, *inner], current)
            return
        parts = self._parts_around(unit, error) if unit.is_beginning else []
        if parts := parts or smaller_parts(unit, self.relevance.uses_in(unit.module.path)):
            self._replace(unit, parts, current)
            return
        current.progress[unit] = Progress(len(current.states.pairs))
        own = frozenset(self._places.of(unit) & current.kept)
        if not is_test(unit.module.path):
            self._open(unit)
        else:
            reason = f"the test at {unit.place} is not followed: {reason}"
            own |= self._seen.by_part_of_test(unit, error) & current.kept
        may_set = names_settings(unit) or self._is_hidden_setter(unit) or self._uses_table(unit)
        if not own and may_set and not is_test(unit.module.path):
            own = current.kept
            reason = f"the code at {unit.place} may set or read the settings, and is not followed"
        for name in own:
            current.failed.setdefault(name, reason)

    def _parts_around(self, unit: Unit, error: CannotFollowError) -> list[Unit]:
        """Return the beginning of a test that is followed, and the parts of its rest.

        What the beginning of other code does with an object would be one more state for all code.
        """
        is_split = is_test(unit.module.path)
        uses = self.relevance.uses_in(unit.module.path)
        return parts_around(unit, error.statement, uses) if is_split else []

    def _replace(self, unit: Unit, parts: Sequence[Unit], current: Round) -> None:
        self._replaced.add(unit)
        at = self._units.index(unit)
        self._units[at : at + 1] = parts
        for part in parts:
            self._prove_unit(part, current)

    def _open(self, unit: Unit) -> None:
        """Evaluate the functions alone that code calls which is not followed."""
        words = {word for node in unit.nodes for word in words_of(node)}
        self._open_closed(lambda scope: scope.name in words)

    def _open_closed(self, is_opened: Callable[[AnyFunction], bool]) -> None:
        called = [one for one in self._closed if one.scope and is_opened(one.scope) and not is_test(one.module.path)]
        self._closed = [one for one in self._closed if one not in called]
        self._units += called

    @cached_property
    def _references(self) -> References:
        return References(self.modules)

    @cached_property
    def _places(self) -> ChangePlaces:
        return ChangePlaces(self.modules, self._references, self.changes)

    @cached_property
    def _seen(self) -> SeenChanges:
        return SeenChanges(self._places, self.relevance, self._files, self.files_with)

    @cached_property
    def _hidden(self) -> HiddenSetters:
        return HiddenSetters(Places(self.files_with, self._references))

    @cached_property
    def _setters(self) -> list[HiddenSetter]:
        return self._hidden.find()

    def _is_hidden_setter(self, unit: Unit) -> bool:
        """Return whether the code of a part may set a setting by a name that it computes."""
        return unit.scope in self._hidden_functions and any(
            sets_by_computed_name(node) for root in unit.nodes for node in walk(root)
        )

    def _uses_table(self, unit: Unit) -> bool:
        """Return whether the code of a part uses a dict with settings, which it may give to an object."""
        if is_test(unit.module.path):
            return False
        used = code_used_by(((node, unit.module) for node in unit.nodes), self._references)
        return any(map(is_table, used))

    @cached_property
    def _hidden_functions(self) -> frozenset[ast.AST | None]:
        """The functions that may set a setting by a name that they compute, with those that they define."""
        return frozenset(node for one in self._setters for node in walk(one.function.node))

    def _with_callers(self) -> tuple[str, ...]:
        """Return the files with settings, and those that use what changes, or private functions that get objects."""
        files = tuple(dict.fromkeys((*self.seeds, *self._hidden.files(self._setters))))
        known = set[str]()
        while True:
            relevance = relevance_of(self._references, files, [one.function for one in self._setters])
            names = set(self._places.leading(files))
            for path in files:
                if (module := self.modules.read(path)) is None or is_test(path):
                    continue
                names |= {
                    node.name
                    for name, node, _ in functions_of(module)
                    if node.name in relevance.words and self._may_be_closed(Unit(name, module, node))
                }
            if names <= known:
                seeing = watching(sorted(known), files, self._places, relevance, self.files_with)
                helped = using(filter(is_test, files), self.files_with) & set(self.files_with(sorted(known)))
                return tuple(dict.fromkeys((*files, *seeing, *sorted(helped))))
            new = {path for path in self.files_with(sorted(names - known)) if not is_test(path)} - set(files)
            known |= names
            files += tuple(sorted(new))

    def _compare(self, unit: Unit, numbers: range, current: Round) -> int:
        """Compare a unit with its edited text for some states; return how many objects it gets from other code."""
        opens, records = self._compare_with(unit, numbers, range(1), current)
        count = len(current.records.pairs)
        if not records or count == 1:
            return opens
        if len(numbers) > 1 or records > 1:
            return self._compare_with(unit, numbers, range(count), current)[0]
        # Each record alone: what a unit does with one is kept for later.
        for record in range(1, count):
            if not numbers.start or numbers.start in current.sources.get(record, ()):
                more, records = self._compare_with(unit, numbers, range(record, record + 1), current)
                opens = max(opens, more)
                if records > 1:
                    return self._compare_with(unit, numbers, range(count), current)[0]
        return opens

    def _compare_with(self, unit: Unit, numbers: range, records: range, current: Round) -> tuple[int, int]:
        """Compare a unit for some states of objects and records; return how many of both it gets from other code."""
        key = self._key(unit, numbers, records, current)
        of_state = self._by_state.get(key, ()) if len(numbers) == len(records) == 1 else ()
        possible = (*self._known.get(unit, ()), *of_state)
        known = next((one for one in reversed(possible) if one.holds_in(current.after)), None)
        if known is None:
            known = self._compared(unit, numbers, records, current)
            if not known.gets_objects:
                self._known.setdefault(unit, []).append(known)
            elif len(numbers) == len(records) == 1 and not (known.gets_records and is_test(unit.module.path)):
                self._by_state.setdefault(key, []).append(known)
        opens = opened_records = 0
        for one in known.comparisons:
            opens, opened_records = max(opens, one.opens), max(opened_records, len(one.opened_records))
            self._note(unit, (numbers, records), one, current)
        if known.error is not None:
            raise known.error
        return opens, opened_records

    def _compared(self, unit: Unit, numbers: range, records: range, current: Round) -> Known:
        """Return the comparisons of a unit, and what they depend on."""
        touched, comparisons = Touched(), list[Comparison]()
        failure: CannotFollowError | None = None
        states = _states_of(unit, numbers, records, current)

        def needs(before: Path) -> bool:
            # A test that gets no object of code that changes is the same, unless it uses code that changes.
            opened = [(OBJECT, numbers[at]) for _, at in before.opened]
            if not opened or not is_test(unit.module.path) or self._changes_at(before.uses) & current.kept:
                return True
            opened += [(RECORD, records[at]) for _, at in before.opened_records]
            return self._ways.within(opened, self._seen.by_test(unit))

        while failure is None:
            comparisons.clear()
            try:
                comparisons += self._comparer.compare(unit, current.after, states, needs, touched)
                break
            except NotFollowedError as error:
                touched.not_followed.add(error.node)
            except CannotFollowError as error:
                failure = error.with_traceback(None)
        self._code.setdefault(unit, Code()).add(touched.before)
        if touched.not_followed:
            self._open_closed(lambda scope: scope in touched.not_followed)
        modules = {path: current.after.read(path) for path in touched.after.files}
        return Known(touched.after, modules, tuple(comparisons), failure, touched.is_open, touched.has_records)

    def _key(self, unit: Unit, numbers: range, records: range, current: Round) -> _Key:
        """Return what the comparisons of a unit depend on that gets one object, and perhaps one record."""
        pair, record = current.states.pairs[numbers.start], current.records.pairs[records.start]
        is_pair = not numbers.start or not records.start or numbers.start in current.sources.get(records.start, ())
        is_needed = not is_test(unit.module.path) or self._ways.within(
            [(OBJECT, numbers.start)], self._seen.by_test(unit)
        )
        return unit, pair, record, is_pair, is_needed

    def _note(self, unit: Unit, compared: tuple[range, range], one: Comparison, current: Round) -> None:
        """Note the states that two paths leave, or how they differ.

        ``compared`` are the numbers of the states of objects and records with which the unit was compared.
        """
        numbers, records = compared
        if one.opened_records:
            current.progress[unit].records = len(current.records.pairs)
        uses = self._changes_at(one.uses) & current.kept
        is_by_release = not all(self._comparer.agrees(current.states.pairs[numbers[at]]) for at in one.opened)
        if is_by_release and not uses:
            # Without an edit, only the release makes it do something else.
            return
        sources = [(OBJECT, numbers[at]) for at in one.opened]
        sources += [(RECORD, records[at]) for at in one.opened_records]
        if one.difference:
            pairs = [current.states.pairs[numbers[at]] for at in one.opened]
            pairs += [current.records.pairs[records[at]] for at in one.opened_records]
            # The old release does not have all settings of some: no program of it has this object.
            if any(is_new(before) for before, _ in pairs):
                return
            if uses or any(number for _, number in sources):
                self._differing_paths.append((unit, uses, tuple(sources), one.difference))
                return
        if one.meets_change:
            current.met |= uses
        current.owned |= self._changes_at(one.uses_megatron)
        if is_test(unit.module.path) or unit.shown_at:
            current.passed |= uses
        if not is_by_release and _leaves_states(unit, uses):
            self._add_states(one, uses, sources, current)
        if uses or len(sources) > 1:
            # What it does is the same only with all that leads to what it gets.
            current.needs.append((uses, tuple(sources)))

    def _changes_at(self, places: Iterable[Place]) -> Way:
        """Return the changes at places of code."""
        return frozenset(name for place in places for name in self._places.names_at(place))

    def _add_states(self, one: Comparison, uses: Way, sources: Sequence[State], current: Round) -> None:
        objects = [number for kind, number in sources if kind == OBJECT]
        for record in one.records:
            number = current.records.add(record)
            current.sources.setdefault(number, set()).update(objects)
            self._ways.lead(uses, sources, (RECORD, number))
        for state in one.left:
            if not is_new(state[0]):
                self._ways.lead(uses, sources, (OBJECT, current.states.add(shortened(state))))

    def _add_differences(self, ways: Ways, current: Round) -> None:
        """Note which changes are not proved together: those of each way to objects with which code differs."""
        for unit, uses, sources, difference in self._differing_paths:
            seen = self._seen.by_test(unit) if is_test(unit.module.path) else current.kept
            for way in ways.through(uses, sources):
                if way and way - uses <= seen:
                    current.differences.setdefault(way, Difference(difference, unit.module.path))
        current.counts = ways.counts()
        current.groups = _joined(
            way for uses, sources in dict.fromkeys(current.needs) for way in ways.through(uses, sources)
        )


def _states_of(unit: Unit, numbers: range, of_records: range, current: Round) -> StatesOfUnit:
    """Return what the objects and records have that a unit gets, before and after the edits."""
    pairs = current.states.pairs[numbers.start : numbers.stop]
    records = current.records.pairs[of_records.start : of_records.stop]
    old = Unknowns(
        [one[0] for one in pairs],
        numbers.start,
        [one[0] for one in records],
        of_records.start,
        [frozenset(current.sources.get(number, ())) for number in of_records],
        is_test(unit.module.path) and may_have_fakes(unit.module),
    )
    return StatesOfUnit(pairs, old, replace(old, states=[one[1] for one in pairs], records=[one[1] for one in records]))


def _leaves_states(unit: Unit, uses: Way) -> bool:
    """Return whether code of the project may get the objects of a unit: those of tests only if a test changes."""
    return not is_test(unit.module.path) or (not unit.shown_at and any(is_test(path) for path, _ in uses))


def names_settings(unit: Unit) -> bool:
    """Return whether the code of a part names a setting itself."""
    for root in unit.nodes:
        for node in walk(root):
            match node:
                case ast.Attribute(attr=name) | ast.Constant(value=name) | ast.keyword(arg=name) if name in SETTINGS:
                    return True
                case ast.Call(func=ast.Name(id="exec"), args=[ast.Constant(value=str() as text), *_]):
                    return any(name in text for name in SETTINGS)
    return False


def _joined(needs: Iterable[frozenset[Name]]) -> list[frozenset[Name]]:
    """Return the changes that are needed together, each in one group; a change that nothing needs is in none."""
    group_of: dict[Name, set[Name]] = {}
    for one in dict.fromkeys(needs):
        touching = {id(group_of[name]): group_of[name] for name in one if name in group_of}
        joined = max(touching.values(), key=len, default=set[Name]())
        others = [group for group in touching.values() if group is not joined]
        joined.update(one, *others)
        group_of |= dict.fromkeys([name for group in (one, *others) for name in group], joined)
    return [frozenset(group) for group in {id(group): group for group in group_of.values()}.values()]

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

from cgmigrate.linking.python.callers import Callers, FilesWith, takes_objects
from cgmigrate.linking.python.calls import value_of_call
from cgmigrate.linking.python.evaluation import Handlers, Path, Run, Unknowns, paths_of
from cgmigrate.linking.python.layers import copies_built, is_layer
from cgmigrate.linking.python.leading_code import FunctionFacts, closed, facts_of, relevance_of, returns_value, words_of
from cgmigrate.linking.python.modules import IMPORTS_BY_NAME, Import, Module, Modules, is_test
from cgmigrate.linking.python.outcomes import agree
from cgmigrate.linking.python.path_pairs import is_new, left_by, outcome, plain, records_of, shortened
from cgmigrate.linking.python.pieces import (
    Unit,
    functions_of,
    part_of,
    parts_of_function,
    parts_of_top,
    unit_of,
)
from cgmigrate.linking.python.relevance import Relevance
from cgmigrate.linking.python.rounds import Change, Name, Place, Progress, Releases, Round
from cgmigrate.linking.python.statements import execute, store
from cgmigrate.linking.python.test_reach import may_have_fakes, reach_of
from cgmigrate.linking.python.unknown_origins import WORDS as COMPUTING
from cgmigrate.linking.python.unknown_origins import reached_by_computed_names
from cgmigrate.linking.python.values import CannotFollowError, FrozenSettings
from cgmigrate.linking.python.world import SETTINGS, World, is_enumeration
from cgmigrate.megatron.settings import DEPRECATED, IMPL
from cgmigrate.megatron.types import Reader

_HANDLERS = Handlers(value_of_call, execute, store)
_MOST_ROUNDS = 24
"""How often edits fail, and the rest is proved again."""
_MOST_STATES = 1024


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two paths through a unit, for some states, with the changes that they use and those that lead to its objects."""

    unit: Unit
    numbers: range
    before: Path
    after: Path
    uses: frozenset[Name]
    origins: frozenset[Name]


@dataclass(slots=True)
class Proofs:
    """The proofs of some changes. ``edited`` returns the modules with some changes made, by their names.

    ``seeds`` are the files of the project with settings.
    """

    modules: Modules
    seeds: Sequence[str]
    changes: Sequence[Change]
    releases: Releases
    edited: Callable[[Collection[Name]], Modules]
    files_with: FilesWith
    failed: dict[Name, str] = field(default_factory=dict)
    """Why a change is not proved."""
    _units: list[Unit] = field(default_factory=list)
    _closed: list[Unit] = field(default_factory=list)
    """Functions that only code calls which is evaluated."""
    _files: tuple[str, ...] = ()
    _users: dict[str, list[FunctionFacts]] = field(default_factory=dict)
    _at: dict[Place, set[Name]] = field(default_factory=dict)
    _relevance: Relevance | None = None
    _seeing: dict[str, bool] = field(default_factory=dict)
    """Whether tests of a file may get an object of code that changes, as far as that was evaluated."""
    _tests: dict[Place, frozenset[Name]] = field(default_factory=dict)
    """The changes that tests may see, by the place of the test."""

    def components(self) -> list[frozenset[Name]]:
        """Return the changes that are proved, in groups of which each is proved only as a whole."""
        for change in self.changes:
            for place in change.places:
                self._at.setdefault(place, set()).add(change.name)
        changed = {one.path for one in self.changes}
        for path, code in reached_by_computed_names(self.files_with(COMPUTING), self.modules, changed):
            reason = f"the code at {code} may get its object, and sets attributes by names that it computes"
            self.failed.update({one.name: reason for one in self.changes if one.path == path})
        files = self._files = self._with_callers()
        self._relevance = relevance_of(self.modules, files)
        units = list(self._all_units(files))
        callers = Callers(self.modules, files, self.files_with)
        callers.find({one.scope.name for one in units if one.scope and _may_be_closed(one, self.relevance)})
        for one in units:
            (self._units if self._needs_evaluation(one, callers) else self._closed).append(one)
        for _ in range(_MOST_ROUNDS):
            kept = frozenset(one.name for one in self.changes if one.name not in self.failed)
            if not kept:
                return []
            current = Round(kept, self.edited(kept))
            self._prove(current)
            current.blame()
            if not current.failed:
                return _joined(current.needs)
            self.failed |= current.failed
        return []

    @property
    def _worlds(self) -> tuple[World, World]:
        return World(self.releases.source, Reader.BRIDGE), World(self.releases.target, Reader.BRIDGE)

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
            yield from parts_of_top(module, self.relevance.is_relevant)
            for name, node, inside in functions_of(module):
                is_layers = inside is not None and is_layer(inside, module, self.modules)
                if self.relevance.is_relevant(node) and not is_layers and not copies_built(node, module, self.modules):
                    yield Unit(name, module, node)

    def _needs_evaluation(self, unit: Unit, callers: Callers) -> bool:
        """Return whether a function may be used by other code than what is evaluated, or than layers."""
        if unit.scope is None:
            return True
        name = unit.scope.name
        if is_test(unit.module.path) and not self._own(unit) and not self._may_see_changes(unit.module):
            return False
        return not callers.only_called(name) and (bool(self._own(unit)) or not callers.only_in_layers(name))

    # --- one attempt ------------------------------------------------------------------------------

    def _prove(self, current: Round) -> None:
        """Evaluate all units until no code leaves a new state."""
        known = (0, 0, 0)
        while known != (known := (len(current.states.pairs), len(current.records.pairs), len(self._units))):
            if max(known[:2]) > _MOST_STATES:
                current.failed.update(dict.fromkeys(current.kept, "the settings of the project have too many values"))
                return
            for unit in list(self._units):
                self._prove_unit(unit, current)

    def _prove_unit(self, unit: Unit, current: Round) -> None:
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
            if opens and first < count:
                opens = self._compare(unit, range(first, count), current)
            if opens > 1 and first:
                opens = self._compare(unit, range(count), current)
        except CannotFollowError as error:
            self._not_followed(unit, str(error), current)
            return
        progress.states, progress.opens = count, max(opens, progress.opens)

    def _not_followed(self, unit: Unit, reason: str, current: Round) -> None:
        """Evaluate the parts of a function that is not followed; code that is no function is not proved."""
        if not unit.nodes:
            assert unit.scope is not None
            if returns_value(unit.scope) and not is_test(unit.module.path):
                for name in self._reached(unit) & current.kept:
                    current.failed.setdefault(name, f"`{unit.scope.name}` is not followed: {reason}")
            parts = parts_of_function(unit, self.relevance.is_relevant)
            at = self._units.index(unit)
            self._units[at : at + 1] = parts
            for part in parts:
                self._prove_unit(part, current)
            return
        current.progress[unit] = Progress(len(current.states.pairs))
        own = frozenset(self._own(unit) & current.kept)
        if not is_test(unit.module.path):
            self._open(unit)
        else:
            reason = f"the test at {unit.place} is not followed: {reason}"
            is_read = any(self._is_read(part, unit.module.path) for node in unit.nodes for part in ast.walk(node))
            own |= self._of_test(unit) & current.kept if is_read else frozenset()
        if not own and names_settings(unit) and not is_test(unit.module.path):
            own = current.kept
            reason = f"the code at {unit.place} may set or read the settings, and is not followed"
        for name in own:
            current.failed.setdefault(name, reason)

    def _open(self, unit: Unit) -> None:
        """Evaluate the functions alone that code calls which is not followed."""
        words = {word for node in unit.nodes for word in words_of(node)}
        called = [
            one
            for one in self._closed
            if one.scope is not None and one.scope.name in words and not is_test(one.module.path)
        ]
        self._closed = [one for one in self._closed if one not in called]
        self._units += called

    def _of_test(self, unit: Unit) -> frozenset[Name]:
        """Return the changes that a test may see: its own, and those in the code that it uses."""
        key = (unit.module.path, unit.scope.lineno if unit.scope else 0)
        if key not in self._tests:
            reach = reach_of(unit.scope, unit.module, self.modules)
            every = self._with_words(reach.words) if reach.is_known else {one.name for one in self.changes}
            self._tests[key] = frozenset(
                every | self._in_lines(unit.module.path, *(_lines(unit.scope) if unit.scope else unit.lines))
            )
        return self._tests[key]

    def _is_read(self, node: ast.AST, path: str) -> bool:
        """Return whether code of a test reads a deprecated setting, and does not change."""
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) | ast.Call(args=[_, ast.Constant(value=name), *_]):
                return name in DEPRECATED and not self._at.get((path, node.lineno))
            case ast.Compare(left=ast.Attribute(attr=name), comparators=[ast.Constant(value="local")]):
                return name == IMPL and not self._at.get((path, node.lineno))
            case ast.Constant(value=str() as text):
                # An override: `model.cuda_graph_scope=[]`.
                return any(f"{name}=" in text for name in DEPRECATED)
        return False

    def _reached(self, unit: Unit) -> set[Name]:
        """Return the changes in the code that a function uses, by the names in it."""
        return self._own(unit) | self._with_words(words_of(unit.scope))

    def _with_words(self, words: Iterable[str]) -> set[Name]:
        """Return the changes in the functions that have one of some names, and in those that these use."""
        if not self._users:
            for path in self._files:
                for one in facts_of(self.modules.read(path)):
                    self._users.setdefault(one.name, []).append(one)
        reached, waiting, seen = set[Name](), list(words), set[str]()
        while waiting:
            word = waiting.pop()
            if word in seen:
                continue
            seen.add(word)
            for one in self._users.get(word, ()):
                reached |= self._in_lines(one.path, *one.lines)
                waiting += one.words
        return reached

    def _may_see_changes(self, module: Module) -> bool:
        """Return whether a test may get an object of code that changes: it imports it, or by names that it computes."""
        if module.path not in self._seeing:
            self._seeing[module.path] = self._sees_changes(module)
        return self._seeing[module.path]

    def _sees_changes(self, module: Module) -> bool:
        if _imports_by_name(module):
            return True
        if any(self._own(one) for one in self._helpers(module)):
            return True
        changed = {one.path for one in self.changes} - {module.path}
        folders = {folder for path in changed for folder in _folders_of(path)}
        return any(
            path in changed or (path.endswith("__init__.py") and path.removesuffix("/__init__.py") in folders)
            for path in self.modules.all_imported(module)
        )

    def _helpers(self, module: Module) -> Iterator[Unit]:
        """Yield the functions of a module of tests that its tests may call."""
        for name, node, _ in functions_of(module):
            if not node.name.startswith("test"):
                yield Unit(name, module, node)

    def _with_callers(self) -> tuple[str, ...]:
        """Return the files with settings, and those that use what changes, or private functions that get objects."""
        files = tuple(dict.fromkeys(self.seeds))
        known = set[str]()
        while True:
            relevance = relevance_of(self.modules, files)
            names = set(self._leading(files))
            for path in files:
                if (module := self.modules.read(path)) is None or is_test(path):
                    continue
                names |= {
                    node.name
                    for name, node, _ in functions_of(module)
                    if node.name in relevance.words and _may_be_closed(Unit(name, module, node), relevance)
                }
            if names <= known:
                return files
            new = {path for path in self.files_with(sorted(names - known)) if not is_test(path)} - set(files)
            known |= names
            files += tuple(sorted(new))

    def _leading(self, files: Iterable[str]) -> frozenset[str]:
        """Return the functions that change, and those that use them, by their names."""
        functions = [one for path in files if not is_test(path) for one in facts_of(self.modules.read(path))]
        changed = {one.name for one in functions if self._in_lines(one.path, *one.lines)}
        return frozenset(
            one.removeprefix(".")
            for one in closed(
                functions, lambda one, known: one.name in changed or (one.may_leave and not known.isdisjoint(one.words))
            )
        )

    def _in_lines(self, path: str, first: int, last: int) -> set[Name]:
        return {name for line in range(first, last + 1) for name in self._at.get((path, line), ())}

    def _own(self, unit: Unit) -> set[Name]:
        return self._in_lines(unit.module.path, *unit.lines)

    def _compare(self, unit: Unit, numbers: range, current: Round) -> int:
        """Compare a unit with its edited text for some states; return how many objects it gets from other code."""
        edited = self._edited(unit, current)
        opens = 0
        unknowns = _both_unknowns(unit, numbers, current)
        for before in self._paths(unit, self.modules, self._worlds[0], unknowns[0], {}):
            opens = max(opens, len(before.opened))
            if before.opened_records:
                current.progress[unit].records = len(current.records.pairs)
            is_of_test = is_test(unit.module.path)
            if before.error and (is_of_test or before.opened or before.opened_records):
                # No code that works gets there.
                continue
            uses, origins = self._changes_of(unit, before, numbers, current)
            if is_of_test and before.opened and not origins:
                # The test does not get this object.
                continue
            for after in self._new_paths(edited, current, self._worlds[1], unknowns[1], dict(before.choices)):
                opens = max(opens, len(after.opened))
                self._compare_paths(_Pair(unit, numbers, before, after, uses, origins), current)
        return opens

    def _changes_of(
        self, unit: Unit, before: Path, numbers: range, current: Round
    ) -> tuple[frozenset[Name], frozenset[Name]]:
        """Return the changes that a path uses, and those that lead to the objects that it gets."""
        uses = {name for place in before.uses for name in self._at.get(place, ())} & current.kept
        origins = {name for _, at in before.opened for name in current.states.origins[numbers[at]]}
        origins |= {name for _, at in before.opened_records for name in current.records.origins[at]}
        if is_test(unit.module.path):
            origins &= self._of_test(unit)
        return frozenset(uses), frozenset(origins & current.kept)

    def _compare_paths(self, pair: _Pair, current: Round) -> None:
        """Note the states that two paths leave, or how they differ."""
        unit, uses, both = pair.unit, pair.uses, pair.uses | pair.origins
        left = list(left_by(pair.before, pair.after, current.states.pairs[pair.numbers.start : pair.numbers.stop]))
        if reason := self._difference(unit, pair.before, pair.after, left):
            if any(map(is_new, self._settings_of_unknowns(pair, current))):
                # The old release does not have all its settings: no program of it has this object.
                return
            if both:
                current.differences.setdefault(both, reason)
                return
        if not is_test(unit.module.path):
            self._add_states(pair, left, current)
        if uses:
            current.needs.append(both if self._own(unit) & uses else uses)

    def _add_states(self, pair: _Pair, left: Iterable[tuple[FrozenSettings, FrozenSettings]], current: Round) -> None:
        both = pair.uses | pair.origins
        for record in records_of(pair.before, pair.after):
            number = current.records.add(record, both)
            current.sources.setdefault(number, set()).update(pair.numbers[at] for _, at in pair.before.opened)
        for state in left:
            if not is_new(state[0]):
                current.states.add(shortened(state), both)

    def _settings_of_unknowns(self, pair: _Pair, current: Round) -> Iterator[FrozenSettings]:
        """Yield the settings of the objects and records that a path gets from other code."""
        yield from (current.states.pairs[pair.numbers[at]][0] for _, at in pair.before.opened)
        yield from (current.records.pairs[number][0] for _, number in pair.before.opened_records)

    def _edited(self, unit: Unit, current: Round) -> Unit | None:
        module = current.after.read(unit.module.path)
        if module is unit.module:
            return unit
        if module is None:
            raise CannotFollowError(f"{unit.module.path} is not read after the edits")
        if unit.nodes:
            return part_of(module, unit.name, self.relevance.is_relevant)
        return unit_of(module, unit.name)

    def _new_paths(
        self, edited: Unit | None, current: Round, world: World, unknowns: Unknowns, decided: Mapping[str, int]
    ) -> Iterator[Path]:
        if edited is None:
            # All of its statements are deleted.
            yield Path()
            return
        yield from self._paths(edited, current.after, world, unknowns, decided)

    def _paths(
        self, unit: Unit, modules: Modules, world: World, unknowns: Unknowns, decided: Mapping[str, int]
    ) -> Iterator[Path]:
        def run_of(planned: Sequence[int]) -> Run:
            return Run(modules, world, self.relevance, _HANDLERS, unknowns, planned, decided)

        return paths_of(unit.name.partition("#")[0], unit.evaluate, run_of)

    def _difference(
        self,
        unit: Unit,
        before: Path,
        after: Path,
        left: Iterable[tuple[FrozenSettings, FrozenSettings]],
    ) -> str:
        """Return what is different after the edits, empty if nothing is."""
        name = unit.name.partition("#")[0]
        if before.error != after.error:
            return f"`{name}` would end with {after.error or 'no error'} ({unit.place})"
        if not all(agree(plain(old), plain(new), *self._worlds) for old, new in left):
            return f"`{name}` would give the settings another meaning ({unit.place})"
        if outcome(before, self._worlds[0]) != outcome(after, self._worlds[1]):
            return f"`{name}` would do something else with the settings ({unit.place})"
        return ""


def _both_unknowns(unit: Unit, numbers: range, current: Round) -> tuple[Unknowns, Unknowns]:
    """Return what the objects and records have that a unit gets, before and after the edits."""
    pairs = current.states.pairs[numbers.start : numbers.stop]
    records = current.records.pairs
    sources = [frozenset(current.sources.get(number, ())) for number in range(len(records))]
    has_fakes = is_test(unit.module.path) and may_have_fakes(unit.module)
    old = Unknowns([one[0] for one in pairs], numbers.start, [one[0] for one in records], sources, has_fakes)
    return old, replace(old, states=[one[1] for one in pairs], records=[one[1] for one in records])


def _may_be_closed(unit: Unit, relevance: Relevance) -> bool:
    """Return whether all uses of a function may be known: it is no method, and private or only reads settings."""
    scope = unit.scope
    if scope is None or "." in unit.name or not takes_objects(scope) or scope.name.startswith("test"):
        return False
    return scope.name.startswith("_") or scope.name in relevance.readers


def _lines(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def is_shim(module: Module) -> bool:
    """Return whether a module imports a class of values of settings only where the release has it."""
    return any(
        isinstance(one, Import) and one.otherwise is not None and is_enumeration(f"{one.module}.{one.name}")
        for one in module.bindings.values()
    )


def _imports_by_name(module: Module) -> bool:
    return any(word in module.text for word in IMPORTS_BY_NAME) and any(map(_is_import, ast.walk(module.tree)))


def _is_import(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in IMPORTS_BY_NAME
    return False


def _folders_of(path: str) -> Iterator[str]:
    while (folder := path.rpartition("/")[0]) and folder != path:
        yield folder
        path = folder


def names_settings(unit: Unit) -> bool:
    """Return whether the code of a part names a setting itself."""
    for root in unit.nodes:
        for node in ast.walk(root):
            match node:
                case ast.Attribute(attr=name) | ast.Constant(value=str() as name) if name in SETTINGS:
                    return True
    return False


def _joined(needs: Iterable[frozenset[Name]]) -> list[frozenset[Name]]:
    """Return the changes that are needed together, each in one group; a change that nothing needs is in none."""
    groups: list[frozenset[Name]] = []
    for one in dict.fromkeys(needs):
        touching = [group for group in groups if group & one]
        groups = [group for group in groups if not group & one]
        groups.append(one.union(*touching))
    return groups

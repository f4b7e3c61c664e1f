"""Proofs that edits of several files leave what every object of a project captures as it is.

An object that an entry point makes itself begins with the defaults. One that it gets may have any *state* that code of
the project leaves: a pair of the settings before and after the edits. The states grow until no code leaves a new one.
Where an entry point differs, changes on its path are written in other forms, or withheld, until it does not.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.megatron.types import Reader
from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow.changes import Change, Releases
from cgmigrate.proof.flow.dynamic import WORDS, dynamic_lines
from cgmigrate.proof.flow.entries import TOP, Entry, EntryResult, Outcome, entries_of, evaluate
from cgmigrate.proof.flow.layers import is_layer, is_shim
from cgmigrate.proof.flow.modules import Module, Modules
from cgmigrate.proof.flow.names import holds_in
from cgmigrate.proof.flow.parts import kept_in_tests, names_deprecated, of_records, parts_of_names, read_paths
from cgmigrate.proof.flow.replacements import may_replace, replaces
from cgmigrate.proof.flow.run import Line, Lines, Name, Side, add_lines, bits
from cgmigrate.proof.flow.slices import Slice, functions_in, passes_function
from cgmigrate.proof.flow.states import Pair, Pool
from cgmigrate.proof.flow.world import World

_MOST_ROUNDS = 40
_MOST_STATES = 128
_Forms = Mapping[Name, int]


@dataclass(slots=True)
class _Round:
    """One evaluation of all entry points, with changes in some forms."""

    new: Side
    pool: Pool = field(default_factory=Pool)
    differing: list[tuple[Entry, int | None, Outcome]] = field(default_factory=list)
    errors: dict[Name, str] = field(default_factory=dict)
    counts: Counter[Name] = field(default_factory=Counter)
    proved: set[Name] = field(default_factory=set)
    met: set[Name] = field(default_factory=set)
    owned: set[Name] = field(default_factory=set)
    needs: set[frozenset[Name]] = field(default_factory=set)


@dataclass
class Proofs:
    """The proofs of some changes. ``edited`` returns the modules with changes made, each in one of its forms.

    ``seeds`` are the files of the project with settings; ``files_with`` returns the files that contain some words.
    """

    modules: Modules
    seeds: Sequence[str]
    changes: Sequence[Change]
    releases: Releases
    edited: Callable[[_Forms], Modules]
    files_with: Callable[[Collection[str]], Iterable[str]]
    failed: dict[Name, str] = field(default_factory=dict)
    """Why a change is not proved."""
    forms: dict[Name, int] = field(default_factory=dict)
    """The form in which a change is proved, if it is not the first one."""
    _known: dict[tuple[Entry, Pair | None], list[EntryResult]] = field(default_factory=dict)
    _at: dict[str, dict[int, frozenset[Name]]] = field(default_factory=dict)
    """The changes at the lines of files."""
    _by_name: dict[Name, Change] = field(default_factory=dict)
    _pool: Pool = field(default_factory=Pool)
    """The states that the code of the project leaves, which objects may have that tests get."""
    _readers: dict[Entry, EntryResult] = field(default_factory=dict)
    """The functions of which only what they read is compared, with why they are not followed."""
    _closed: set[Entry] = field(default_factory=set)
    """The functions that are only evaluated where others call them."""

    def accounted(self) -> frozenset[Line]:
        """Return the lines whose use of settings is known: those that were evaluated, and those of shims."""
        followed: Lines = {}
        for (entry, _), known in self._known.items():
            last = known[-1]
            if not last.error and (last.is_known if is_test(entry.path) else entry.name != TOP or entry.sets):
                add_lines(followed, last.lines)
        for (entry, _), known in self._known.items():
            if known[-1].error and entry.name != TOP:
                # Others may call it with the states of their own objects only.
                followed[entry.path] = followed.get(entry.path, 0) & ~bits(*entry.lines)
        lines = {(path, at) for path, own in followed.items() for at in range(own.bit_length()) if own >> at & 1}
        readers = {one.path for one in self.changes if one.reads and one.name not in self.failed}
        for path in self.seeds:
            module = self.modules.read(path)
            if module is not None:
                lines.update((path, line) for line in _of_shims_and_layers(module, self.modules))
                lines.update((path, line) for line in read_paths(module))
            if module is not None and is_test(path):
                lines.update((path, line) for line in kept_in_tests(module))
                if not readers.intersection(self.modules.all_imported(module)):
                    lines.update((path, line) for line in of_records(module))
        return frozenset(lines)

    def makers(self) -> Mapping[Name, frozenset[str]]:
        """Return the names of the functions, classes and modules through which code gets what a change is about."""
        names: dict[Name, set[str]] = {one.name: set() for one in self.changes}
        for (entry, _), known in self._known.items():
            words = {_stem(entry.path)} if entry.name == TOP else set(entry.name.split("."))
            for name in known[-1].uses if not is_test(entry.path) else ():
                names[name] |= words
        return {name: frozenset(words) for name, words in names.items()}

    def components(self) -> list[frozenset[Name]]:
        """Return the changes that are proved, in groups of which each is proved only as a whole."""
        self._by_name = {one.name: one for one in self.changes}
        for change in self.changes:
            for path, line in change.places:
                lines = self._at.setdefault(path, {})
                lines[line] = lines.get(line, frozenset()) | {change.name}
        if parts := parts_of_names(self.files_with, self.modules):
            where, at = next(iter(parts.items()))
            reason = f"{where}:{at[0]} may set or read it by a computed name"
            self.failed |= dict.fromkeys(self._made(), reason)
            return []
        product, tests = self._slices()
        before: object = None
        while before != (before := (len(self.failed), len(self._closed))):
            # What a test withholds may be needed by other code.
            if not self._settle([one for one in product if one[0] not in self._closed], of_tests=False):
                return []
            self._open_unreached()
            self._settle(tests, of_tests=True)
        current = self._round([one for one in product if one[0] not in self._closed], of_tests=False)
        groups = set(current.needs)
        groups |= self._round(tests, of_tests=True).needs
        return _joined(frozenset(one - self.failed.keys()) for one in groups)

    def _slices(self) -> tuple[list[tuple[Entry, Side]], list[tuple[Entry, Side]]]:
        """Return the entry points of the code and of the tests."""
        paths = list(dict.fromkeys((*self.seeds, *(one.path for one in self.changes))))
        world = World(self.releases.source, Reader.BRIDGE)
        code = [one for path in paths if not is_test(path) and (one := self.modules.read(path)) is not None]
        own = Slice()
        own.add(code)
        code += self._dynamic(code)
        own.add(code)
        while callers := self._callers(own, code):
            code += callers
            own.add(code)
        side = Side(self.modules, world, own, self._at)
        followed = {module.path for module in code}
        kept = [one for one in code if not is_shim(one) or any(change.path == one.path for change in self.changes)]
        product = [(entry, side) for module in kept for entry in entries_of(module, side)]
        self._closed = {entry for entry, _ in product if self._is_closed(entry, followed)}
        of_tests = [one for path in paths if is_test(path) and (one := self.modules.read(path)) is not None]
        replacing = self._replacing(own)
        of_tests += [one for one in replacing if one not in of_tests]
        helpers = self._helpers(of_tests)
        of_tests += [one for one in helpers if one not in of_tests]
        theirs = Slice(own)
        theirs.add(of_tests)
        other = Side(self.modules, world, theirs, self._at)
        tests = [
            (entry, other)
            for module in of_tests
            for entry in entries_of(module, other)
            if entry.label.startswith("test")
            and (module.path in self._at or names_deprecated(module) or module in replacing)
        ]
        return product, tests

    def _open_unreached(self) -> None:
        """Evaluate functions with settings as entry points that no other code reaches."""
        lines: Lines = {}
        for one in (one for known in self._known.values() for one in known if not one.error):
            add_lines(lines, one.lines)
        # A function that is not followed calls others with anything, by any name.
        called = frozenset().union(*map(self._calls, self._readers))
        called |= {one.word for one in self._closed if self._readers and self._is_passed(one)}
        followed = (one for one in self._closed if one.word not in called)
        self._closed = {one for one in followed if lines.get(one.path, 0) & bits(*one.lines)}

    def _is_passed(self, entry: Entry) -> bool:
        """Return whether code has a function as a value."""
        modules = map(self.modules.read, self.files_with([entry.word]))
        return any(one is not None and passes_function(one.tree, {entry.word}) for one in modules)

    def _calls(self, entry: Entry) -> frozenset[str]:
        """Return the names of what a function may call."""
        module = self.modules.read(entry.path)
        nodes = walk(dict(functions_in(module))[entry.name]) if module is not None else ()
        return frozenset(getattr(one, "attr", getattr(one, "id", "")) for one in nodes)

    def _is_closed(self, entry: Entry, followed: Collection[str]) -> bool:
        """Return whether only code that is followed calls a function: it is private, and no other file names it."""
        if not entry.name.startswith("_") or "." in entry.name:
            return False
        return all(path in followed or is_test(path) for path in self.files_with([entry.name]))

    def _dynamic(self, code: Sequence[Module]) -> list[Module]:
        """Return other modules that set attributes by names that are not written there."""
        known = {one.path for one in code}
        others = [path for path in self.files_with(WORDS) if path not in known and not is_test(path)]
        return self._with(dynamic_lines, (path for path in others if not is_part_of_megatron(path)))

    def _replacing(self, own: Slice) -> list[Module]:
        """Return the modules of tests that replace functions with settings by their own."""
        tests = filter(is_test, self.files_with(own.defined))
        some = (one for one in tests if may_replace(self.modules.text(one) or "", own.defined))
        return self._with(lambda one: replaces(one.tree, own.defined), some)

    def _helpers(self, of_tests: Sequence[Module]) -> list[Module]:
        """Return the modules that tests with changes import, and that set attributes by the keys of a table."""
        paths = {path for one in of_tests if one.path in self._at for path in self.modules.all_imported(one)}
        return self._with(dynamic_lines, filter(is_test, sorted(paths)))

    def _with(self, has: Callable[[Module], object], paths: Iterable[str]) -> list[Module]:
        """Return the modules that have something; the trees of the others are not kept."""
        own = [path for path in paths if (one := self.modules.seen(path)) is not None and has(one)]
        return [one for path in own if (one := self.modules.read(path)) is not None]

    def _callers(self, own: Slice, code: Sequence[Module]) -> list[Module]:
        """Return other modules that call functions which only read settings, or private ones that set them.

        These get what the modules give them.
        """
        called = {name for name in own.functions if name.startswith("_") or name not in own.writers} & own.defined
        called |= own.made
        known = {one.path for one in code}
        others = [path for path in self.files_with(called) if path not in known and not is_test(path)]
        return [one for path in others if (one := self.modules.read(path)) is not None]

    # --- rounds -----------------------------------------------------------------------------------

    def _settle(self, entries: Sequence[tuple[Entry, Side]], *, of_tests: bool) -> bool:
        """Withhold changes, or change their forms, until no entry point differs; return whether some are left."""
        for _ in range(_MOST_ROUNDS):
            current = self._round(entries, of_tests=of_tests)
            if not self._made():
                return False
            if not (self._mend(current, dict(entries)) or self._withhold_unused(current, of_tests)):
                return True
        reason = "the changes could not be proved within the limit of attempts"
        self.failed |= {one: reason for one in self._made() if is_test(one[0]) or not of_tests}
        return of_tests

    def _made(self) -> dict[Name, int]:
        return {one.name: self.forms.get(one.name, 0) for one in self.changes if one.name not in self.failed}

    def _side(self, forms: _Forms, base: Side) -> Side:
        return Side(self.edited(forms), World(self.releases.target, Reader.BRIDGE), base.slice, {})

    def _round(self, entries: Sequence[tuple[Entry, Side]], *, of_tests: bool) -> _Round:
        made = self._made()
        if not entries:
            return _Round(Side(self.modules, World(self.releases.target, Reader.BRIDGE), Slice(), {}))
        current = _Round(self._side(made, entries[0][1]))
        open_ones: list[tuple[Entry, Side]] = []
        for entry, old in entries:
            result = self._result(entry, old, current.new, None)
            if result.needs_state:
                open_ones.append((entry, old))
            else:
                self._note(entry, None, result, current, made)
        if of_tests:
            current.pool = self._pool
        number = 0
        while number < len(current.pool.pairs):
            if number >= _MOST_STATES:
                current.errors |= dict.fromkeys(made, "the settings of the project have too many values")
                break
            is_past = not current.pool.sources[number] <= made.keys()
            for entry, old in [] if of_tests and is_past else list(open_ones):
                result = self._result(entry, old, current.new, current.pool.pairs[number])
                self._note(entry, number, result, current, made)
                if result.error:
                    open_ones.remove((entry, old))
            number += 1
        self._pool = current.pool
        self._check_readers(current, made)
        return current

    def _check_readers(self, current: _Round, made: _Forms) -> None:
        """Note an error for what calls functions that set settings: it may read what they have not yet set."""
        words = {entry.word for entry, _ in self._known if entry.writes and not is_test(entry.path)}
        for entry, result in self._readers.items():
            if self._calls(entry) & (words - {entry.word}):
                current.errors |= dict.fromkeys(result.uses & made.keys(), result.error)
                for known in (known for (one, _), known in self._known.items() if one == entry):
                    known.append(result)

    def _result(self, entry: Entry, old: Side, new: Side, pair: Pair | None) -> EntryResult:
        known = self._known.setdefault((entry, pair), [])
        result = next((one for one in reversed(known) if holds_in(new.modules, one.touched)), None)
        if result is None:
            last = known[-1] if known else None
            result = evaluate(entry, (old, new), pair, last, self._readers.get(entry))
            known.append(result)
            if result.failed is not None:
                self._readers[entry] = result.failed
        return result

    def _note(self, entry: Entry, number: int | None, result: EntryResult, current: _Round, made: _Forms) -> None:
        error = result.error
        if is_test(entry.path) and not (error or number or result.needs_state or result.passes):
            error = f"it is not known whether `{entry.label}` passes ({entry.path})"
        if error:
            current.errors |= dict.fromkeys(result.uses & made.keys(), error)
        sources = current.pool.sources[number] if number is not None else set[Name]()
        for one in result.outcomes:
            uses = one.uses & made.keys()
            current.counts.update(uses)
            if one.is_useless:
                continue
            if not one.difference:
                self._note_right(entry, one, current, frozenset(uses), frozenset(sources & made.keys()))
                current.owned |= uses if one.is_owned or number else set()
            elif uses or sources:
                current.differing.append((entry, number, one))

    def _note_right(
        self, entry: Entry, one: Outcome, current: _Round, uses: frozenset[Name], sources: frozenset[Name]
    ) -> None:
        current.proved |= uses
        if uses:
            current.needs.add(uses | sources)
        if one.meets_change:
            current.met |= uses
        for pair in one.left if not is_test(entry.path) else ():
            current.pool.add(pair, uses | sources)

    # --- blame ------------------------------------------------------------------------------------

    def _mend(self, current: _Round, sides: Mapping[Entry, Side]) -> bool:
        """Change forms or withhold changes so that entry points do not differ; return whether something changed."""
        before = self._made()
        for name, reason in current.errors.items():
            self.failed.setdefault(name, reason)
        done: set[tuple[Entry, int | None]] = set()
        for entry, number, one in current.differing:
            if (entry, number) in done:
                continue
            done.add((entry, number))
            self._mend_entry((entry, sides[entry]), number, one, current)
        return self._made() != before

    def _mend_entry(self, at: tuple[Entry, Side], number: int | None, one: Outcome, current: _Round) -> None:
        entry, old = at
        pair = current.pool.pairs[number] if number is not None else None
        uses = [name for name in one.uses if name not in self.failed]
        uses.sort(key=lambda name: (is_test(entry.path) and not is_test(name[0]), current.counts[name], name))

        def is_right(forms: _Forms) -> bool:
            result = self._result(entry, old, self._side(forms, old), pair)
            return not result.error and not any(other.difference for other in result.outcomes)

        made = self._made()
        if is_right(made):
            # An entry point before has mended it.
            return
        for trial in (*self._other_forms(uses, made), *({k: f for k, f in made.items() if k != name} for name in uses)):
            if is_right(trial):
                self._adopt(trial, made, one.difference)
                return
        if uses:
            self._blame(uses, made, current, one.difference)
        elif number is not None:
            # Other forms would be other states, each of which all entry points have to be evaluated with.
            self._withhold(current.pool.sources[number] & made.keys(), current, one.difference)

    def _other_forms(self, uses: Sequence[Name], made: _Forms) -> Iterator[dict[Name, int]]:
        for name in uses:
            for form in range(made[name] + 1, self._by_name[name].forms):
                yield {**made, name: form}

    def _adopt(self, trial: _Forms, made: _Forms, reason: str) -> None:
        for name, form in made.items():
            if name not in trial:
                self.failed[name] = reason
            elif trial[name] != form:
                self.forms[name] = trial[name]

    def _blame(self, names: Sequence[Name], made: _Forms, current: _Round, reason: str) -> None:
        """Write the change that the fewest entry points need in its next form, or withhold it."""
        for name in sorted(names, key=lambda name: (current.counts[name], name)):
            if made[name] + 1 < self._by_name[name].forms:
                self.forms[name] = made[name] + 1
                return
        self._withhold(names, current, reason)

    def _withhold(self, names: Collection[Name], current: _Round, reason: str) -> None:
        """Withhold the changes that the fewest entry points need."""
        least = min((current.counts[one] for one in names), default=0)
        self.failed |= {name: reason for name in names if current.counts[name] == least}

    def _withhold_unused(self, current: _Round, of_tests: bool) -> bool:
        """Withhold the changes that no object of the project shows to be right, and return whether there are some."""
        own = {name: self._by_name[name] for name in self._made() if is_test(name[0]) == of_tests}
        reasons: dict[Name, str] = {}
        for name, change in own.items():
            if name not in current.proved:
                what = "no known object makes this test pass"
                reasons[name] = what if of_tests else "no code that cgmigrate follows shows what it changes"
            elif change.reads and not of_tests and name not in current.met:
                reasons[name] = "no known object reaches this code with the new names"
            elif change.needs_owner and name not in current.owned:
                reasons[name] = "no known Megatron object reaches this code"
        self.failed |= reasons
        return bool(reasons)


def _stem(path: str) -> str:
    """Return the name by which code imports a module."""
    folder, stem = os.path.split(path.removesuffix(".py"))
    return os.path.basename(folder) if stem == "__init__" else stem


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


def _of_shims_and_layers(module: Module, modules: Modules) -> Iterator[int]:
    """Yield the lines of code that is written for several releases, or that gets a validated configuration."""
    if is_shim(module):
        yield from range(1, module.text.count("\n") + 2)
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and is_layer(node, module, modules):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)

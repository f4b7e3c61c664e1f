"""Entry points of a project's code, and their evaluation before and after the edits."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow.calls import HANDLERS, defaults_of
from cgmigrate.proof.flow.expressions import Evaluator
from cgmigrate.proof.flow.limits import NotFollowedError
from cgmigrate.proof.flow.modules import Module
from cgmigrate.proof.flow.names import class_of, holds_in, is_record
from cgmigrate.proof.flow.readers import Read, reads_of, value_of
from cgmigrate.proof.flow.run import (
    WHOLE,
    FlowRun,
    Frozen,
    Lines,
    Name,
    Side,
    StateNeededError,
    add_lines,
    bits,
    paths_of,
    state_of,
)
from cgmigrate.proof.flow.slices import AnyFunction, functions_in
from cgmigrate.proof.flow.statements import decorated, execute
from cgmigrate.proof.flow.states import Pair, agree, flags, has_old_name, is_refused, loses_off, short
from cgmigrate.proof.flow.values import Class, External, Function, Object, Scope, Unknown, shown
from cgmigrate.proof.flow.world import PROGRAMS, SETTINGS

_PLAIN = re.compile(r"\b(str|int|bool|float|list|dict|List|Dict|Sequence|tuple|Callable)\b")
TOP = "<module>"


@dataclass(frozen=True, slots=True)
class Entry:
    """A function, a method or the top of a module."""

    path: str
    name: str
    lines: tuple[int, int] = (0, 0)
    sets: bool = False
    """Whether it sets settings, or calls what sets them."""
    writes: bool = False
    """Whether it sets settings itself."""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name.rpartition(".")[2]

    @property
    def word(self) -> str:
        """The word with which code calls it."""
        return self.name.removesuffix(".__init__").rpartition(".")[2]


@dataclass(slots=True)
class Outcome:
    """Two paths through an entry point, before and after the edits."""

    uses: frozenset[Name]
    difference: str = ""
    left: tuple[Pair, ...] = ()
    meets_change: bool = False
    """Whether it uses an object that has other settings after the edits."""
    is_owned: bool = False
    """Whether it uses an object that code of the project gives or makes."""
    is_useless: bool = False
    """Whether no code that works takes it."""
    is_by_release: bool = False
    """Whether only the new release makes a difference, which it makes without the edits, too."""


@dataclass(slots=True)
class EntryResult:
    """What an entry point does with one state; ``touched`` are the names of modules that it looks for."""

    outcomes: list[Outcome] = field(default_factory=list)
    touched: dict[Module, set[str]] = field(default_factory=dict)
    lines: Lines = field(default_factory=dict)
    needs_state: bool = False
    failed: EntryResult | None = None
    """Why its paths are not followed; only what it reads is compared then."""
    error: str = ""
    uses: frozenset[Name] = frozenset()
    paths: Sequence[FlowRun] = ()
    """The paths before the edits, of what uses changes."""

    @property
    def is_known(self) -> bool:
        """Return whether some code that works takes it, or the changes are known that it meets."""
        return any(not is_test(path) for path, _ in self.uses) or self.passes

    @property
    def passes(self) -> bool:
        """Return whether some code that works takes it."""
        return any(one.is_by_release or not one.is_useless for one in self.outcomes)


def entries_of(module: Module, side: Side) -> Iterator[Entry]:
    """Yield the entry points of a module that touch settings."""
    entries = dict[str, Entry]()
    for name, node in functions_in(module):
        if side.slice.is_entry(node, module):
            lines = node.lineno, node.end_lineno or node.lineno
            own = side.slice
            entries[name] = Entry(module.path, name, lines, own.sets(node, module), own.writes(node, module))
    yield from entries.values()
    definitions = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    rest = [one for one in module.tree.body if not isinstance(one, definitions)]
    if any(side.slice.is_entry(one, module) for one in rest):
        sets = any(side.slice.sets(one, module) for one in rest)
        yield Entry(module.path, TOP, (0, module.text.count("\n") + 1), sets)


def evaluate(
    entry: Entry, sides: tuple[Side, Side], pair: Pair | None, known: EntryResult | None, failed: EntryResult | None
) -> EntryResult:
    """Return what an entry point does before and after the edits; ``pair`` is the state of arguments.

    ``known`` is what it does with other edits. ``failed`` says why it is not followed in another state.
    """
    states = (((), ()), pair) if pair not in (None, ((), ())) else (((), ()),)
    state = None if pair is None else len(states) - 1
    both = [one[0] for one in states if one], [one[1] for one in states if one]
    paths = known.paths if known else ()
    own = _Evaluation(entry, *sides, both, state, EntryResult(paths=paths))
    if failed is None:
        failed = own.evaluated(own.run)
        if not failed.error or entry.name == TOP or is_test(entry.path):
            return failed
        own = _Evaluation(entry, *sides, both, state)
    read = own.evaluated(own.read)
    read.failed = failed
    # Code that no edit changes is no reason to withhold edits of other code, but does not show them to be right.
    is_clear = read.uses or not any(one.difference for one in read.outcomes)
    return read if is_clear and not read.error else failed


@dataclass(slots=True)
class _Evaluation:
    """The evaluation of an entry point; ``states`` are those of arguments, before and after the edits."""

    entry: Entry
    old: Side
    new: Side
    states: tuple[Sequence[Frozen], Sequence[Frozen]]
    state: int | None
    result: EntryResult = field(default_factory=EntryResult)
    part: Read | None = None
    """What is evaluated, None for the whole."""

    def evaluated(self, evaluate: Callable[[], None]) -> EntryResult:
        """Return the result, with an error where the code cannot be followed."""
        try:
            evaluate()
        except StateNeededError:
            self.result.needs_state = True
        except NotFollowedError as error:
            self.result.error = f"cgmigrate cannot follow `{self.entry.label}` ({self.entry.path}): {error}"
        except RecursionError:
            self.result.error = (
                f"cgmigrate cannot follow `{self.entry.label}` ({self.entry.path}): its calls are too deep"
            )
        return self.result

    def run(self) -> None:
        try:
            every = self.result.paths or self._paths(self.old, None)
        except NotFollowedError:
            # No edit changes that.
            self.result.touched = {}
            raise
        self._note(every, is_new=False)
        self.result.paths = every if self.result.uses else ()
        for before in every:
            self.result.uses |= before.uses
            add_lines(self.result.lines, before.lines)
            if before.outcome.startswith("raises") and (before.is_test or not before.refuses):
                self.result.outcomes.append(Outcome(frozenset(), is_useless=True))
            elif self._is_same(before):
                self.result.outcomes.append(Outcome(frozenset(before.uses)))
            else:
                self.result.outcomes += [self._compared(before, after) for after in self._paths(self.new, before)]

    def read(self) -> None:
        """Compare what a function reads of settings, if that is all that it does with them."""
        old, new = (self._node(side) for side in (self.old, self.new))
        (path, name), lines = (self.entry.path, self.entry.name), self.entry.lines
        self.result.touched[new[0]] = {name.partition(".")[0]}
        self.result.lines[old[0].path] = bits(*lines)
        changes = self.old.changes.get(path, {})
        self.result.uses = frozenset(
            one for line, names in changes.items() if lines[0] <= line <= lines[1] for one in names
        )
        self.result.outcomes.append(Outcome(self.result.uses))
        for part in reads_of(old[1], new[1], old[0], self.old.slice, self.old.texts):
            self.part = part
            for before in self._paths(self.old, None):
                self.result.outcomes += [self._read(before, after) for after in self._paths(self.new, before)]

    def _node(self, side: Side) -> tuple[Module, AnyFunction]:
        module = side.modules.read(self.entry.path)
        node = dict(functions_in(module)).get(self.entry.name) if module is not None else None
        if module is None or node is None:
            raise NotFollowedError("its file does not define it")
        return module, node

    def _read(self, before: FlowRun, after: FlowRun) -> Outcome:
        is_same = before.outcome == after.outcome and before.events == after.events
        difference = "" if is_same else f"`{self.entry.label}` would use the settings differently ({self.entry.path})"
        meets_change = any(one[0] != one[1] for _, one in _pairs(before, after))
        return Outcome(self.result.uses, difference, (), meets_change, any(before.arguments.values()))

    def _is_same(self, before: FlowRun) -> bool:
        """Return whether a path uses no settings, and only code that no edit changes."""
        is_holding = any(one.is_holder for one in before.objects.values())
        return not is_holding and holds_in(self.new.modules, before.touched)

    def _compared(self, before: FlowRun, after: FlowRun) -> Outcome:
        one = _compared(self.entry, before, after, self.old, self.new)
        if one.difference and self._is_by_release(before, after):
            return Outcome(frozenset(), is_useless=True, is_by_release=True)
        return one

    def _is_by_release(self, before: FlowRun, after: FlowRun) -> bool:
        """Return whether the new release makes the same of the old text: then no edit makes the difference.

        An edit that deletes the last old name of an object deletes what reports the difference, too.
        """
        on_target = self.old.under(self.new.world)
        lost = [one for _, one in _pairs(before, after) if has_old_name(one[0]) and not has_old_name(one[1])]
        if not all(agree(one, self.old.world, self.new.world) for one in lost):
            return False
        return any(
            not _compared(self.entry, unedited, after, on_target, self.new).difference
            for unedited in self._paths(on_target, before)
        )

    def _paths(self, side: Side, first: FlowRun | None) -> Sequence[FlowRun]:
        """Return the paths through an entry point: of the edited code, those with the choices of a path before."""
        decided = {key: chosen for key, (chosen, _) in first.choices.items()} if first is not None else {}
        module = side.modules.read(self.entry.path)
        if module is None:
            raise NotFollowedError("its file cannot be read")
        states = self.states[side is self.new]
        runs: list[FlowRun] = []

        def make(planned: Sequence[int]) -> FlowRun:
            known = dict(first.known) if first else {}
            one = FlowRun(side, HANDLERS, states, self.state, planned, decided, known=known)
            one.is_test = is_test(self.entry.path)
            runs.append(one)
            return one

        def start(run: FlowRun) -> object:
            run.touch(module, WHOLE if self.entry.name == TOP else self.entry.name.partition(".")[0])
            if self.part is None:
                return _start(self.entry, run, module)
            return _read(self.entry, run, module, self.part, is_new=side is self.new)

        try:
            return paths_of(start, make)
        finally:
            self._note(runs, is_new=side is self.new)

    def _note(self, runs: Iterable[FlowRun], *, is_new: bool) -> None:
        for run in runs:
            for module, names in run.touched.items():
                edited = self.new.modules.read(module.path) or module
                self.result.touched.setdefault(edited, set()).update(names)
            if not is_new:
                self.result.uses |= run.uses


def _start(entry: Entry, run: FlowRun, module: Module) -> object:
    if entry.name == TOP:
        own = Evaluator(run, module, Scope())
        execute(own, module.tree.body, run.side.slice.kept(module.tree, module))
        return None
    node = dict(functions_in(module)).get(entry.name)
    if node is None:
        raise NotFollowedError("its file does not define it")
    function = _function(entry, run, module, node)
    named = dict(_arguments(run, function, node))
    # Pytest's decorators give a test its arguments.
    is_plain = function.owner is not None or run.is_test
    called = function if is_plain else decorated(Evaluator(run, module, Scope()), node, function)
    return run.call(called, [], named)


def _read(entry: Entry, run: FlowRun, module: Module, part: Read, *, is_new: bool) -> object:
    node = dict(functions_in(module))[entry.name]
    own, owner = node.args, _function(entry, run, module, node).owner
    arguments = {one.arg: _argument(run, module, one) for one in (*own.posonlyargs, *own.args, *own.kwonlyargs)}
    if owner is not None:
        arguments |= {name: _instance(run, owner, name) for name in arguments.keys() & {"self", "cls"}}
    value = value_of(run, module, node, part.new if is_new else part.old, arguments)
    return Evaluator(run, module, Scope()).truth(value) if part.is_test else value


def _function(entry: Entry, run: FlowRun, module: Module, node: AnyFunction) -> Function:
    owner, _, _ = entry.name.rpartition(".")
    of = next((one for one in module.tree.body if isinstance(one, ast.ClassDef) and one.name == owner), None)
    return Function(module, node, Scope(), class_of(run, module, of) if of is not None else None)


def _arguments(run: FlowRun, function: Function, node: AnyFunction) -> Iterator[tuple[str, object]]:
    own = node.args
    needed = run.side.slice.kept(node, function.module).needed
    with_default = defaults_of(own)
    listed = dict(_listed(run, function, node)) if run.is_test else {}
    for at, one in enumerate((*own.posonlyargs, *own.args, *own.kwonlyargs)):
        if one.arg in listed:
            yield one.arg, listed[one.arg]
            continue
        if not at and function.owner is not None and one.arg in ("self", "cls"):
            yield one.arg, _instance(run, function.owner, one.arg)
            continue
        if one.arg in with_default and (one.arg not in needed or _takes_default(run, one.arg, node)):
            continue
        yield one.arg, _argument(run, function.module, one)


def _listed(run: FlowRun, function: Function, node: AnyFunction) -> Iterator[tuple[str, object]]:
    """Yield the parameters of a test whose values a decorator lists: `@pytest.mark.parametrize("n, m", [(1, 2)])`."""
    own = Evaluator(run, function.module, Scope())
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str() as names), source, *_]
            ):
                rows = own.items(own.value(source))
                if rows:
                    row = rows[run.choose(f"row of {names}", len(rows))]
                    words = [one.strip() for one in names.split(",")]
                    values = own.items(row) if len(words) > 1 else [row]
                    if values is not None and len(values) == len(words):
                        yield from zip(words, values, strict=True)


def _takes_default(run: FlowRun, name: str, node: AnyFunction) -> bool:
    """Return whether a parameter has its default, which is a function or an object."""
    default = defaults_of(node.args)[name]
    is_constant = isinstance(default, (ast.Constant, ast.UnaryOp, ast.List, ast.Dict, ast.Tuple))
    return not is_constant and not run.choose(f"argument {name}", 2)


def _instance(run: FlowRun, owner: Class, name: str) -> object:
    if name == "cls":
        return owner
    made = Object("self", is_argument=True, is_bare=is_record(run, owner))
    made.of = owner
    return made


def _argument(run: FlowRun, module: Module, one: ast.arg) -> object:
    annotation = ast.unparse(one.annotation) if one.annotation is not None else ""
    if one.arg in SETTINGS or _PLAIN.search(annotation):
        return Unknown(f"parameter {one.arg}")
    made = Object(one.arg, is_argument=True, is_part=True, is_bare=one.arg in PROGRAMS)
    of = run.evaluate(module, one.annotation) if isinstance(one.annotation, (ast.Name, ast.Attribute)) else None
    if isinstance(of, Class):
        made.of, made.is_bare = of, is_record(run, of)
    return made


# --- comparison -----------------------------------------------------------------------------------


def _compared(entry: Entry, before: FlowRun, after: FlowRun, old: Side, new: Side) -> Outcome:
    if before.refuses:
        accepts = "" if after.outcome.startswith("raises") else f"`{entry.label}` would no longer fail ({entry.path})"
        return Outcome(frozenset(before.uses), accepts, is_useless=not accepts)
    both = list(_pairs(before, after))
    full = [pair for _, pair in both]
    pairs = [(short(one[0], old.world), short(one[1], new.world)) for one in full]
    others = [at for at, one in enumerate(pairs) if not agree(one, old.world, new.world)]
    differing = pairs[others[0]] if others else None
    differing = differing or next((one for one in _foreign_pairs(before, after) if loses_off(one)), None)
    differing = differing or next((one for one in full if flags(one[0]) != flags(one[1])), None)
    difference = ""
    if before.outcome != after.outcome:
        difference = f"`{entry.label}` would end differently ({entry.path})"
        if after.outcome.startswith("raises"):
            difference = f"`{entry.label}` would raise {after.outcome.removeprefix('raises ')} ({entry.path})"
    elif differing is not None:
        difference = f"`{entry.label}` would capture something else ({entry.path})"
    elif before.events != after.events or (not is_test(entry.path) and _records(before) != _records(after)):
        difference = f"`{entry.label}` would use the settings differently ({entry.path})"
    is_reader = before.arguments and not before.uses and not (before.sets_argument or after.sets_argument)
    is_reader = is_reader and not any(_is_provider(both[at][0]) for at in others)
    if (is_reader or (is_test(entry.path) and any(before.arguments.values()))) and not _fails(entry, before, after):
        # It reads what is validated: the new release makes the same of the object before and after the edits.
        difference = ""
    return Outcome(
        frozenset(before.uses),
        difference,
        tuple(
            one
            for one in dict.fromkeys(pairs)
            if (one[0] == one[1] or agree(one, old.world, new.world)) and not is_refused(one[0], old.world)
        ),
        any(one[0] != one[1] for one in pairs),
        any(not one.is_argument for one in before.objects.values() if one.is_holder) or any(before.arguments.values()),
    )


def _fails(entry: Entry, before: FlowRun, after: FlowRun) -> bool:
    """Return whether a test compares what it gets with what it does not have after the edits."""
    if not is_test(entry.path):
        return False
    asserted = ([one for one in run.events if one.startswith("'asserts'")] for run in (before, after))
    return after.outcome == "raises AssertionError" or next(asserted) != next(asserted)


def _pairs(before: FlowRun, after: FlowRun) -> Iterator[tuple[Object, Pair]]:
    """Yield the objects with settings, each with these before and after the edits."""
    for key in dict.fromkeys((*before.objects, *after.objects)):
        old, new = before.objects.get(key), after.objects.get(key)
        holders = [one for one in (old, new) if one is not None and one.is_holder and not one.is_bare]
        if holders:
            yield holders[0], (state_of(old) if old is not None else (), state_of(new) if new is not None else ())


def _is_provider(one: Object) -> bool:
    """Return whether an object that code makes is validated only when the model is built, as what it is made of."""
    name = one.of.name if isinstance(one.of, External) else one.of.node.name if isinstance(one.of, Class) else ""
    return name.endswith("Provider") and not one.is_argument


def _foreign_pairs(before: FlowRun, after: FlowRun) -> Iterator[Pair]:
    """Yield the settings of objects of other packages, which may have set them otherwise."""
    for key, one in before.objects.items():
        if one.is_foreign and one.is_holder and key in after.objects:
            yield state_of(one), state_of(after.objects[key])


def _records(run: FlowRun) -> list[str]:
    """Return a text for the settings of objects of the project's own, which keep their names."""
    records = [one for one in run.objects.values() if one.is_bare]
    return sorted(
        f"{one.key}.{name}={shown(one.fields[name])}" for one in records for name in SETTINGS & one.fields.keys()
    )

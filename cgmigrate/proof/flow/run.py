"""One evaluation of an entry point: its choices, the objects that it uses, and what other code can see of it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from cgmigrate.proof.flow.limits import NotComputedError, NotFollowedError
from cgmigrate.proof.flow.modules import Module, Modules
from cgmigrate.proof.flow.slices import Slice, functions_in
from cgmigrate.proof.flow.values import Member, Object, Unknown, shown
from cgmigrate.proof.flow.world import SAMPLES, SETTINGS, TRACKERS, World

Frozen = tuple[tuple[str, object], ...]
"""The settings of an object in a form that can be compared."""
Name = tuple[str, int]
"""The name of a change: its file, and its number there."""
Line = tuple[str, int]
"""A file, by its real path, and the number of a line."""
Lines = dict[str, int]
"""The lines of files, by their real paths: a number with a bit for each line."""
Text = tuple[str, Sequence[tuple[ast.expr, bool]]]
"""The text of a function without the expressions of settings, and these, each with whether it is a condition."""
MOST_PATHS = 64
_MOST_CHOICES = 16
_MOST_STEPS = 5_000
"""The statements and calls of a path at most."""
_DEEPEST = 40
KEPT_STATE = frozenset((*SETTINGS, *TRACKERS))
"""What is the state of an object: the settings, and the flags of random numbers."""


WHOLE = "*"
"""Stands for all names at the top of a module."""


class StateNeededError(Exception):
    """Code uses an object that other code gives to it."""


class RaisedError(Exception):
    """The evaluated code raises an error."""

    def __init__(self, name: str, *, is_explicit: bool = False) -> None:
        super().__init__(name)
        self.name, self.is_explicit = name, is_explicit


@dataclass(frozen=True, slots=True)
class Handlers:
    """What evaluates expressions at the top of modules, and calls."""

    evaluate: Callable[[FlowRun, Module, ast.expr], object]
    call: Callable[[FlowRun, object, list[object], dict[str, object]], object]


@dataclass(frozen=True, slots=True)
class Side:
    """The code before or after the edits, and the release that reads it."""

    modules: Modules
    world: World
    slice: Slice
    changes: Mapping[str, Mapping[int, frozenset[Name]]]
    """The changes at the lines of files; empty for edited texts."""
    names: dict[tuple[str, str], tuple[object, Sequence[tuple[Module, str]]]] = field(default_factory=dict)
    """What names at the tops of modules are for all paths, with all names that were looked for."""
    texts: dict[object, Text] = field(default_factory=dict)
    """The texts of functions, as readers compare them."""
    _noted: dict[ast.AST, tuple[int, frozenset[Name]]] = field(default_factory=dict)
    _others: dict[World, Side] = field(default_factory=dict)

    def under(self, world: World) -> Side:
        """Return the same code under another release."""
        return self._others.setdefault(world, Side(self.modules, world, self.slice, self.changes))

    def noted(self, module: Module, node: ast.stmt | ast.expr) -> tuple[int, frozenset[Name]]:
        """Return the lines of some code, of a statement those before what is inside of it, and the changes there."""
        if node not in self._noted:
            inner, last = getattr(node, "body", None), node.end_lineno or node.lineno
            if isinstance(inner, list):
                last = max(node.lineno, inner[0].lineno - 1)
            changes = self.changes.get(module.path, {})
            uses = frozenset(name for line in range(node.lineno, last + 1) for name in changes.get(line, ()))
            self._noted[node] = bits(node.lineno, last), uses
        return self._noted[node]


@dataclass(slots=True)
class FlowRun:
    """One path through an entry point.

    ``states`` are the settings that arguments may have; ``state`` is the number of that which they have, None if
    it is not known that code gets an object.
    """

    side: Side
    handlers: Handlers
    states: Sequence[Frozen]
    state: int | None
    planned: Sequence[int] = ()
    decided: Mapping[str, int] = field(default_factory=dict)
    choices: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What was chosen of how many."""
    events: list[str] = field(default_factory=list)
    objects: dict[str, Object] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    known: dict[str, object] = field(default_factory=dict)
    """The values that were chosen for what is unknown."""
    uses: set[Name] = field(default_factory=set)
    touched: dict[Module, set[str]] = field(default_factory=dict)
    """The modules that it uses, that of the entry point first, with the names at their tops that it looks for."""
    lines: Lines = field(default_factory=dict)
    """The lines of the statements that were evaluated."""
    globals: dict[tuple[str, str], object] = field(default_factory=dict)
    classes: dict[ast.ClassDef, object] = field(default_factory=dict)
    bases: dict[object, Sequence[object]] = field(default_factory=dict)
    """The classes of which each class is derived."""
    unclear: set[str] = field(default_factory=set)
    """The objects that it makes, and of which it sets attributes by unknown names."""
    yielded: list[object] = field(default_factory=list)
    arguments: dict[str, int] = field(default_factory=dict)
    """The arguments, each with the number of its state."""
    outcome: str = ""
    refuses: bool = False
    """Whether a statement of the code raises the error."""
    is_test: bool = False
    has_read: bool = False
    """Whether a setting of an object that is no record was read."""
    sets_argument: bool = False
    """Whether it sets something of an object that other code gives."""
    is_reading: bool = False
    """Whether the current statement uses what is read of settings."""
    is_computing: bool = False
    """Whether it evaluates a function that does not touch settings: nothing is chosen for its value."""
    catching: int = 0
    """How many statements around the current one catch errors."""
    is_patched: bool = False
    """Whether it has set names of modules."""
    is_finding: bool = False
    """Whether it looks for what a name of a module is."""
    computed: int = 0
    """How often it has computed what a name of a module is, or used what it had computed."""
    depth: int = 0
    steps: int = 0

    def evaluate(self, module: Module, node: ast.expr) -> object:
        """Return the value of an expression at the top of a module."""
        self.computed += 1
        return self.handlers.evaluate(self, module, node)

    def call(self, function: object, positional: list[object], named: dict[str, object]) -> object:
        """Return the value of a call."""
        self.step()
        return self.handlers.call(self, function, positional, named)

    # --- choices ----------------------------------------------------------------------------------

    def choose(self, key: str, count: int) -> int:
        """Return which of some ways is taken: the same one each time, and before and after the edits."""
        if key in self.choices:
            return self.choices[key][0]
        if self.is_computing:
            raise NotComputedError
        fixed = self.decided.get(key)
        if fixed is None:
            undecided = sum(one not in self.decided for one in self.choices)
            fixed = self.planned[undecided] if undecided < len(self.planned) else 0
        self.choices[key] = fixed, count
        if len(self.choices) > _MOST_CHOICES:
            raise NotFollowedError("it has too many conditions")
        return fixed

    def number(self, what: str) -> str:
        """Return a text for the next one of some things."""
        self.counts[what] = self.counts.get(what, 0) + 1
        return f"{what}#{self.counts[what]}"

    def step(self) -> None:
        """Count a step. Raises NotFollowedError after too many."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise NotFollowedError("it takes too many steps")

    @property
    def module(self) -> Module:
        """The module of the entry point."""
        return next(iter(self.touched))

    def touch(self, module: Module, name: str) -> None:
        """Note that code looks for a name at the top of a module."""
        self.touched.setdefault(module, set()).add(name)

    def enter(self) -> None:
        """Enter a function."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise NotFollowedError("its calls are too deep")

    # --- what it uses -----------------------------------------------------------------------------

    def note(self, module: Module, node: ast.stmt | ast.expr) -> None:
        """Note the changes at the lines of some code; what is inside of a statement is noted when it is reached."""
        if self.side.changes:
            lines, uses = self.side.noted(module, node)
            self.lines[module.path] = self.lines.get(module.path, 0) | lines
            self.uses |= uses

    def note_function(self, name: str) -> None:
        """Note the changes in all functions of a name, of which a piece of code may use any."""
        for path, lines in self.side.changes.items():
            module = self.side.modules.read(path)
            for full, node in functions_in(module) if module is not None else ():
                if full.rpartition(".")[2] == name:
                    span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                    self.uses |= {one for line in span for one in lines.get(line, ())}

    def event(self, *parts: object) -> None:
        """Note what other code can see."""
        self.events.append(" ".join(map(shown, parts)))

    def end(self) -> None:
        """Forget what only the evaluation itself needs."""
        self.globals, self.classes, self.bases = {}, {}, {}
        self.objects = {key: one for key, one in self.objects.items() if one.is_holder or one.is_bare}
        for one in self.objects.values():
            one.fields = {name: one.fields[name] for name in KEPT_STATE & one.fields.keys()}

    # --- objects ----------------------------------------------------------------------------------

    def make(self, key: str, *, is_bare: bool = False) -> Object:
        """Return a new object."""
        made = self.objects[key] = Object(key, is_bare=is_bare)
        return made

    def hold(self, one: Object) -> None:
        """Note that an object has settings; an argument gets those of a state."""
        if one.is_holder:
            return
        if one.key in self.unclear:
            raise NotFollowedError("it sets attributes by unknown names")
        one.is_holder, one.is_part = True, False
        self.objects[one.key] = one
        if not one.is_argument or one.is_bare:
            return
        if self.state is None:
            raise StateNeededError
        number = self.state
        if self.arguments:
            number = (self.state, 0)[self.choose(f"state of {one.key}", 2 if self.state else 1)]
        self.arguments[one.key] = number
        for name, value in self.states[number]:
            one.fields[name] = thawed(value)

    def sampled(self, value: object, setting: str) -> object:
        """Return a value of a setting: of one that is not known, one of those that stand for it."""
        if isinstance(value, (Unknown, Object)) or not _is_known(value):
            key = shown(value)
            if key not in self.known:
                samples = SAMPLES.get(setting, (False, True))
                self.known[key] = thawed(samples[self.choose(f"value of {key}", len(samples))])
            value = self.known[key]
        return list(value) if isinstance(value, list) else value

    def resolved(self, value: object) -> object:
        """Return the value that was chosen for what is unknown, the value itself if none was."""
        if self.known and isinstance(value, (Unknown, Object)):
            return self.known.get(shown(value), value)
        return value


def bits(first: int, last: int) -> int:
    """Return the number with a bit for each of some lines."""
    return (2 << last) - (1 << first)


def add_lines(lines: Lines, more: Lines) -> None:
    """Add lines of files to others."""
    for path, own in more.items():
        lines[path] = lines.get(path, 0) | own


def _is_known(value: object) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_known, value))
    return value is None or isinstance(value, (str, bool, int, float, Member))


def frozen(value: object) -> object:
    """Return a value of a setting in a form that can be compared and kept."""
    if isinstance(value, (list, tuple)):
        return ("list", *map(frozen, value))
    if isinstance(value, (set, frozenset)):
        return ("set", *sorted(map(frozen, value), key=repr))
    if isinstance(value, dict):
        return ("dict", *((frozen(key), frozen(part)) for key, part in value.items()))
    if isinstance(value, (Object, Unknown)):
        return shown(value)
    return value


def thawed(value: object) -> object:
    """Return the value of which this is the frozen form."""
    if isinstance(value, tuple) and value and value[0] == "list":
        return [thawed(one) for one in value[1:]]
    if isinstance(value, tuple) and value and value[0] == "set":
        return {thawed(one) for one in value[1:]}
    if isinstance(value, tuple) and value and value[0] == "dict":
        return {thawed(key): thawed(part) for key, part in value[1:]}
    return value


def state_of(one: Object) -> Frozen:
    """Return the settings of an object, as far as they were set."""
    return tuple((name, frozen(one.fields[name])) for name in sorted(KEPT_STATE & one.fields.keys()))


def paths_of(
    evaluate: Callable[[FlowRun], object], make: Callable[[Sequence[int]], FlowRun], most: int = MOST_PATHS
) -> list[FlowRun]:
    """Return the paths of an evaluation. Raises NotFollowedError if there are too many.

    The first choices are made in other ways first: so it shows after few paths that there are too many.
    """
    done: list[tuple[list[int], FlowRun]] = []
    planned: deque[list[int]] = deque([[]])
    while planned:
        first = planned.popleft()
        run = make(first)
        try:
            run.outcome = f"returns {shown(evaluate(run))}"
        except RaisedError as error:
            run.outcome, run.refuses = f"raises {error.name}", error.is_explicit
        run.end()
        free = [one for key, one in run.choices.items() if key not in run.decided]
        chosen = [one for one, _ in free]
        done.append((chosen, run))
        for at, (one, count) in enumerate(free[len(first) :], len(first)):
            planned += ([*chosen[:at], other] for other in range(one + 1, count))
        if len(done) + len(planned) > most:
            raise NotFollowedError("it has too many paths")
    return [run for _, run in sorted(done, key=itemgetter(0))]

"""Evaluation of one function: each path through it, with the settings that objects have at its end.

Conditions on known values are decided; for others both branches are evaluated, each in a path of its own. Two
evaluations of one function under different releases or with different texts have the same keys for what they cannot
know, so that their paths can be compared.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cgmigrate.proof.flow.modules import Module, Modules
from cgmigrate.linking.python.relevance import Relevance
from cgmigrate.linking.python.values import TEXT_OF_SETTINGS, CannotFollowError, FrozenSettings, Function, Object
from cgmigrate.proof.flow.world import World

_MISSING = object()
_MOST_STEPS_OF_ALL = 4_000
_MOST_STEPS_OF_STATE = 600
"""Statements of all paths of one function, and of those of each state of an object that it gets."""
MOST_PATHS = 64
"""Paths of one function; a function with more is not followed."""
_MOST_BRANCHES = 256
"""Branches of the conditions of one function, and states of the objects that it gets."""
MOST_CALLS = 12
"""Functions that call each other."""
_CONDITION = 2
"""The possibilities of a condition."""
MOST_STEPS = 20_000
"""Statements of one path."""


LOGGED = "logged: "
"""The begin of an event that is only logged."""


class RaisedError(Exception):
    """An exception that the evaluated code raises; ``kind`` is the name of its class.

    ``is_stated`` says that code raises it by a statement. Any other is one of an operation on known values; code that
    works raises none, unless it catches it. ``is_check`` says that the code refuses an object by it.
    """

    def __init__(self, kind: str, *, is_stated: bool = False, is_check: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.is_stated, self.is_check = kind, is_stated, is_check


class ReadsSettingsError(CannotFollowError):
    """Code that is not followed, and asks all settings of an object at once."""


class ReplacesCodeError(CannotFollowError):
    """Code of a test that replaces code that leads to settings."""


class NotFollowedError(Exception):
    """A function that gets no object is not followed: the evaluation begins again, with any object as its result."""

    def __init__(self, node: ast.FunctionDef | ast.Lambda) -> None:
        super().__init__(getattr(node, "name", ""))
        self.node = node


@dataclass(frozen=True, slots=True)
class Returned:
    """The end of a function."""

    value: object


@dataclass(frozen=True, slots=True)
class Left:
    """A statement that leaves a loop, or begins its next round."""

    is_break: bool


Signal = Returned | Left | None


@dataclass(slots=True)
class Frame:
    """A call of a function: its names, and the module in which it is."""

    function: Function
    names: dict[str, object]
    depth: int

    @property
    def module(self) -> Module:
        """The module of the function."""
        return self.function.module

    @property
    def around(self) -> Mapping[str, object]:
        """The names around a function that this one defines: those of this call, and of the functions around it."""
        return ChainMap(self.names, self.function.around) if self.function.around else self.names  # type: ignore[arg-type]


@dataclass(slots=True)
class Path:
    """One path through a function: the conditions that it decides, its effects, and how it ends."""

    choices: list[tuple[str, int]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    """What code that is not followed gets, in order."""
    uses: set[tuple[str, int]] = field(default_factory=set)
    """The file and line of each use of a setting."""
    uses_megatron: set[tuple[str, int]] = field(default_factory=set)
    """Those of an object of Megatron's own classes."""
    reads: list[str] = field(default_factory=list)
    """The deprecated settings that it reads, with their values."""
    old_reads: list[tuple[Object, str, tuple[str, int]]] = field(default_factory=list)
    """The object, name, and place of each of these."""
    modules_read: set[str] = field(default_factory=set)
    """The objects of which it reads the modules, by their keys."""
    opened: list[tuple[Object, int]] = field(default_factory=list)
    """The objects whose settings other code has set, each with the number of its state."""
    is_with_fakes: bool = False
    """Whether an object of it is one that a test makes in place of Megatron's."""
    records: list[Object] = field(default_factory=list)
    """The records of the project's own that it makes."""
    opened_records: list[tuple[Object, int]] = field(default_factory=list)
    """The records that it gets from other code, each with the number of its state among those that are possible."""
    keeping: frozenset[str] = frozenset()
    """The attributes in which statements may keep objects that are not executed."""
    passed_on: bool = False
    """Whether code that is not followed gets an object."""
    passed: list[tuple[str, FrozenSettings]] = field(default_factory=list)
    """The objects that code gets which is not followed, with their settings at that time."""
    used: dict[int, Object] = field(default_factory=dict)
    """The objects of which it uses a setting, by identity."""
    written: dict[int, Object] = field(default_factory=dict)
    """The objects of which it sets a setting, by identity."""
    arguments: list[object] = field(default_factory=list)
    bound: dict[str, object] = field(default_factory=dict)
    """The names that a part of a function binds, which other parts may use."""
    value: object = None
    error: str = ""
    """The exception that ends it, empty if it returns."""
    is_check: bool = False
    """Whether code refuses an object by it: it is no error of the code."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """The functions that execute code; each of them needs the others."""

    value_of_call: Callable[[ast.Call, Frame, Run], object]
    execute: Callable[[Sequence[ast.stmt], Frame, Run], Signal]
    store: Callable[[ast.expr, object, Frame, Run], None]
    """Binds the target of an assignment."""


@dataclass(frozen=True, slots=True)
class Unknowns:
    """What objects and records may have that code gets from other code; without states nothing is known of them."""

    states: Sequence[FrozenSettings] = ()
    """The settings of an object."""
    first: int = 0
    """The number of the first of these states among all that are known."""
    records: Sequence[FrozenSettings] = ((),)
    """The fields of a record with the names of settings; of the first of all nothing is set."""
    first_record: int = 0
    """The number of the first of these records among all that are known."""
    sources: Sequence[Collection[int]] = ((),)
    """The numbers of the states of the objects from which each record was made."""
    has_fakes: bool = False
    """Whether an object may only have the attributes that code sets: tests make such objects."""

    @property
    def count(self) -> int:
        """How many states of objects and of records there are, both together."""
        return len(self.states) + len(self.records)


@dataclass(slots=True)
class _Used:
    """What an evaluation uses of a file: names at its top, functions, or all of it."""

    names: set[str] = field(default_factory=set)
    functions: set[ast.AST] = field(default_factory=set)
    is_whole: bool = False


@dataclass(slots=True)
class Code:
    """The code that evaluations use, by file."""

    files: dict[str, _Used] = field(default_factory=dict)

    def use_name(self, path: str, name: str) -> None:
        """Note that a name at the top of a file is used."""
        self._of(path).names.add(name)

    def use_function(self, path: str, node: ast.AST) -> None:
        """Note that a function of a file is used."""
        self._of(path).functions.add(node)

    def use_file(self, path: str) -> None:
        """Note that any code of a file may be used."""
        self._of(path).is_whole = True

    def add(self, other: Code) -> None:
        """Note that all of some code is used."""
        for path, used in other.files.items():
            own = self._of(path)
            own.names |= used.names
            own.functions |= used.functions
            own.is_whole = own.is_whole or used.is_whole

    def _of(self, path: str) -> _Used:
        if path not in self.files:
            self.files[path] = _Used()
        return self.files[path]

    def is_same(self, old: Mapping[str, Module | None], modules: Modules) -> bool:
        """Return whether modules have the same code as those in which it was used."""
        return all(
            (new := modules.read(path)) is old[path] or _is_same(used, old[path], new)
            for path, used in self.files.items()
        )


def _is_same(used: _Used, old: Module | None, new: Module | None) -> bool:
    if used.is_whole or old is None or new is None or old.stars != new.stars:
        return False
    names = all(old.bindings.get(name, _MISSING) == new.bindings.get(name, _MISSING) for name in used.names)
    return names and used.functions <= new.functions


@dataclass(slots=True)
class Touched:
    """What evaluations depend on: the code before and after the edits, and whether they get an object or record."""

    before: Code = field(default_factory=Code)
    after: Code = field(default_factory=Code)
    is_open: bool = False
    has_records: bool = False
    asks_release: bool = False
    """Whether something depends on the release, beside the settings that are used."""
    not_followed: set[ast.FunctionDef | ast.Lambda] = field(default_factory=set)
    """Functions whose results are not known since they are not followed."""

    def add(self, other: Touched) -> None:
        """Note that they depend on all on which others depend."""
        self.before.add(other.before)
        self.after.add(other.after)
        self.is_open = self.is_open or other.is_open
        self.has_records = self.has_records or other.has_records
        self.asks_release = self.asks_release or other.asks_release


@dataclass(slots=True)
class Run:
    """The evaluation of one path; ``planned`` are the first decisions."""

    modules: Modules
    world: World
    relevance: Relevance
    handlers: Handlers
    unknowns: Unknowns
    planned: Sequence[int] = ()
    decided: Mapping[str, int] = field(default_factory=dict)
    """What another path chose, by key; it is taken before ``planned``."""
    path: Path = field(default_factory=Path)
    counts: list[int] = field(default_factory=list)
    """How many possibilities there are for each choice of the path."""
    steps: int = 0
    writes: int = 0
    """How often a setting was set."""
    touched: Touched = field(default_factory=Touched)
    code: Code = field(default_factory=Code)
    """The code that it uses."""
    statement: ast.expr | None = None
    """The last expression that is a statement: nothing uses its value."""
    needed: frozenset[str] = frozenset()
    """The attributes that the function uses which is executed, and its callers; each begins with a dot."""
    shared: dict[str, Object] = field(default_factory=dict)
    """The objects that names of modules are, by the keys of these objects."""
    replaced: set[str] = field(default_factory=set)
    """The names of code that a test replaces by other code."""
    follows_edit: bool = False
    """Whether the code, or its release, is not the one that works today: an edit may make it raise."""
    _numbers: dict[str, int] = field(default_factory=dict)
    _chosen: dict[str, int] = field(default_factory=dict)
    _forgotten: dict[str, int] = field(default_factory=dict)
    """How often a choice was forgotten, by its key."""

    def choose(self, key: str) -> bool:
        """Return the decision of the path for a condition that is not known. Raises CannotFollowError."""
        if TEXT_OF_SETTINGS in key:
            raise ReadsSettingsError("a condition asks the text of an object with settings")
        return self.pick(key, 2) == 0

    def pick(self, key: str, count: int) -> int:
        """Return which of some possibilities the path takes."""
        if (chosen := self._chosen.get(key)) is not None:
            return chosen
        name = f"{key}, again {self._forgotten[key]}" if key in self._forgotten else key
        if (choice := self.decided.get(name)) is None:
            at = len(self.path.choices)
            choice = self.planned[at] if at < len(self.planned) else 0
            self.path.choices.append((name, choice))
            self.counts.append(count)
        self._chosen[key] = choice
        return choice

    def forget(self, text: str) -> None:
        """Have conditions decided again whose keys contain a text: code may have changed what they ask."""
        for key in [key for key in self._chosen if text in key]:
            del self._chosen[key]
            self._forgotten[key] = self._forgotten.get(key, 0) + 1

    def use_lines(self, node: ast.expr | ast.keyword, module: Module) -> None:
        """Note that the path uses settings on all lines of some code."""
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        self.path.uses.update((module.path, line) for line in lines)

    def effects(self) -> tuple[int, ...]:
        """Return how often a setting was set, and how many objects and records the path made or got."""
        path = self.path
        return self.writes, len(path.opened), len(path.records), len(path.opened_records)

    def numbered(self, key: str) -> str:
        """Return a key with how often it was used in this path."""
        number = self._numbers.get(key, 0)
        self._numbers[key] = number + 1
        return f"{key}#{number}"

    def step(self, node: ast.stmt | ast.expr, frame: Frame) -> None:
        """Count a statement, or an item of a comprehension. Raises CannotFollowError beyond the limit."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise cannot_follow("too many statements", node, frame)


def cannot_follow(
    what: str, node: ast.AST, frame: Frame, kind: type[CannotFollowError] = CannotFollowError
) -> CannotFollowError:
    """Return the error of code that is not followed, with its place."""
    return kind(f"{what} ({frame.module.path}:{getattr(node, 'lineno', 0)})")


class TooManyPathsError(CannotFollowError):
    """Code with more paths than are evaluated; each branch of each condition was in one that was."""


def paths_of(name: str, evaluate: Callable[[Run], object], run_of: Callable[[Sequence[int]], Run]) -> Iterator[Path]:
    """Yield each path through some code, by the name of its function.

    Raises CannotFollowError; TooManyPathsError after at least one path through each branch.
    """
    planned: list[int] = []
    decided = steps = 0
    while decided < MOST_PATHS:
        run = run_of(planned)
        yield _path(name, evaluate, run)
        steps += run.steps
        if steps > _MOST_STEPS_OF_ALL + _MOST_STEPS_OF_STATE * run.unknowns.count:
            break
        planned = [choice for _, choice in run.path.choices]
        while planned and planned[-1] + 1 == run.counts[len(planned) - 1]:
            planned.pop()
        if not planned:
            return
        planned[-1] += 1
        # Each state of an object has paths of its own.
        decided = 0 if run.counts[len(planned) - 1] > _CONDITION else decided + 1
    yield from _path_of_each_branch(name, evaluate, run_of)
    raise TooManyPathsError(f"`{name}` has more than {MOST_PATHS} paths")


def _path_of_each_branch(
    name: str, evaluate: Callable[[Run], object], run_of: Callable[[Sequence[int]], Run]
) -> Iterator[Path]:
    """Yield a path through each branch of each condition, as far as these paths show them."""
    plans: list[list[int]] = [[]]
    known = set[tuple[str, int]]()
    count = 0
    while plans:
        run = run_of(plans.pop())
        if count == _MOST_BRANCHES + len(run.unknowns.states):
            raise CannotFollowError(f"`{name}` has too many branches")
        count += 1
        yield _path(name, evaluate, run)
        choices = [choice for _, choice in run.path.choices]
        known.update(run.path.choices)
        for at, (key, _) in enumerate(run.path.choices):
            for other in range(run.counts[at]):
                if (key, other) not in known:
                    known.add((key, other))
                    plans.append([*choices[:at], other])


def _path(name: str, evaluate: Callable[[Run], object], run: Run) -> Path:
    try:
        run.path.value = evaluate(run)
    except RaisedError as error:
        is_doubtful = not error.is_stated and not run.path.opened and not run.path.is_with_fakes
        if is_doubtful and not run.follows_edit:
            raise CannotFollowError(f"`{name}` seems to raise a {error.kind}") from error
        run.path.error, run.path.is_check = error.kind, error.is_check
    except RecursionError as error:
        raise CannotFollowError(f"`{name}` is nested too deeply") from error
    return run.path

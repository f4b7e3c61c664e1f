"""Evaluation of one function: each path through it, with the settings that objects have at its end.

Conditions on known values are decided; for others both branches are evaluated, each in a path of its own. Two
evaluations of one function under different releases or with different texts have the same keys for what they cannot
know, so that their paths can be compared.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.linking.python.modules import Module, Modules
from cgmigrate.linking.python.relevance import Relevance
from cgmigrate.linking.python.values import CannotFollowError, Function
from cgmigrate.linking.python.world import World

MOST_PATHS = 64
"""Paths of one function; a function with more is not followed."""
MOST_CALLS = 12
"""Functions that call each other."""
MOST_STEPS = 20_000
"""Statements of one path."""


class RaisedError(Exception):
    """An exception that the evaluated code raises; ``kind`` is the name of its class.

    ``is_stated`` says that code raises it by a statement. Any other is one of an operation on known values; code that
    works raises none, unless it catches it.
    """

    def __init__(self, kind: str, *, is_stated: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.is_stated = kind, is_stated


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


@dataclass(slots=True)
class Path:
    """One path through a function: the conditions that it decides, its effects, and how it ends."""

    choices: list[tuple[str, bool]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    """What code that is not followed gets, in order."""
    writes: set[tuple[str, int]] = field(default_factory=set)
    """The file and line of each statement that sets a setting."""
    arguments: list[object] = field(default_factory=list)
    value: object = None
    error: str = ""
    """The exception that ends it, empty if it returns."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """The functions that execute code; each of them needs the others."""

    enter: Callable[[Function, Run], object]
    """Executes an entry point."""
    value_of_call: Callable[[ast.Call, Frame, Run], object]
    execute: Callable[[Sequence[ast.stmt], Frame, Run], Signal]
    store: Callable[[ast.expr, object, Frame, Run], None]
    """Binds the target of an assignment."""


@dataclass(slots=True)
class Run:
    """The evaluation of one path; ``planned`` are the first decisions."""

    modules: Modules
    world: World
    relevance: Relevance
    handlers: Handlers
    planned: Sequence[bool] = ()
    path: Path = field(default_factory=Path)
    steps: int = 0
    writes: int = 0
    """How often a setting was set."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def choose(self, key: str) -> bool:
        """Return the decision of the path for a condition that is not known."""
        at = len(self.path.choices)
        choice = self.planned[at] if at < len(self.planned) else True
        self.path.choices.append((key, choice))
        return choice

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


def cannot_follow(what: str, node: ast.AST, frame: Frame) -> CannotFollowError:
    """Return the error of code that is not followed, with its place."""
    return CannotFollowError(f"{what} ({frame.module.path}:{getattr(node, 'lineno', 0)})")


def paths_of(function: Function, run_of: Callable[[Sequence[bool]], Run]) -> Iterator[Path]:
    """Yield each path through a function; its parameters are objects that are not known. Raises CannotFollowError."""
    planned: list[bool] = []
    for _ in range(MOST_PATHS):
        run = run_of(planned)
        yield _path(function, run)
        planned = [choice for _, choice in run.path.choices]
        while planned and not planned[-1]:
            planned.pop()
        if not planned:
            return
        planned[-1] = False
    raise CannotFollowError(f"`{function.name}` has more than {MOST_PATHS} paths")


def _path(function: Function, run: Run) -> Path:
    try:
        run.path.value = run.handlers.enter(function, run)
    except RaisedError as error:
        if not error.is_stated:
            raise CannotFollowError(f"`{function.name}` seems to raise a {error.kind}") from error
        run.path.error = error.kind
    except RecursionError as error:
        raise CannotFollowError(f"`{function.name}` is nested too deeply") from error
    return run.path

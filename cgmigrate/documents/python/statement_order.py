"""What the statements of one function do to objects, in the order of the text: writes, and uses that may set them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.scopes import bodies_of
from cgmigrate.documents.python.source import dotted
from cgmigrate.text.remembered import remembered

_HARMLESS = frozenset(("print", "len", "isinstance", "getattr", "hasattr", "repr", "str", "type", "id", "bool"))
_MAX_DEPTH = 10
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_ONLY_READ = (
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.While, ast.IfExp, ast.Assert, ast.Return, ast.Expr),
    *(ast.Yield, ast.Attribute, ast.FormattedValue),
)


@dataclass(frozen=True, slots=True)
class Event:
    """A write to a path (``cfg.model``), or with ``escapes`` a use by which other code may set what is at it.

    ``value`` is what is written, None if it is not one expression. ``callee`` is the function that gets an object,
    ``alias`` the second name for it, and ``as_part`` says that a new object gets it as its part. ``suites`` are the
    ids of the lists of statements around it, outermost first.
    """

    path: str
    line: int
    suites: tuple[int, ...]
    value: ast.expr | None = None
    escapes: bool = False
    callee: str = ""
    alias: str = ""
    as_part: bool = False


@dataclass
class FunctionEvents:
    """The events of one function; ``suites`` are those around each statement, by its id."""

    events: list[Event] = field(default_factory=list)
    suites: dict[int, tuple[int, ...]] = field(default_factory=dict)
    exits: list[int] = field(default_factory=list)
    """The lines of statements that leave the function or a loop."""
    calls: list[tuple[ast.Call, tuple[int, ...]]] = field(default_factory=list)
    """Each call, with the suites around it."""
    loops: set[int] = field(default_factory=set)
    """The suites that are bodies of loops."""
    parameters: frozenset[str] = frozenset()

    def bindings_of(self, name: str) -> Sequence[Event]:
        """Return the statements that bind a name."""
        return self._of_path[False].get(name, ())

    def uses_of(self, path: str) -> Sequence[Event]:
        """Return the uses by which other code may set what is at a path, as the code writes it."""
        return self._of_path[True].get(path, ())

    def calls_that_get(self, node: ast.expr) -> Sequence[ast.Call]:
        """Return the calls that have an expression as an argument."""
        return self._getters.get(id(node), ())

    def made_by(self, node: ast.expr) -> Event | None:
        """Return the first event that writes what an expression makes."""
        return self._writing.get(id(node))

    def loop_around(self, event: Event) -> int | None:
        """Return the body of the innermost loop around an event."""
        return next((suite for suite in reversed(event.suites) if suite in self.loops), None)

    @remembered
    def original(self, path: str) -> str:
        """Return the path of an object by its first name: ``cfg.model`` for ``m`` after ``m = cfg.model``."""
        return self._unaliased(path)

    def events_at(self, target: str) -> list[Event]:
        """Return the events of an object, and of those that it is a part of, in the order of the text."""
        paths = accumulate(target.split("."), lambda path, name: f"{path}.{name}")
        numbers = sorted(number for path in paths for number in self._at_original.get(path, ()))
        return [self.events[number] for number in numbers]

    @cached_property
    def _getters(self) -> Mapping[int, Sequence[ast.Call]]:
        """The calls by the ids of their arguments: each setting of each site asks for the calls that get it."""
        result: dict[int, list[ast.Call]] = defaultdict(list)
        for call, _ in self.calls:
            for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                result[id(argument)].append(call)
        return result

    @cached_property
    def _writing(self) -> Mapping[int, Event]:
        """The first event of each value, by its id."""
        return {id(event.value): event for event in reversed(self.events) if event.value is not None}

    @cached_property
    def _of_path(self) -> Mapping[bool, Mapping[str, Sequence[Event]]]:
        """The writes to each path, and with True its uses."""
        result: dict[bool, dict[str, list[Event]]] = {False: defaultdict(list), True: defaultdict(list)}
        for event in self.events:
            result[event.escapes][event.path].append(event)
        return result

    @cached_property
    def _at_original(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the events by the first name of their object, for the lookups of each setting of a site."""
        result: dict[str, list[int]] = defaultdict(list)
        for number, event in enumerate(self.events):
            result[self.original(event.path)].append(number)
        return result

    def _unaliased(self, path: str, depth: int = 0) -> str:
        first, dot, rest = path.partition(".")
        other = self._aliased(first) if depth < _MAX_DEPTH else ""
        return self._unaliased(other + dot + rest, depth + 1) if other else path

    def _aliased(self, name: str) -> str:
        """Return the path of which a name is an alias throughout the function, empty if it is none."""
        bindings = self.bindings_of(name)
        value = bindings[0].value if len(bindings) == 1 and name not in self.parameters else None
        path = dotted(value) if value is not None else ""
        if not path or self.loop_around(bindings[0]) is not None:
            return ""
        root = path.partition(".")[0]
        if len(self.bindings_of(root)) + (root in self.parameters) > 1:
            return ""
        later = [event.path for event in self.events if not event.escapes and event.line > bindings[0].line]
        return "" if any(path == other or path.startswith(other + ".") for other in later) else path


def events_of(function: ast.AST) -> FunctionEvents:
    """Return what the statements of a function, or of a module, do."""
    arguments = getattr(function, "args", None)
    names = [node.arg for node in walk(arguments) if isinstance(node, ast.arg)] if arguments else []
    result = FunctionEvents(parameters=frozenset(names))
    body = getattr(function, "body", None)
    _suite(body if isinstance(body, list) else [], (), result)
    return result


def _suite(body: list[ast.stmt], around: tuple[int, ...], result: FunctionEvents) -> None:
    suites = (*around, id(body))
    for statement in body:
        result.suites[id(statement)] = suites
        _statement(statement, suites, result)


def _statement(statement: ast.stmt, suites: tuple[int, ...], result: FunctionEvents) -> None:
    if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
        result.exits.append(statement.lineno)
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.expr, ast.withitem, ast.keyword)):
            _escapes(child, statement, suites, result)
    result.events += [Event(path, statement.lineno, suites, value) for path, value in _writes(statement)]
    if isinstance(statement, (ast.Assign, ast.Expr)):
        # Most statements have no others in them.
        return
    if isinstance(statement, _FUNCTIONS):
        # Its body runs at another time.
        inner = (node for node in walk(statement) if isinstance(node, (ast.Name, ast.Attribute)))
        paths = dict.fromkeys(path for node in inner if (path := dotted(node)))
        result.events += [Event(path, statement.lineno, suites, escapes=True) for path in paths]
        return
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
        result.loops.add(id(statement.body))
    for body in bodies_of(statement):
        _suite(body, suites, result)


def _writes(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the paths that a statement binds, each with its value; None for one that is not one expression."""
    match statement:
        case ast.Assign(value=value) if _are_written(statement):
            yield from ((dotted(target), value) for target in statement.targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) if path := dotted(target):
            yield path, value
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str() as name), value])
        ):
            yield f"{dotted(owner)}.{name}", value
        case ast.Assign() | ast.AugAssign() | ast.For() | ast.AsyncFor() | ast.With() | ast.AsyncWith() | ast.Delete():
            targets = (node for node in walk(_head(statement)) if isinstance(node, (ast.Name, ast.Attribute)))
            for target in targets:
                if not isinstance(target.ctx, ast.Load) and dotted(target):
                    yield dotted(target), None
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, None
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                yield alias.asname or alias.name.partition(".")[0], None


def _are_written(statement: ast.Assign) -> bool:
    """Return whether each target has a path, and is the only name of the value or gets a constant."""
    is_one = len(statement.targets) == 1 or isinstance(statement.value, ast.Constant)
    return is_one and all(map(dotted, statement.targets))


def _head(statement: ast.stmt) -> ast.AST:
    """Return a statement without the statements in it."""
    parts = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt)]
    return ast.List(elts=parts, ctx=ast.Load())  # type: ignore[arg-type]


def _escapes(node: ast.AST, above: ast.AST, suites: tuple[int, ...], result: FunctionEvents) -> None:
    """Add the calls of an expression, and the objects that it gives to other code or another name."""
    if isinstance(node, ast.Constant):
        return
    if isinstance(node, (ast.Name, ast.Attribute)) and (path := dotted(node)):
        if isinstance(node.ctx, ast.Load) and not isinstance(above, _ONLY_READ):
            result.events.append(Event(path, node.lineno, suites, escapes=True, alias=_alias(above)))
        return
    if isinstance(node, ast.Call):
        _escapes_of_call(node, suites, result)
        return
    for child in ast.iter_child_nodes(node):
        _escapes(child, node, suites, result)


def _alias(above: ast.AST) -> str:
    """Return the name that a statement gives to an object."""
    match above:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _escapes_of_call(node: ast.Call, suites: tuple[int, ...], result: FunctionEvents) -> None:
    result.calls.append((node, suites))
    name = dotted(node.func)
    if not name:
        _escapes(node.func, node, suites, result)
    harmless, as_part = name in _HARMLESS or name == "setattr", name.rpartition(".")[2][:1].isupper()
    for argument in (*node.args, *node.keywords):
        value = argument.value if isinstance(argument, (ast.keyword, ast.Starred)) else argument
        if path := dotted(value):
            if not harmless:
                result.events.append(Event(path, node.lineno, suites, escapes=True, callee=name, as_part=as_part))
        else:
            _escapes(value, node, suites, result)

"""The code of a module that uses settings, in units that are evaluated: functions, or single statements of them.

The units of an edited text have the same names as those of the old one. Edits change, add or delete statements that
use settings, so a statement is named by the other statements of its block that are before it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

from cgmigrate.linking.python.calls import enter, executed_in, parameters, values_of_parameters
from cgmigrate.linking.python.evaluation import Frame, Run
from cgmigrate.linking.python.expressions import evaluate
from cgmigrate.linking.python.lookup import imported_in_function
from cgmigrate.linking.python.modules import Module
from cgmigrate.linking.python.statements import execute
from cgmigrate.linking.python.values import CannotFollowError, Function, Object

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
Uses = Callable[[ast.AST], bool]
"""Whether code uses a setting."""
_TOP = "(top)"


@dataclass(frozen=True, eq=False, slots=True)
class Unit:
    """A function, or a part of one: ``nodes`` are its statements, or one expression."""

    name: str
    module: Module
    scope: AnyFunction | None
    """The function; None at the top of the module."""
    nodes: tuple[ast.stmt, ...] | tuple[ast.expr, ...] = ()
    """The part; empty for the whole function."""

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line."""
        first, last = (self.nodes[0], self.nodes[-1]) if self.nodes else (self.scope, self.scope)
        assert first is not None and last is not None
        return first.lineno, last.end_lineno or last.lineno

    @property
    def place(self) -> str:
        """The file and line."""
        return f"{self.module.path}:{self.lines[0]}"

    def evaluate(self, run: Run) -> object:
        """Return the value of the unit; a condition is decided. Raises RaisedError and CannotFollowError."""
        value = self._value(run)
        return run.choose(value.key) if isinstance(value, Object) and value.is_condition else value

    def _value(self, run: Run) -> object:
        if not self.nodes:
            if not isinstance(self.scope, ast.FunctionDef):
                raise CannotFollowError(f"`{self.name.partition('#')[0]}` is asynchronous")
            return enter(Function(self.scope, self.module), run)
        frame = self._frame(run)
        run.path.arguments = list(frame.names.values())
        if isinstance(self.nodes[0], ast.expr):
            return evaluate(self.nodes[0], frame, run)
        result = executed_in(execute(self.nodes, frame, run))
        bound = {node.id for one in self.nodes for node in ast.walk(one) if _is_stored(node)}
        run.path.bound = {name: frame.names[name] for name in sorted(bound & frame.names.keys())}
        return result

    def _frame(self, run: Run) -> Frame:
        """Return a frame in which every name of the function is an object that is not known."""
        empty = ast.parse("def top(): pass").body[0]
        assert isinstance(empty, ast.FunctionDef)
        empty.body = []
        names = _names_in(self.scope) if self.scope else _stored_at_top(self.module)
        bound: dict[str, object] = {name: Object(f"name {name}") for name in sorted(names)}
        frame = Frame(Function(empty, self.module), bound, 0)
        if self.scope is not None:
            bound |= values_of_parameters(self.scope, self.module, run)
            for one in _imports_in(self.scope):
                bound |= imported_in_function(one, frame, run)
        return frame


@lru_cache(maxsize=65536)
def _imports_in(scope: AnyFunction) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the imports that a function surely executes."""
    return tuple(one for one in scope.body if isinstance(one, (ast.Import, ast.ImportFrom)))


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


@lru_cache(maxsize=65536)
def _names_in(scope: AnyFunction) -> frozenset[str]:
    return frozenset((*parameters(scope), *_stored(scope.body)))


@lru_cache(maxsize=4096)
def _stored_at_top(module: Module) -> frozenset[str]:
    return frozenset(_stored(module.tree.body)) - _imported(module)


def _stored(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements bind, not those of functions and classes in them."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.ExceptHandler) and node.name:
                yield node.name


def _imported(module: Module) -> set[str]:
    return {name for name, bound in module.bindings.items() if not isinstance(bound, (ast.expr, type(None)))}


def functions_of(module: Module) -> Iterator[tuple[str, AnyFunction, ast.ClassDef | None]]:
    """Yield the functions and methods of a module, each with a name of its own and its class."""
    seen: dict[str, int] = {}

    def named(
        prefix: str, body: Sequence[ast.stmt], inside: ast.ClassDef | None
    ) -> Iterator[tuple[str, AnyFunction, ast.ClassDef | None]]:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = prefix + node.name
                seen[name] = seen.get(name, 0) + 1
                yield f"{name}#{seen[name]}", node, inside
            elif isinstance(node, ast.ClassDef):
                yield from named(f"{prefix}{node.name}.", node.body, node)
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from named(prefix, [one for _, block in _blocks(node) for one in block], inside)

    yield from named("", module.tree.body, None)


def same_for_others(unit: Unit, name: str, old: object, new: object) -> bool:
    """Return whether the parts behind a part do the same with one value of a name as with another.

    They do if they only compare it, and each comparison has the same result.
    """
    body = unit.scope.body if unit.scope else unit.module.tree.body
    own = {id(node) for one in unit.nodes for node in ast.walk(one)}
    compared = dict(_compared(body, name))
    loads = [
        node
        for one in body
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and id(node) not in own
    ]
    return all(id(node) in compared and compared[id(node)](old) == compared[id(node)](new) for node in loads)


def _compared(body: Sequence[ast.stmt], name: str) -> Iterator[tuple[int, Callable[[object], bool]]]:
    """Yield the uses of a name in comparisons with constants, by identity, each with its test."""
    for one in body:
        for node in ast.walk(one):
            match node:
                case ast.Compare(left=ast.Name(id=left) as use, ops=[operator], comparators=[right]) if left == name:
                    test = _test_of(operator, right)
                case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Name(id=right) as use]) if right == name:
                    test = _member_test(left)
                case _:
                    continue
            if test is not None:
                yield id(use), test


def _test_of(operator: ast.cmpop, right: ast.expr) -> Callable[[object], bool] | None:
    try:
        other = ast.literal_eval(right)
    except ValueError:
        return None
    match operator:
        case ast.Eq() | ast.NotEq():
            return lambda value: value == other
        case ast.Is() | ast.IsNot() if other is None:
            return lambda value: value is None
        case ast.In() | ast.NotIn() if isinstance(other, (list, tuple, set)):
            return lambda value: value in list(other)
    return None


def _member_test(left: ast.expr) -> Callable[[object], bool] | None:
    if isinstance(left, ast.Constant):
        member = left.value
        return lambda value: isinstance(value, (list, tuple, set, str)) and member in list(value)
    return None


def unit_of(module: Module, name: str) -> Unit | None:
    """Return the function of a module with a name, None if it has none."""
    return next((Unit(one, module, node) for one, node, _ in functions_of(module) if one == name), None)


def parts_of_function(unit: Unit, uses: Uses) -> list[Unit]:
    """Return the parts of a function that use settings."""
    assert unit.scope is not None
    return [Unit(name, unit.module, unit.scope, nodes) for name, nodes in _parts(unit.scope.body, unit.name, uses)]


def parts_of_top(module: Module, uses: Uses) -> list[Unit]:
    """Return the statements at the top of a module that use settings, without functions and classes."""
    return [Unit(name, module, None, nodes) for name, nodes in _parts(module.tree.body, _TOP, uses)]


def part_of(module: Module, name: str, uses: Uses) -> Unit | None:
    """Return the part with a name, None if the module has none: all of its statements are deleted."""
    function = name.partition("/")[0]
    if function == _TOP:
        parts = parts_of_top(module, uses)
    else:
        unit = unit_of(module, function)
        parts = parts_of_function(unit, uses) if unit else []
    return next((one for one in parts if one.name == name), None)


def _parts(
    body: Sequence[ast.stmt], name: str, uses: Uses
) -> Iterator[tuple[str, tuple[ast.stmt, ...] | tuple[ast.expr, ...]]]:
    """Yield the parts of a block: runs of simple statements with settings, and expressions that begin statements."""
    others = 0
    pending: list[ast.stmt] = []
    for statement in body:
        blocks = list(_blocks(statement))
        is_definition = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if not blocks and not is_definition and uses(statement):
            pending.append(statement)
            continue
        if isinstance(statement, ast.Pass):
            continue
        if pending:
            yield f"{name}/{others}", tuple(pending)
            pending = []
        others += 1
        if is_definition:
            if name != _TOP and uses(statement):
                yield f"{name}/{others}", (statement,)
            continue
        yield from ((f"{name}/{others}.{at}", (head,)) for at, head in enumerate(_heads(statement)) if uses(head))
        for field, block in blocks:
            yield from _parts(block, f"{name}/{others}{field}", uses)
    if pending:
        yield f"{name}/{others}", tuple(pending)


def _blocks(statement: ast.stmt) -> Iterator[tuple[str, Sequence[ast.stmt]]]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for field in ("body", "orelse", "finalbody"):
        if block := getattr(statement, field, None):
            yield field, block
    for at, handler in enumerate(getattr(statement, "handlers", ())):
        yield f"handler{at}", handler.body
    for at, case in enumerate(getattr(statement, "cases", ())):
        yield f"case{at}", case.body


def _heads(statement: ast.stmt) -> Iterator[ast.expr]:
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            yield test
        case ast.For(iter=values) | ast.AsyncFor(iter=values):
            yield values
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (item.context_expr for item in items)
        case ast.Match(subject=subject):
            yield subject

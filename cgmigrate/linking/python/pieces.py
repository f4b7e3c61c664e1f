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

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.evaluation import Frame, Run
from cgmigrate.linking.python.expressions import evaluate
from cgmigrate.linking.python.function_calls import enter, executed_in, parameters, values_of_parameters
from cgmigrate.linking.python.inner_functions import Inner, empty_function, inner_functions, lambdas_at_top
from cgmigrate.linking.python.lookup import imported_in_function
from cgmigrate.proof.flow.modules import Module
from cgmigrate.linking.python.parametrised import arguments_in
from cgmigrate.linking.python.statements import execute
from cgmigrate.linking.python.values import CannotFollowError, Function, Object

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
Uses = Callable[[ast.AST], bool]
"""Whether code uses a setting."""
_TOP = "(top)"
_EXTENDED = "+"
_INSIDE = ":"
"""What is in the names of functions that other functions define, and of lambdas."""
_BEGINNING, _REST = "<", ">"
"""What marks the names of the beginning of a function, up to a statement, and of the rest."""


@dataclass(frozen=True, eq=False, slots=True)
class Unit:
    """A function, or a part of one: ``nodes`` are its statements, or one expression."""

    name: str
    module: Module
    scope: AnyFunction | None
    """The function; None at the top of the module."""
    nodes: tuple[ast.stmt, ...] | tuple[ast.expr, ...] = ()
    """The part; empty for the whole function."""
    around: tuple[AnyFunction, ...] = ()
    """The functions around one that other functions define."""
    shown_at: str = ""
    """The file and line that code is written for which is in no file; empty for other code."""

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line."""
        first, last = (self.nodes[0], self.nodes[-1]) if self.nodes else (self.scope, self.scope)
        assert first is not None and last is not None
        return first.lineno, last.end_lineno or last.lineno

    @property
    def place(self) -> str:
        """The file and line."""
        return self.shown_at or f"{self.module.path}:{self.lines[0]}"

    def evaluate(self, run: Run) -> object:
        """Return the value of the unit; a condition is decided. Raises RaisedError and CannotFollowError."""
        value = self._value(run)
        return run.choose(value.key) if isinstance(value, Object) and value.is_condition else value

    @property
    def function(self) -> str:
        """The name of the function in its module, for a part too."""
        return _function_of(self.name_in_module)

    @property
    def name_in_module(self) -> str:
        """The name by which its module has it: code that is written to show something has the name of what it shows."""
        return f"{self.scope.name}#1" if self.shown_at and self.scope else self.name

    @property
    def is_beginning(self) -> bool:
        """Whether it is the beginning of a function, up to a statement that is not followed."""
        return _BEGINNING in self.name

    def _value(self, run: Run) -> object:
        if not self.nodes:
            if not isinstance(self.scope, ast.FunctionDef):
                raise CannotFollowError(f"`{self.name.partition('#')[0]}` is asynchronous")
            function = Function(self.scope, self.module, self._names_around(run))
            return enter(function, run)
        frame = self._frame(run)
        loads = frozenset[str]().union(*(run.relevance.facts(one).loads for one in self.nodes))
        run.needed = frozenset(name for name in loads if name[0] == ".")
        if self.is_beginning and isinstance(self.scope, ast.FunctionDef):
            # What no setting depends on is skipped, as in the whole function.
            frame.function = Function(self.scope, self.module, frame.function.around)
        run.path.arguments = arguments_in(frame)
        if isinstance(self.nodes[0], ast.expr):
            return evaluate(self.nodes[0], frame, run)
        result = executed_in(execute(self.nodes, frame, run))
        run.path.bound = {name: frame.names[name] for name in sorted(_bound_for_others(self) & frame.names.keys())}
        return result

    def _names_around(self, run: Run) -> dict[str, object]:
        """Return the names of the functions around it: what they are when it is called is not known.

        Only functions that are bound once are.
        """
        names: dict[str, object] = {}
        for scope in self.around:
            inside = Frame(Function(empty_function(), self.module), names, 0)
            names |= {name: Object(f"name {name}") for name in sorted({*_names_in(scope), *_defined_in(scope)})}
            for one in _imports_in(scope):
                names |= imported_in_function(one, inside, run)
            names |= {one.name: Function(one, self.module, names) for one in _functions_once_in(scope)}
        return names

    def _frame(self, run: Run) -> Frame:
        """Return a frame in which every name of the function is an object that is not known."""
        names = _names_in(self.scope) if self.scope else _stored_at_top(self.module)
        bound: dict[str, object] = {name: Object(f"name {name}") for name in sorted(names)}
        frame = Frame(Function(empty_function(), self.module, self._names_around(run)), bound, 0)
        if self.scope is not None:
            bound |= values_of_parameters(self.scope, self.module, run)
            for one in _imports_in(self.scope):
                bound |= imported_in_function(one, frame, run)
        return frame


@lru_cache(maxsize=65536)
def _bound_for_others(unit: Unit) -> frozenset[str]:
    """Return the names that a part binds, and that code of the function outside of it may use."""
    inside = [node for one in unit.nodes for node in walk(one)]
    bound = frozenset(node.id for node in inside if _is_stored(node))
    if unit.scope is None:
        return bound
    of_part = set(map(id, inside))
    return bound & {
        node.id
        for node in walk(unit.scope)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store) and id(node) not in of_part
    }


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


@lru_cache(maxsize=65536)
def _defined_in(scope: AnyFunction) -> tuple[str, ...]:
    """Return the names of the functions and classes in a function, each as often as it is bound."""
    return tuple(
        node.name
        for node in walk(scope)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node is not scope
    )


def _functions_once_in(scope: AnyFunction) -> Iterator[ast.FunctionDef]:
    """Yield the functions that a function defines in any case, and whose names it binds to nothing else."""
    names = (*_defined_in(scope), *_names_in(scope))
    yield from (one for one in scope.body if isinstance(one, ast.FunctionDef) and names.count(one.name) == 1)


def _stored(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements bind, not those of functions and classes in them."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for node in walk(statement):
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
            else:
                yield from named(prefix, [one for _, block in _blocks(node) for one in block], inside)

    yield from named("", module.tree.body, None)


def inner_units(module: Module) -> Iterator[Unit]:
    """Yield the functions of a module that are in others, and its lambdas, which code may get and call."""
    for one in (*lambdas_at_top(module.tree), *_inner_of(module)):
        if one.is_kept:
            yield Unit(one.name, module, one.node, around=one.around)


def only_called_in(unit: Unit) -> Iterator[Unit]:
    """Yield the functions in a function that only this one calls."""
    for one in _inner_of(unit.module):
        if not one.is_kept and unit.scope in one.around:
            yield Unit(one.name, unit.module, one.node, around=one.around)


def _inner_of(module: Module) -> Iterator[Inner]:
    for name, node, _ in functions_of(module):
        yield from inner_functions(name, node)


def only_called_at_top(part: Unit) -> ast.FunctionDef | None:
    """Return the function that a part at the top of a module calls without arguments, if it does nothing else."""
    if part.scope is None and len(part.nodes) == 1:
        match part.nodes[0]:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[])):
                node = part.module.bindings.get(name)
                if isinstance(node, ast.FunctionDef) and not parameters(node) and not node.decorator_list:
                    return node
    return None


def unit_of(module: Module, name: str) -> Unit | None:
    """Return the function of a module with a name, None if it has none."""
    if _INSIDE in name:
        inner = next((one for one in (*lambdas_at_top(module.tree), *_inner_of(module)) if one.name == name), None)
        return Unit(name, module, inner.node, around=inner.around) if inner else None
    return next((Unit(one, module, node) for one, node, _ in functions_of(module) if one == name), None)


def parts_of_function(unit: Unit, uses: Uses) -> list[Unit]:
    """Return the parts of a function that use settings."""
    return _parts_of(_Code(unit.name, unit.module, unit.scope, unit.around), uses, is_extended=True)


def parts_around(unit: Unit, statement: ast.stmt | None, uses: Uses) -> list[Unit]:
    """Return the beginning of a function, up to a statement that is not followed, and the parts of the rest.

    Empty if no code before the statement uses a setting.
    """
    body = unit.nodes or (unit.scope.body if unit.scope else ())
    at = next((at for at, one in enumerate(body) if one is statement), 0)
    if unit.scope is None or not at:
        return []
    name = unit.name.partition(_BEGINNING)[0]
    label = _label_of(unit.scope.body, at, uses)
    at = _place_of(unit.scope.body, label, uses)
    beginning = Unit(f"{name}{_BEGINNING}{label}", unit.module, unit.scope, tuple(unit.scope.body[:at]), unit.around)
    if not any(map(uses, beginning.nodes)):
        return []
    inside = {id(node) for one in body for node in walk(one)}
    rest = _parts_of(
        _Code(f"{name}{_REST}{label}", unit.module, unit.scope, unit.around), uses, is_extended=not unit.nodes
    )
    return [beginning, *(one for one in rest if id(one.nodes[0]) in inside)]


def parts_of_top(module: Module, uses: Uses) -> list[Unit]:
    """Return the statements at the top of a module that use settings, without functions and classes."""
    return _parts_of(_Code(_TOP, module, None), uses, is_extended=True)


def smaller_parts(part: Unit, uses: Uses) -> list[Unit]:
    """Return the parts that a part consists of: those with settings, without what uses the names that they bind.

    Empty if it consists of one.
    """
    if not part.name.endswith(_EXTENDED) and not part.is_beginning:
        return []
    inside = {id(node) for one in part.nodes for node in walk(one)}
    code = _Code(part.name.partition("/")[0].partition(_BEGINNING)[0], part.module, part.scope, part.around)
    return [one for one in _parts_of(code, uses, is_extended=False) if id(one.nodes[0]) in inside]


def _function_of(name: str) -> str:
    return name.partition("/")[0].partition(_BEGINNING)[0].partition(_REST)[0]


def part_of(module: Module, name: str, uses: Uses) -> Unit | None:
    """Return the part with a name, None if the module has none: all of its statements are deleted."""
    code_name = name.partition("/")[0]
    function = _function_of(name)
    unit = None if function == _TOP else unit_of(module, function)
    if unit is None and function != _TOP:
        return None
    if unit is not None and unit.scope is not None and _BEGINNING in code_name:
        at = _place_of(unit.scope.body, code_name.partition(_BEGINNING)[2], uses)
        return Unit(name, module, unit.scope, tuple(unit.scope.body[:at]), unit.around) if at else None
    code = _Code(code_name, module, unit.scope if unit else None, unit.around if unit else ())
    for is_extended in (True, False):
        for one in _parts_of(code, uses, is_extended=is_extended):
            if one.name == name or (is_extended and one.name + _EXTENDED == name):
                return one
    return None


@dataclass(frozen=True, slots=True)
class _Code:
    """The code of a function or the rest of one, or of the top of a module."""

    name: str
    module: Module
    scope: AnyFunction | None
    around: tuple[AnyFunction, ...] = ()

    def body(self, uses: Uses) -> Sequence[ast.stmt]:
        """Return the statements."""
        body = self.scope.body if self.scope else self.module.tree.body
        label = self.name.partition(_REST)[2]
        return body[_place_of(body, label, uses) :] if label else body


def _label_of(body: Sequence[ast.stmt], at: int, uses: Uses) -> str:
    """Return a name for the place before a statement: how many others are before it, which edits leave.

    It ends with a sign if the statements with settings between these others and the place are behind it.
    """
    others = sum(_is_other(one, uses) for one in body[:at])
    return f"{others}" if at < len(body) and _is_other(body[at], uses) else f"{others}-"


def _place_of(body: Sequence[ast.stmt], label: str, uses: Uses) -> int:
    """Return the place in a block with a name; see ``_label_of``."""
    count = int(label.removesuffix("-"))
    others = [at for at, one in enumerate(body) if _is_other(one, uses)]
    if not label.endswith("-"):
        return others[count] if count < len(others) else len(body)
    return others[count - 1] + 1 if 0 < count <= len(others) else 0


def _is_other(statement: ast.stmt, uses: Uses) -> bool:
    return not isinstance(statement, ast.Pass) and not (_is_simple(statement) and uses(statement))


def _parts_of(code: _Code, uses: Uses, *, is_extended: bool) -> list[Unit]:
    parts = _parts(code.body(uses), code.name, uses, is_extended)
    return [Unit(name, code.module, code.scope, nodes, code.around) for name, nodes in parts]


def _parts(
    body: Sequence[ast.stmt], name: str, uses: Uses, is_extended: bool
) -> Iterator[tuple[str, tuple[ast.stmt, ...] | tuple[ast.expr, ...]]]:
    """Yield the parts of a block: runs of simple statements with settings, and expressions that begin statements.

    An extended part also has the statements that use what it binds. Then its name ends with a sign of its own.
    """
    others = at = 0
    while at < len(body):
        statement = body[at]
        if _is_simple(statement) and uses(statement):
            run, end = _ends_of_run(body, at, uses)
            end = end if is_extended else run
            yield f"{name}/{others}" + _EXTENDED * (end > run), tuple(body[at:end])
            others += sum(not (_is_simple(one) and uses(one)) for one in body[at:end] if not isinstance(one, ast.Pass))
            at = end
            continue
        at += 1
        if isinstance(statement, ast.Pass):
            continue
        others += 1
        if _is_definition(statement):
            if name != _TOP and uses(statement):
                yield f"{name}/{others}", (statement,)
            continue
        yield from (
            (f"{name}/{others}.{number}", (head,)) for number, head in enumerate(_heads(statement)) if uses(head)
        )
        for field, block in _blocks(statement):
            yield from _parts(block, f"{name}/{others}{field}", uses, is_extended)


def _is_definition(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _ends_of_run(body: Sequence[ast.stmt], first: int, uses: Uses) -> tuple[int, int]:
    """Return where a part ends that begins with a statement of a block, and where an extended one does.

    It has the simple statements with settings that follow each other. An extended one has those behind them, too, that
    use what they bind, as far as these are simple, or conditions.
    """
    end = first
    while end < len(body) and ((_is_simple(body[end]) and uses(body[end])) or isinstance(body[end], ast.Pass)):
        end += 1
    bound = _stored_in(body[first:end])
    last = end
    for at in range(end, len(body)):
        if not (_is_simple(body[at]) or isinstance(body[at], ast.If)):
            break
        if any(isinstance(node, ast.Name) and node.id in bound for node in walk(body[at])):
            bound |= _stored_in(body[last : at + 1])
            last = at + 1
    return end, last


def _stored_in(body: Sequence[ast.stmt]) -> set[str]:
    return {node.id for one in body for node in walk(one) if _is_stored(node)}


def _is_simple(statement: ast.stmt) -> bool:
    return not _is_definition(statement) and not any(_blocks(statement))


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

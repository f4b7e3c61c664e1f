"""Functions that only read settings, and have too many paths to take each of them.

Their statements are evaluated once, whatever is before them. If everything that is computed from settings is the same
before and after the edits, the function does the same on every path.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import walk
from cgmigrate.proof.flow.expressions import Evaluator
from cgmigrate.proof.flow.limits import NotFollowedError
from cgmigrate.proof.flow.run import RaisedError, state_of
from cgmigrate.proof.flow.slices import AnyFunction, Kept, bodies_of, bound_by
from cgmigrate.proof.flow.statements import entered, execute
from cgmigrate.proof.flow.values import Object

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def read(own: Evaluator, node: AnyFunction, kept: Kept) -> None:
    """Evaluate each statement of a function that is kept. Raises NotFollowedError if one sets something."""
    if any(isinstance(one, ast.NamedExpr) for one in walk(node)):
        raise NotFollowedError("it has too many paths")
    bound = Counter([*own.scope.names, *_bound(node.body)])
    own.scope.names = {name: Object(name, is_argument=True, is_part=True) for name in bound} | own.scope.names
    changing = frozenset(name for name, times in bound.items() if times > 1)
    _Reading(own, kept, changing).read(node.body)
    run = own.run
    if run.sets_argument or run.sets_path or any(state_of(one) for one in run.objects.values() if not one.is_argument):
        raise NotFollowedError("it has too many paths")


def _bound(body: Iterable[ast.stmt]) -> Iterable[str]:
    for one in body:
        yield from bound_by(one)
        yield from _bound([] if isinstance(one, _DEFINITIONS) else bodies_of(one))


@dataclass(frozen=True, slots=True)
class _Reading:
    own: Evaluator
    kept: Kept
    changing: frozenset[str]
    """The variables that several statements bind: they may have any value."""

    def read(self, body: Iterable[ast.stmt]) -> None:
        for one in body:
            if one in self.kept.statements and not isinstance(one, (ast.Raise, ast.Break, ast.Continue)):
                self._read(one)
                self.read([] if isinstance(one, _DEFINITIONS) else bodies_of(one))

    def _read(self, statement: ast.stmt) -> None:
        run, is_reading = self.own.run, statement in self.kept.reading
        outer, run.is_reading = run.is_reading, is_reading
        run.note(self.own.module, statement)
        try:
            for value in self._values(statement):
                if is_reading:
                    run.event("reads", value)
        except RaisedError as error:
            run.event("raises", error.name)
        finally:
            run.is_reading = outer
        for name in self.changing.intersection(bound_by(statement)):
            self.own.scope.names[name] = Object(name, is_argument=True, is_part=True)

    def _values(self, statement: ast.stmt) -> Iterable[object]:
        """Yield what a statement computes, and bind its variables."""
        own = self.own
        match statement:
            case ast.For(target=target, iter=source) | ast.AsyncFor(target=target, iter=source):
                yield own.value(source)
                own.bind(target, Object(f"item of {ast.unparse(source)}", is_argument=True, is_part=True))
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    yield (value := own.value(item.context_expr))
                    if item.optional_vars is not None:
                        own.bind(item.optional_vars, entered(own, value))
            case ast.If(test=value) | ast.While(test=value) | ast.Assert(test=value):
                yield own.value(value)
            case ast.Expr(value=value):
                yield from map(own.value, value.args if isinstance(value, ast.Call) else ())
                yield own.value(value)
            case ast.Return(value=value):
                yield own.value(value) if value is not None else None
            case ast.Try():
                pass
            case _:
                if not bound_by(statement) and (value := getattr(statement, "value", None)) is not None:
                    yield own.value(value)
                execute(own, [statement], self.kept)
                yield from (own.scope.names[name] for name in bound_by(statement) if name in own.scope.names)

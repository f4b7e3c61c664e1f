"""Execution of the statements of a slice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from cgmigrate.documents.python.nodes import walk
from cgmigrate.proof.flow import attributes
from cgmigrate.proof.flow.expressions import Evaluator
from cgmigrate.proof.flow.limits import NotComputedError, NotFollowedError
from cgmigrate.proof.flow.modules import Import
from cgmigrate.proof.flow.names import class_of, imported
from cgmigrate.proof.flow.replacements import Replacement
from cgmigrate.proof.flow.run import RaisedError
from cgmigrate.proof.flow.slices import Kept
from cgmigrate.proof.flow.values import Bound, Builtin, Class, External, Function, Object, Unknown, shown

_MOST_TURNS = 64
_ASKING = frozenset(("isinstance", "hasattr", "getattr", "len", "bool", "callable"))
_ANY_ERROR = frozenset(("Exception", "BaseException"))


class ReturnedError(Exception):
    """A function returns."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class _BreakError(Exception):
    pass


class _ContinueError(Exception):
    pass


def execute(own: Evaluator, body: Sequence[ast.stmt], kept: Kept) -> None:
    """Execute the statements of a body that are kept."""
    for statement in body:
        if statement not in kept.statements:
            continue
        run = own.run
        run.step()
        before, run.is_reading = run.is_reading, statement in kept.reading
        try:
            if (compound := _COMPOUND.get(type(statement))) is not None:
                compound(own, statement, kept)
                continue
            run.note(own.module, statement)
            if (simple := _SIMPLE.get(type(statement))) is not None:
                simple(own, statement)
            elif not isinstance(statement, ast.Pass):
                raise NotFollowedError(f"it has a statement that cgmigrate does not follow (line {statement.lineno})")
        finally:
            run.is_reading = before


# --- simple statements ----------------------------------------------------------------------------


def _assign(own: Evaluator, node: ast.Assign) -> None:
    value = own.value(node.value)
    for target in node.targets:
        own.bind(target, value)


def _annotated(own: Evaluator, node: ast.AnnAssign) -> None:
    if node.value is not None:
        own.bind(node.target, own.value(node.value))


def _augmented(own: Evaluator, node: ast.AugAssign) -> None:
    target = ast.copy_location(_loaded(node.target), node)
    old = own.value(target)
    if isinstance(old, list) and isinstance(node.op, ast.Add):
        more = own.items(own.value(node.value))
        old += [Unknown(f"more of {shown(old)}")] if more is None else more
        return
    value = own.value(ast.copy_location(ast.BinOp(target, node.op, node.value), node))
    if isinstance(old, dict) and isinstance(value, dict):
        old.update(value)
        return
    own.bind(node.target, value)


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=owner, attr=name):
            return ast.Attribute(owner, name, ast.Load())
        case ast.Subscript(value=owner, slice=key):
            return ast.Subscript(owner, key, ast.Load())
    return target


def _expression(own: Evaluator, node: ast.Expr) -> None:
    value = own.value(node.value)
    if own.run.is_reading and not isinstance(node.value, (ast.Call, ast.Yield, ast.Await)):
        own.run.event("reads", value)


def _return(own: Evaluator, node: ast.Return) -> None:
    raise ReturnedError(own.value(node.value) if node.value is not None else None)


def _raise(_own: Evaluator, node: ast.Raise) -> None:
    match node.exc:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) | ast.Name(id=name) | ast.Attribute(attr=name):
            raise RaisedError(name, is_explicit=True)
    raise RaisedError("Exception", is_explicit=True)


def _assert(own: Evaluator, node: ast.Assert) -> None:
    if not own.run.is_test:
        if not own.truth(own.value(node.test)):
            raise RaisedError("AssertionError", is_explicit=True)
        return
    own.run.has_read = False
    value = own.value(node.test)
    if isinstance(value, Unknown):
        # The test passes; so does it after the edits if this is the same.
        own.run.event("asserts", value)
    elif not own.truth(value):
        if own.run.has_read:
            raise RaisedError("AssertionError")
        own.run.event("asserts", False)


def _delete(own: Evaluator, node: ast.Delete) -> None:
    for target in node.targets:
        match target:
            case ast.Name(id=name):
                own.scope.names.pop(name, None)
            case ast.Attribute(value=owner, attr=name):
                attributes.delete(own.run, own.value(owner), name)
            case ast.Subscript(value=owner, slice=key):
                table, index = own.value(owner), own.value(key)
                if isinstance(table, dict):
                    table.pop(index, None)


def _import(own: Evaluator, node: ast.Import) -> None:
    for alias in node.names:
        full = alias.name if alias.asname else alias.name.partition(".")[0]
        own.scope.names[alias.asname or full] = imported(own.run, own.module, Import(full))


def _import_from(own: Evaluator, node: ast.ImportFrom) -> None:
    source = "." * node.level + (node.module or "")
    for alias in node.names:
        full = f"{source}.{alias.name}"
        if not own.run.side.world.has_class(full) and full.startswith("megatron.core"):
            raise RaisedError("ImportError")
        own.scope.names[alias.asname or alias.name] = imported(own.run, own.module, Import(source, alias.name))


def _function(own: Evaluator, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    value: object = Function(own.module, node, own.scope)
    own.scope.names[node.name] = decorated(own, node, value)


def decorated(own: Evaluator, node: ast.FunctionDef | ast.AsyncFunctionDef, value: object) -> object:
    """Return what the decorators of a function return for it."""
    for decorator in reversed(node.decorator_list):
        function = own.value(decorator)
        if isinstance(function, (Function, Bound)):
            value = own.run.call(function, [value], {})
    return value


def _class(own: Evaluator, node: ast.ClassDef) -> None:
    own.scope.names[node.name] = Class(own.module, node, own.scope)
    class_of(own.run, own.module, node)


def _jump(_own: Evaluator, node: ast.Break | ast.Continue) -> None:
    raise _BreakError if isinstance(node, ast.Break) else _ContinueError


def _outer(own: Evaluator, node: ast.Global | ast.Nonlocal) -> None:
    """Names of outer scopes are only read: what sets them is not followed."""
    own.run.event("outer names", *node.names)


# --- compound statements --------------------------------------------------------------------------


def _if(own: Evaluator, node: ast.If, kept: Kept) -> None:
    own.run.note(own.module, node.test)
    # A refusal ends the program, unless something catches it.
    only_raises = not node.orelse and isinstance(node.body[-1], ast.Raise) and not own.run.catching
    if only_raises and node not in kept.reading and _has_no_effect(node.test) and not _is_computed(own, node.test):
        return
    value = own.value(node.test)
    is_unknown = isinstance(own.run.resolved(value), Unknown)
    if only_raises and is_unknown:
        return
    if is_unknown and not node.orelse and node not in kept.reading and _only_calls(own, node.body, kept):
        # What it calls is not known, and changes nothing that is followed: it is as if it were always called.
        execute(own, node.body, kept)
        return
    is_true = own.truth(value)
    if node in kept.observed:
        own.run.event("condition", is_true)
    execute(own, node.body if is_true else node.orelse, kept)


def _only_calls(own: Evaluator, body: Sequence[ast.stmt], kept: Kept) -> bool:
    """Return whether all that is kept of a body are calls without arguments of what is not known."""
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute() as function, args=[], keywords=[])):
                value = own.value(function)
                if not (isinstance(value, Unknown) or (isinstance(value, Object) and value.is_part)):
                    return False
            case _ if statement in kept.statements:
                return False
    return True


def _has_no_effect(test: ast.expr) -> bool:
    """Return whether a condition only asks: evaluated in part, or twice, it changes nothing."""
    effects = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return not any(isinstance(one, effects) or (isinstance(one, ast.Call) and not _asks(one)) for one in walk(test))


def _asks(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _ASKING


def _is_computed(own: Evaluator, test: ast.expr) -> bool:
    """Return whether the outcome of a condition is known without a choice."""
    outer, own.run.is_computing = own.run.is_computing, True
    try:
        own.truth(own.value(test))
    except NotComputedError:
        return False
    finally:
        own.run.is_computing = outer
    return True


def _for(own: Evaluator, node: ast.For | ast.AsyncFor, kept: Kept) -> None:
    own.run.note(own.module, node.iter)
    source = own.value(node.iter)
    items = own.items(source)
    if items is None:
        key = shown(source)
        items = (
            [Object(f"item of {key}", is_part=True, is_argument=True)] if own.run.choose(f"loop over {key}", 2) else []
        )
    for item in items:
        own.bind(node.target, item)
        try:
            execute(own, node.body, kept)
        except _BreakError:
            return
        except _ContinueError:
            continue
    execute(own, node.orelse, kept)


def _while(own: Evaluator, node: ast.While, kept: Kept) -> None:
    for _ in range(_MOST_TURNS):
        value = own.value(node.test)
        if not own.truth(value):
            return
        try:
            execute(own, node.body, kept)
        except _BreakError:
            return
        except _ContinueError:
            continue
        if not isinstance(value, bool) or isinstance(node.test, ast.Constant):
            return
    raise NotFollowedError("it has a loop with too many turns")


def _with(own: Evaluator, node: ast.With | ast.AsyncWith, kept: Kept) -> None:
    expected = ""
    managers = []
    for item in node.items:
        own.run.note(own.module, item.context_expr)
        value = own.value(item.context_expr)
        if isinstance(item.context_expr, ast.Call):
            expected = expected or _expected(own, item.context_expr)
        managers.append(value)
        if isinstance(value, Replacement):
            value.enter(own.run)
        if item.optional_vars is not None:
            own.bind(item.optional_vars, entered(own, value))
    own.run.catching += 1
    try:
        execute(own, node.body, kept)
    except RaisedError as error:
        if not expected or not _catches(error.name, expected):
            if error.is_explicit and any(_may_catch(own, item.context_expr) for item in node.items):
                raise NotFollowedError("a context manager of it may catch errors") from error
            raise
        own.run.event("raises", error.name)
    finally:
        own.run.catching -= 1
        for one in reversed(managers):
            if isinstance(one, Replacement):
                one.leave(own.run)


def _may_catch(own: Evaluator, manager: ast.expr) -> bool:
    """Return whether a context manager of the project may end an error, or takes others that do."""
    value = own.value(manager.func if isinstance(manager, ast.Call) else manager)
    value = value.function if isinstance(value, Bound) else value.of if isinstance(value, Object) else value
    match value:
        case External(name=name):
            return name.endswith("ExitStack")
        case Function(node=node):
            return any(isinstance(one, ast.Try) and one.handlers for one in walk(node))
        case Class(node=node):
            leaves = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__exit__"]
            return any(isinstance(one, ast.Return) and one.value is not None for leave in leaves for one in walk(leave))
    return False


def entered(own: Evaluator, value: object) -> object:
    """Return what a context manager gives: what a function yields, or what a method returns."""
    if isinstance(value, Replacement):
        return value.value
    if isinstance(value, Object) and isinstance(value.of, Class):
        return own.run.call(attributes.read(own.run, value, "__enter__", Builtin("none")), [], {})
    if isinstance(value, list) and value:
        return value[0]
    return value


def _expected(own: Evaluator, call: ast.Call) -> str:
    """Return the error that a context manager catches: `pytest.raises(ValueError)`."""
    function = own.value(call.func)
    if isinstance(function, External) and function.name in ("pytest.raises", "contextlib.suppress") and call.args:
        return ast.unparse(call.args[0]).rpartition(".")[2]
    return ""


def _catches(name: str, expected: str) -> bool:
    return name in expected or expected in _ANY_ERROR or (expected.startswith("(") and "Exception" in expected)


def _try(own: Evaluator, node: ast.Try, kept: Kept) -> None:
    try:
        own.run.catching += 1
        try:
            execute(own, node.body, kept)
        finally:
            own.run.catching -= 1
        execute(own, node.orelse, kept)
    except RaisedError as error:
        handler = next((one for one in node.handlers if _handles(one, error.name)), None)
        if handler is None:
            execute(own, node.finalbody, kept)
            raise
        if handler.name:
            own.scope.names[handler.name] = Unknown(f"error {error.name}")
        execute(own, handler.body, kept)
    except (ReturnedError, _BreakError, _ContinueError):
        execute(own, node.finalbody, kept)
        raise
    execute(own, node.finalbody, kept)


def _handles(handler: ast.ExceptHandler, name: str) -> bool:
    return handler.type is None or _catches(name, ast.unparse(handler.type))


_SIMPLE: dict[type[ast.stmt], Callable[[Evaluator, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Break: _jump,
    ast.Continue: _jump,
    ast.Global: _outer,
    ast.Nonlocal: _outer,
}
_COMPOUND: dict[type[ast.stmt], Callable[[Evaluator, Any, Kept], None]] = {
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
}

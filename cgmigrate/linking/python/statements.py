"""Evaluation of statements."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from itertools import count

from cgmigrate.linking.python.arguments import EXPECTS
from cgmigrate.linking.python.compared_objects import check_text
from cgmigrate.linking.python.evaluation import Frame, Left, RaisedError, Returned, Run, Signal, cannot_follow
from cgmigrate.linking.python.expressions import derived, evaluate, truth
from cgmigrate.proof.flow.modules import is_test
from cgmigrate.linking.python.objects import (
    check_members,
    has_settings,
    may_change,
    set_attribute,
    set_item,
)
from cgmigrate.proof.flow.shims import is_shim
from cgmigrate.linking.python.values import CannotFollowError, Function, Object, key_of, may_be_part_of

_MOST_ROUNDS = 256
_SUPPRESSES = EXPECTS | {"suppress"}
"""Functions whose results suppress exceptions: `contextlib.suppress(KeyError)`, `pytest.raises(ValueError)`."""


def execute(body: Sequence[ast.stmt], frame: Frame, run: Run) -> Signal:
    """Execute statements; return how they leave the function or loop, None if they do not."""
    # Code around an inner function may use all that it changes.
    kept = None if frame.function.around else run.relevance.kept_in(frame.function.node, run.needed)
    for statement in body:
        if kept is not None and id(statement) not in kept:
            continue
        run.step(statement, frame)
        handler = _HANDLERS.get(type(statement))
        if handler is None:
            raise cannot_follow(f"`{type(statement).__name__.lower()}` is not followed", statement, frame)
        try:
            signal = handler(statement, frame, run)
        except CannotFollowError as error:
            if frame.depth == 0:
                error.statement = statement
            raise
        if signal is not None:
            return signal
    return None


def _assign(node: ast.Assign, frame: Frame, run: Run) -> Signal:
    value = evaluate(node.value, frame, run)
    for target in node.targets:
        store(target, value, frame, run)
    return None


def _annotated(node: ast.AnnAssign, frame: Frame, run: Run) -> Signal:
    if node.value is not None:
        store(node.target, evaluate(node.value, frame, run), frame, run)
    return None


def store(target: ast.expr, value: object, frame: Frame, run: Run) -> None:
    """Bind the target of an assignment."""
    match target:
        case ast.Name(id=name):
            frame.names[name] = value
        case ast.Attribute(value=base, attr=name):
            set_attribute(evaluate(base, frame, run), name, value, (target, frame, run))
        case ast.Subscript(value=base, slice=key):
            set_item(evaluate(base, frame, run), evaluate(key, frame, run), value, (target, frame, run))
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            _unpack(elements, value, frame, run)
        case _:
            raise cannot_follow("the target of an assignment is not followed", target, frame)


def _unpack(targets: Sequence[ast.expr], value: object, frame: Frame, run: Run) -> None:
    if any(isinstance(target, ast.Starred) for target in targets):
        raise cannot_follow("a starred target is not followed", targets[0], frame)
    check_members(value, (targets[0], frame, run))
    if isinstance(value, (list, tuple)) and len(value) == len(targets):
        parts = list(value)
    elif isinstance(value, Object):
        parts = [
            value.first.setdefault(
                f"[{at}]",
                Object(f"{value.key}[{at}]", value.by_megatron, may_be_other=value.may_be_other, through=value.through),
            )
            for at in range(len(targets))
        ]
    else:
        raise cannot_follow("the values that are unpacked are not known", targets[0], frame)
    for target, part in zip(targets, parts, strict=True):
        store(target, part, frame, run)


def _augmented(node: ast.AugAssign, frame: Frame, run: Run) -> Signal:
    read: ast.expr
    match node.target:
        case ast.Name(id=name):
            read = ast.Name(name, ast.Load())
        case ast.Attribute(value=base, attr=name):
            read = ast.Attribute(base, name, ast.Load())
        case _:
            raise cannot_follow("an item is changed in place", node, frame)
    ast.fix_missing_locations(ast.copy_location(read, node.target))
    if isinstance(evaluate(read, frame, run), (list, set, dict)):
        raise cannot_follow("a collection is changed in place", node, frame)
    operation = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
    store(node.target, evaluate(operation, frame, run), frame, run)
    return None


def _return(node: ast.Return, frame: Frame, run: Run) -> Signal:
    return Returned(None if node.value is None else evaluate(node.value, frame, run))


def _expression(node: ast.Expr, frame: Frame, run: Run) -> Signal:
    if not isinstance(node.value, ast.Constant):
        run.statement = node.value
        evaluate(node.value, frame, run)
    return None


# --- conditions -----------------------------------------------------------------------------------


def _if(node: ast.If, frame: Frame, run: Run) -> Signal:
    test = evaluate(node.test, frame, run)
    known = truth(test)
    if known is not None:
        if is_test(frame.module.path):
            # A test that asserts under a condition asserts nothing where this no longer holds.
            run.path.events.append(f"if {known}")
        return execute(node.body if known else node.orelse, frame, run)
    return execute(node.body if run.choose(key_of(test)) else node.orelse, frame, run)


def _assert(node: ast.Assert, frame: Frame, run: Run) -> Signal:
    test = evaluate(node.test, frame, run)
    known = truth(test)
    if known is None and is_test(frame.module.path):
        # The test passes before the edits; what it asks has to stay the same.
        check_text(key_of(test), (node, frame, run))
        run.path.events.append(f"assert {key_of(test)}")
        return None
    if not (run.choose(key_of(test)) if known is None else known):
        raise RaisedError("AssertionError", is_stated=True, is_check=not is_shim(frame.module))
    return None


def _raise(node: ast.Raise, frame: Frame, run: Run) -> Signal:
    if node.exc is None:
        raise cannot_follow("an exception is raised again", node, frame)
    called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(node.exc, ast.Call):
        run.path.events.append("raise " + ", ".join(key_of(evaluate(one, frame, run)) for one in node.exc.args))
    # What a release accepts, code for several releases knows better than a proof.
    raise RaisedError(ast.unparse(called), is_stated=True, is_check=not is_shim(frame.module))


# --- loops and blocks -----------------------------------------------------------------------------


def _for(node: ast.For, frame: Frame, run: Run) -> Signal:
    values = evaluate(node.iter, frame, run)
    check_members(values, (node, frame, run))
    if isinstance(values, dict):
        values = list(values)
    if not isinstance(values, (list, tuple, str, range)) or len(values) > _MOST_ROUNDS:
        return _for_unknown(node, values, frame, run)
    for at in count():
        # A list may grow while it is iterated over.
        if at == len(values):
            break
        if at == _MOST_ROUNDS:
            raise cannot_follow("a loop has too many rounds", node, frame)
        store(node.target, values[at], frame, run)
        signal = execute(node.body, frame, run)
        if isinstance(signal, Returned):
            return signal
        if isinstance(signal, Left) and signal.is_break:
            return None
    return execute(node.orelse, frame, run)


def _for_unknown(node: ast.For, values: object, frame: Frame, run: Run) -> Signal:
    """Execute a loop over values that are not known: one round, with an object that can be any of them.

    What the loop binds or changes is not known behind it, but shows in its key what one round does. Raises
    CannotFollowError if the loop sets a setting.
    """
    place = (node, frame, run)
    if not isinstance(values, Object):
        raise cannot_follow("what a loop iterates over is not known", *place[:2])
    key, writes = run.numbered(f"loop over {key_of(values)}"), run.writes
    member = Object(
        f"member of {key}", values.by_megatron, may_be_other=may_be_part_of([values]), through=values.through
    )
    store(node.target, member, frame, run)
    signal = execute(node.body, frame, run)
    if isinstance(signal, Returned):
        return signal
    facts = [run.relevance.facts(one) for one in (node.target, *node.body)]
    bound = frozenset().union(*(one.stores for one in facts)) & frame.names.keys()
    used = frozenset().union(*(one.loads for one in facts)) & frame.names.keys() | bound
    if run.writes != writes or any(has_settings(frame.names[name]) for name in bound):
        raise cannot_follow("a loop over values that are not known sets a setting", *place[:2])
    for name in sorted(used):
        may_change(frame.names[name], key, place)
    for name in sorted(bound):
        value = frame.names[name]
        may_be_other = may_be_part_of([value, values])
        frame.names[name] = Object(f"{name} after {key}, {key_of(value)}", may_be_other=may_be_other)
    return None if isinstance(signal, Left) and signal.is_break else execute(node.orelse, frame, run)


def _with(node: ast.With, frame: Frame, run: Run) -> Signal:
    for item in node.items:
        value = evaluate(item.context_expr, frame, run)
        if not isinstance(value, Object) or value.attributes:
            raise cannot_follow("a context manager is not followed", node, frame)
        if item.optional_vars is not None:
            store(item.optional_vars, derived("with", [value], run), frame, run)
        if (name := value.key.partition("(")[0].rpartition(".")[2]) in _SUPPRESSES:
            return _suppressed(node, name, frame, run)
    return execute(node.body, frame, run)


def _suppressed(node: ast.With, name: str, frame: Frame, run: Run) -> Signal:
    """Execute a body whose exceptions are suppressed. Code that is not followed may raise before any statement.

    Where a test expects one, it fails without.
    """
    try:
        signal, fails = _attempted(node.body, frame, run)
    except RaisedError:
        return None
    if name in EXPECTS and not fails and signal is None:
        raise RaisedError("Failed", is_stated=True)
    return signal


def _try(node: ast.Try, frame: Frame, run: Run) -> Signal:
    """Execute a body, what handles its exceptions, and what is done in any case at its end."""
    try:
        signal = _handled(node, frame, run) if node.handlers else execute(node.body, frame, run)
    except RaisedError:
        if execute(node.finalbody, frame, run) is not None:
            raise cannot_follow("`finally` leaves a function or a loop", node, frame) from None
        raise
    at_end = execute(node.finalbody, frame, run)
    return signal if at_end is None else at_end


def _handled(node: ast.Try, frame: Frame, run: Run) -> Signal:
    """Execute a body; code that is not followed may raise as well, which no setting may depend on."""
    writes = run.writes
    try:
        signal, fails = _attempted(node.body, frame, run)
    except RaisedError as error:
        if run.writes != writes:
            raise cannot_follow("settings are set in `try`", node, frame) from error
        handler = next((one for one in node.handlers if _catches(one, error.kind, run)), None)
        if handler is None:
            raise
        return execute(handler.body, frame, run)
    if run.writes != writes:
        raise cannot_follow("settings are set in `try`", node, frame)
    if fails:
        return execute(_one_of(node, frame).body, frame, run)
    return execute(node.orelse, frame, run) if signal is None else signal


def _one_of(node: ast.Try, frame: Frame) -> ast.ExceptHandler:
    """Return the handler of an exception of which nothing is known. Raises CannotFollowError for several."""
    if len(node.handlers) > 1:
        raise cannot_follow("one of several handlers of an exception is not followed", node, frame)
    return node.handlers[0]


def _catches(handler: ast.ExceptHandler, kind: str, run: Run) -> bool:
    """Return whether a handler catches an exception. Of a class that is not known, both are evaluated."""
    is_caught = _is_caught(handler, kind)
    if is_caught is not None or handler.type is None:
        return is_caught is not False
    return run.choose(run.numbered(f"`{kind}` is caught by {ast.unparse(handler.type)}"))


def _attempted(body: Sequence[ast.stmt], frame: Frame, run: Run) -> tuple[Signal, bool]:
    """Execute statements of which each may raise; return how they leave the function, and whether one has raised.

    Those behind one that raises are not executed.
    """
    key = run.numbered("try " + ast.unparse(body[0])[:200])
    for at, statement in enumerate(body):
        if not run.choose(f"{key}, statement {at}"):
            return None, True
        if (signal := execute([statement], frame, run)) is not None:
            return signal, False
    return None, False


def _is_caught(handler: ast.ExceptHandler, kind: str) -> bool | None:
    """Return whether a handler catches an exception, None if that is not known: of its class only the name is."""
    if handler.type is None:
        return True
    nodes = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    results = [_is_class_of(ast.unparse(node), kind) for node in nodes]
    return True if True in results else None if None in results else False


def _is_class_of(name: str, kind: str) -> bool | None:
    """Return whether an exception is of a class or of one that derives from it, both by their names."""
    caught, raised = getattr(builtins, name, None), getattr(builtins, kind, None)
    if isinstance(caught, type) and isinstance(raised, type):
        return issubclass(raised, caught)
    return name in (kind, "Exception", "BaseException") or None


def _define(node: ast.FunctionDef, frame: Frame, run: Run) -> Signal:
    del run
    if node.decorator_list:
        raise cannot_follow("an inner function with a decorator is not followed", node, frame)
    frame.names[node.name] = Function(node, frame.module, frame.around)
    return None


def _import(node: ast.Import | ast.ImportFrom, frame: Frame, run: Run) -> Signal:
    from cgmigrate.linking.python.lookup import imported_in_function

    frame.names.update(imported_in_function(node, frame, run))
    return None


def _delete(node: ast.Delete, frame: Frame, run: Run) -> Signal:
    for target in node.targets:
        if not isinstance(target, ast.Name):
            raise cannot_follow("`del` is not followed", node, frame)
        frame.names.pop(target.id, None)
    del run
    return None


def _pass(node: ast.stmt, frame: Frame, run: Run) -> Signal:
    del node, frame, run
    return None


def _leave(node: ast.Break | ast.Continue, frame: Frame, run: Run) -> Signal:
    del frame, run
    return Left(isinstance(node, ast.Break))


_HANDLERS: dict[type[ast.stmt], Callable[..., Signal]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.If: _if,
    ast.Assert: _assert,
    ast.Raise: _raise,
    ast.For: _for,
    ast.With: _with,
    ast.Try: _try,
    ast.FunctionDef: _define,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Delete: _delete,
    ast.Pass: _pass,
    ast.Break: _leave,
    ast.Continue: _leave,
}

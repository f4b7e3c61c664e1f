"""Calls of functions of the checkout: those that lead to settings, or get objects with settings, are followed."""

from __future__ import annotations

import ast
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.arguments import Arguments, Place, gets_code, gives_settings, has_object, note_call
from cgmigrate.linking.python.computed_names import computes_names
from cgmigrate.linking.python.evaluation import (
    MOST_CALLS,
    Frame,
    NotFollowedError,
    RaisedError,
    Returned,
    Run,
    Signal,
    cannot_follow,
)
from cgmigrate.linking.python.expressions import evaluate
from cgmigrate.linking.python.layers import copies_built
from cgmigrate.proof.flow.modules import Module, is_test
from cgmigrate.linking.python.objects import (
    forget_attributes,
    may_change,
    may_change_items,
    parts_of,
    sample,
)
from cgmigrate.linking.python.own_objects import own_parameters
from cgmigrate.linking.python.parametrised import arguments_in, parametrised
from cgmigrate.linking.python.replaced_code import is_patched, patched, texts_in
from cgmigrate.linking.python.values import CannotFollowError, Function, Object, Partial, SharedList, is_plain, key_of
from cgmigrate.proof.flow.world import SETTINGS

_OF_METHODS = ("classmethod", "staticmethod", "property")
"""Decorators that say how a function of a class is called: its body is executed as it is."""
_MOST_PARAMETERS = 3
"""Of a function that names no setting, and is followed since it gets plain values."""


def called_function(callee: Function, arguments: Arguments, place: Place) -> object:
    """Return the result of a function of the checkout. Raises RaisedError and CannotFollowError."""
    if _copies_built(callee, place[2]):
        return Object(_skipped(callee, arguments, place).key)
    return _of_checkout(callee, arguments, place)


def _of_checkout(callee: Function, arguments: Arguments, place: Place) -> object:
    _, frame, run = place
    if is_patched(arguments, run) and is_test(callee.module.path):
        return patched([arguments, texts_in(callee.node)], place)
    # Settings it may give to what it makes: `GPTModelProvider(**keywords)`.
    is_evaluated = has_object(arguments) or gives_settings(arguments)
    if run.relevance.is_relevant(callee.node) and not is_evaluated and not gets_code(arguments, run):
        return _followed_or_any(callee, arguments, place)
    is_returned = is_evaluated and _returns(callee.node)
    if run.relevance.is_relevant(callee.node) or is_returned:
        return call(callee, arguments, run, frame.depth + 1)
    # It may change attributes of classes.
    run.forget("of_checkout=True")
    if has_object(arguments) and computes_names(callee, run):
        raise cannot_follow(f"`{callee.name}` uses attributes by names that it computes", place[0], frame)
    if is_plain(arguments[0]) and is_plain(arguments[1]) and len(callee.node.args.args) <= _MOST_PARAMETERS:
        return _computed(callee, arguments, place)
    if gets_code(arguments, run):
        # It may call this code.
        return call(callee, arguments, run, frame.depth + 1)
    return _skipped(callee, arguments, place)


def _copies_built(callee: Function, run: Run) -> bool:
    """Return whether a function gets what was validated, and makes the configuration of a part of the model."""
    return isinstance(callee.node, ast.FunctionDef) and copies_built(callee.node, callee.module, run.modules)


def _computed(callee: Function, arguments: Arguments, place: Place) -> object:
    """Return the result of a function that gets plain values only; it is not followed where that is not possible."""
    _, frame, run = place
    choices, events = len(run.path.choices), len(run.path.events)
    try:
        return call(callee, arguments, run, frame.depth + 1)
    except CannotFollowError:
        if len(run.path.choices) > choices:
            raise
        del run.path.events[events:]
        return _skipped(callee, arguments, place)


def _followed_or_any(callee: Function, arguments: Arguments, place: Place) -> object:
    """Return the result of a function that gets no object: any object that other code has left if it is not followed.

    It is evaluated by itself then, and what it leaves is known from that.
    """
    _, frame, run = place
    if callee.node in run.touched.not_followed:
        # It may have settings, also if Megatron makes it.
        return Object(_skipped(callee, arguments, place).key)
    effects = run.effects()
    try:
        return call(callee, arguments, run, frame.depth + 1)
    except CannotFollowError as error:
        if run.effects() != effects:
            raise
        raise NotFollowedError(callee.node) from error


@lru_cache(maxsize=4096)
def _returns(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a function may return what it gets."""
    if isinstance(node, ast.Lambda):
        return True
    returns = (part.value for part in walk(node) if isinstance(part, ast.Return))
    return any(value is not None and not isinstance(value, ast.Constant) for value in returns)


def _skipped(callee: Function, arguments: Arguments, place: Place) -> Object:
    """Return the result of a function that names no setting; it may change the other attributes of objects."""
    node, frame, run = place
    values = [*arguments[0], *arguments[1].values()]
    if gets_code(arguments, run):
        raise cannot_follow(f"`{callee.name}` gets a function that may set a setting", node, frame)
    name = f"{callee.module.package}.{callee.name}"
    key = run.numbered(f"{name}({key_of(arguments[0])}, {key_of(arguments[1])})")
    note_call(key, arguments, run)
    for value in values:
        may_change(value, key, place)
    by_megatron = callee.module.package.startswith("megatron") and not run.relevance.may_return_changed(
        callee.node, callee.module
    )
    attributes = (one[1:] for one in run.relevance.facts(callee.node).loads if one[0] == ".")
    return Object(key, by_megatron, may_be_other=_may_share(callee.node), through=frozenset(attributes))


def _may_share(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether calls of a function may return one object: a default argument, or what a decorator keeps."""
    defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
    is_decorated = isinstance(node, ast.FunctionDef) and bool(node.decorator_list)
    return is_decorated or any(isinstance(one, ast.Call) for one in defaults)


def enter(function: Function, run: Run) -> object:
    """Return what an entry point returns. Callers may give it any value, so its parameters are not known."""
    frame = Frame(function, values_of_parameters(function.node, function.module, run), 0)
    run.path.arguments = arguments_in(frame)
    return _executed(function, frame, run)


def values_of_parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, module: Module, run: Run
) -> dict[str, object]:
    """Return the parameters of a function by name: objects that are not known, and samples of settings."""
    records, options = own_parameters(node, module, run.modules)
    by_decorator = {} if isinstance(node, ast.Lambda) else parametrised(node, module, run)
    return by_decorator | {
        name: sample(name, f"parameter {name}", run)
        if name in SETTINGS and run.unknowns.states
        else Object(f"parameter {name}", is_record=name in records, is_options=name in options)
        for name in parameters(node)
        if name not in by_decorator
    }


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    """Return the names of the parameters of a function."""
    every = node.args
    names = [one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs)]
    return names + [one.arg for one in (every.vararg, every.kwarg) if one is not None]


def call(function: Function, arguments: Arguments, run: Run, depth: int) -> object:
    """Return what a function of the checkout returns. Raises RaisedError and CannotFollowError."""
    frame = Frame(function, {}, depth)
    run.code.use_function(function.module.path, function.node)
    if depth > MOST_CALLS:
        raise cannot_follow("too many functions call each other", function.node, frame)
    frame.names.update(_bound(function, arguments, run, frame))
    _note_records(function, frame, run)
    needed = run.needed
    leaked = [frame.names[name] for name in run.relevance.leaked_in(function.node, needed)]
    try:
        result = _executed(function, frame, run)
        if dropped := run.relevance.dropped_in(function.node, needed):
            keeping = run.relevance.keeping_in(function.node, needed)
            forget_attributes([result, *frame.names.values()], dropped, keeping, function.name)
        return result
    finally:
        run.needed = needed
        for value in leaked:
            may_change_items(value, run.numbered(function.name), (function.node, frame, run))


def _note_records(function: Function, frame: Frame, run: Run) -> None:
    """Note which of the objects that a function gets are records of the project's own: its annotations say it.

    What an attribute leads to that holds objects with settings is a model, whatever an annotation says.
    """
    for name in own_parameters(function.node, function.module, run.modules)[0]:
        value = frame.names[name]
        if isinstance(value, Object) and not (value.by_megatron or value.is_open or value.is_instance):
            value.is_record = value.is_record or (
                not value.may_be_other and value.through.isdisjoint(run.relevance.holders)
            )


def _executed(function: Function, frame: Frame, run: Run) -> object:
    node = function.node
    if isinstance(node, ast.FunctionDef) and not all(_is_mark(one, function, run) for one in node.decorator_list):
        raise cannot_follow(f"`{node.name}` has a decorator", node, frame)
    if _is_special(node):
        raise cannot_follow(f"`{function.name}` is a generator, or sets names around it", node, frame)
    if isinstance(node, ast.Lambda):
        return evaluate(node.body, frame, run)
    run.path.keeping |= run.relevance.keeping_in(node, run.needed)
    run.needed = run.relevance.needed_in(node, run.needed)
    return executed_in(run.handlers.execute(node.body, frame, run))


def _is_mark(node: ast.expr, function: Function, run: Run) -> bool:
    """Return whether a decorator leaves a function as it is, or replaces code that leads to no setting in a test."""
    name = dotted(node.func if isinstance(node, ast.Call) else node)
    if name.startswith("pytest.mark.") or name in _OF_METHODS:
        return True
    is_patch = name.startswith(("patch", "mock.patch", "unittest.mock.patch")) and is_test(function.module.path)
    return is_patch and run.relevance.words.isdisjoint(texts_in(node))


def executed_in(signal: Signal) -> object:
    """Return the value that executed statements return."""
    return signal.value if isinstance(signal, Returned) else None


@lru_cache(maxsize=65536)
def _is_special(node: ast.FunctionDef | ast.Lambda) -> bool:
    return any(isinstance(part, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)) for part in walk(node))


def _bound(function: Function, arguments: Arguments, run: Run, frame: Frame) -> dict[str, object]:
    """Return the parameters of a function by name."""
    node = function.node.args
    names = [one.arg for one in (*node.posonlyargs, *node.args)]
    positional, named = arguments
    bound: dict[str, object] = dict(zip(names, positional, strict=False))
    if len(positional) > len(names):
        if node.vararg is None:
            raise RaisedError("TypeError")
        bound[node.vararg.arg] = tuple(positional[len(names) :])
    elif node.vararg is not None:
        bound[node.vararg.arg] = ()
    known = {*names, *(one.arg for one in node.kwonlyargs)}
    further = {name: value for name, value in named.items() if name not in known}
    if (further and node.kwarg is None) or bound.keys() & named.keys():
        raise RaisedError("TypeError")
    bound |= {name: value for name, value in named.items() if name in known}
    if node.kwarg is not None:
        bound[node.kwarg.arg] = further
    defaults = dict(zip(names[len(names) - len(node.defaults) :], node.defaults, strict=True))
    defaults |= {one.arg: value for one, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value}
    for name in known - bound.keys():
        if name not in defaults:
            raise RaisedError("TypeError")
        bound[name] = _default(defaults[name], frame, run)
    return bound


def _default(node: ast.expr, frame: Frame, run: Run) -> object:
    """Return a default argument; all calls share its value. Python evaluates it where the function is defined."""
    if frame.function.around and not isinstance(node, ast.Constant):
        raise cannot_follow("a default argument of an inner function is not followed", node, frame)
    value = evaluate(node, Frame(frame.function, {}, frame.depth), run)
    if any(one.is_instance or one.by_megatron for one in parts_of(value)):
        raise cannot_follow("a default argument that all calls share is not followed", node, frame)
    if isinstance(value, list):
        return SharedList(value)
    if isinstance(value, (dict, set)):
        raise cannot_follow("a default argument that all calls share is not followed", node, frame)
    return value


def called_partial(callee: Partial, arguments: Arguments, place: Place) -> object:
    """Return the result of a function of the checkout of which some arguments were given earlier."""
    return called_function(callee.function, ([*callee.values, *arguments[0]], {**callee.named, **arguments[1]}), place)

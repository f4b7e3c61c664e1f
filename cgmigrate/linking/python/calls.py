"""Evaluation of calls: what is called decides which module evaluates the call."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cgmigrate.linking.python.arguments import Arguments
from cgmigrate.linking.python.builtin_calls import called_method
from cgmigrate.linking.python.class_calls import made_instance
from cgmigrate.linking.python.evaluation import Frame, Run, cannot_follow
from cgmigrate.linking.python.expressions import evaluate
from cgmigrate.linking.python.function_calls import called_function, called_partial
from cgmigrate.linking.python.objects import attribute, check_members
from cgmigrate.linking.python.outside_calls import called_object, called_outside
from cgmigrate.linking.python.values import Class, Function, Method, Object, Outside, Partial
from cgmigrate.proof.flow.world import SETTINGS


def value_of_call(node: ast.Call, frame: Frame, run: Run) -> object:
    """Return the value of a call."""
    place = (node, frame, run)
    owner = evaluate(node.func.value, frame, run) if isinstance(node.func, ast.Attribute) else None
    callee = attribute(owner, node.func.attr, place) if isinstance(node.func, ast.Attribute) else None
    callee = evaluate(node.func, frame, run) if callee is None else callee
    arguments = _arguments(node, frame, run)
    if isinstance(callee, Object):
        return called_object(callee, owner, arguments, place)
    handler = _CALLED.get(type(callee))
    if handler is None:
        raise cannot_follow(f"the call of `{ast.unparse(node.func)[:60]}` is not followed", node, frame)
    return handler(callee, arguments, place)


def _arguments(node: ast.Call, frame: Frame, run: Run) -> Arguments:
    positional: list[object] = []
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            positional.append(evaluate(argument, frame, run))
            continue
        values = evaluate(argument.value, frame, run)
        check_members(values, (argument, frame, run))
        if not isinstance(values, (list, tuple)):
            raise cannot_follow("the arguments of a call are not known", node, frame)
        positional += values
    named: dict[str, object] = {}
    for keyword in node.keywords:
        value = evaluate(keyword.value, frame, run)
        if keyword.arg in SETTINGS:
            # What it calls may give the setting to an object.
            run.use_lines(keyword, frame.module)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(value, dict) and all(isinstance(name, str) for name in value):
            named |= value
        else:
            raise cannot_follow("the keyword arguments of a call are not known", node, frame)
    return positional, named


_CALLED: dict[type, Callable[..., object]] = {
    Function: called_function,
    Class: made_instance,
    Method: called_method,
    Outside: called_outside,
    Partial: called_partial,
}

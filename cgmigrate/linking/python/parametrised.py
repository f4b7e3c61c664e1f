"""Parameters of tests whose values `pytest.mark.parametrize` lists, and the object of a test that gets settings so."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cgmigrate.documents.python.nodes import class_of, walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.changed_names import is_changed
from cgmigrate.linking.python.evaluation import Frame, Run
from cgmigrate.linking.python.expressions import evaluate
from cgmigrate.proof.flow.modules import Module, is_test
from cgmigrate.linking.python.values import CannotFollowError, Function, Object, Partial
from cgmigrate.proof.flow.world import SETTINGS

_MOST_ROWS = 64


def parametrised(node: ast.FunctionDef | ast.AsyncFunctionDef, module: Module, run: Run) -> dict[str, object]:
    """Return the parameters of a test that a decorator gives, by name: each set of values in a path of its own.

    Those of which a value is not followed are skipped.
    """
    result: dict[str, object] = {}
    if not is_test(module.path):
        return result
    frame = Frame(Function(ast.Lambda(node.args, ast.Constant(None)), module), {}, 0)
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=function, args=[names, rows], keywords=options) if dotted(
                function
            ) == "pytest.mark.parametrize" and all(one.arg == "ids" for one in options):
                try:
                    result |= _row(names_in(names), _elements(rows, module, run), frame, run)
                except (CannotFollowError, ValueError):
                    continue
    if any(map(_has_settings, result.values())):
        result |= _own_object(node, module)
    return result


def arguments_in(frame: Frame) -> list[object]:
    """Return the values that a function gets and may change.

    Nothing sees what a test does with a dictionary of its table, but what it does with the settings in it.
    """
    values = list(frame.names.values())
    return [one for one in values if not _has_settings(one)] if is_test(frame.module.path) else values


def _has_settings(value: object) -> bool:
    """Return whether a parameter is a dictionary with settings, or has one under a key."""
    if not isinstance(value, dict):
        return False
    return not SETTINGS.isdisjoint(value) or any(
        isinstance(one, dict) and SETTINGS & one.keys() for one in value.values()
    )


def _own_object(test: ast.FunctionDef | ast.AsyncFunctionDef, module: Module) -> dict[str, object]:
    """Return the object of a test that is a method, with the other methods of its class, by the name of the parameter.

    Returns nothing for a class from which others of the module derive.
    """
    classes = [one for one in walk(module.tree) if isinstance(one, ast.ClassDef)]
    bases = {dotted(base).rpartition(".")[2] for one in classes for base in one.bases}
    own = class_of(test, module.tree)
    if own is None or own.name in bases or not test.args.args:
        return {}
    name = test.args.args[0].arg
    made = Object(f"parameter {name}", is_instance=True)
    for method in own.body:
        if isinstance(method, ast.FunctionDef) and not method.decorator_list and method is not test:
            made.attributes[method.name] = Partial(Function(method, module), (made,), {})
    return {name: made}


def _row(names: Sequence[str], rows: Sequence[ast.expr], frame: Frame, run: Run) -> dict[str, object]:
    """Return the values of one set by name. Raises CannotFollowError, and ValueError for one of another length."""
    if not rows or len(rows) > _MOST_ROWS:
        raise CannotFollowError("a parameter has too many values")
    row = rows[run.pick(choice_of(names), len(rows))]
    is_param = isinstance(row, ast.Call) and dotted(row.func) == "pytest.param"
    if isinstance(row, ast.Call) and is_param:
        values = [_value(one, frame, run) for one in row.args]
    elif len(names) == 1:
        values = [_value(row, frame, run)]
    else:
        values = [_value(one, frame, run) for one in _elements(row, frame.module, run)]
    return dict(zip(names, values, strict=True))


def _value(node: ast.expr, frame: Frame, run: Run) -> object:
    """Return the value of a parameter; of a dictionary of the module, that of each entry. Raises CannotFollowError."""
    value = evaluate(node, frame, run)
    if not isinstance(node, ast.Name) or isinstance(value, dict):
        return value
    bound = frame.module.bindings.get(node.id)
    is_kept = isinstance(bound, ast.Dict) and not is_changed(node.id, frame.module, run.modules, in_place=True)
    return evaluate(bound, frame, run) if isinstance(bound, ast.Dict) and is_kept else value


def choice_of(names: Sequence[str]) -> str:
    """Return the key of the decision which set of values some parameters have."""
    return f"parameters {', '.join(names)}"


def names_in(node: ast.expr) -> list[str]:
    """Return the names that a decorator gives. Raises ValueError if it does not show them."""
    names = ast.literal_eval(node)
    every = names.split(",") if isinstance(names, str) else list(names) if isinstance(names, (list, tuple)) else []
    if not every or not all(isinstance(one, str) for one in every):
        raise ValueError("no names")
    return [one.strip() for one in every]


def _elements(node: ast.expr, module: Module, run: Run) -> list[ast.expr]:
    """Return the elements of a list or tuple. Raises CannotFollowError for anything else."""
    if isinstance(node, ast.Name):
        run.code.use_name(module.path, node.id)
    if isinstance(node, ast.Name) and isinstance(bound := module.bindings.get(node.id), ast.expr):
        node = bound
    if not isinstance(node, (ast.List, ast.Tuple)) or any(isinstance(one, ast.Starred) for one in node.elts):
        raise CannotFollowError("the values of a parameter are not followed")
    return node.elts

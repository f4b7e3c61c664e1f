"""Parameters of tests whose values `pytest.mark.parametrize` lists."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.evaluation import Frame, Run
from cgmigrate.linking.python.expressions import evaluate
from cgmigrate.linking.python.modules import Module, is_test
from cgmigrate.linking.python.values import CannotFollowError, Function

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
                    result |= _row(_names(names), _elements(rows, module, run), frame, run)
                except (CannotFollowError, ValueError):
                    continue
    return result


def _row(names: Sequence[str], rows: Sequence[ast.expr], frame: Frame, run: Run) -> dict[str, object]:
    """Return the values of one set by name. Raises CannotFollowError, and ValueError for one of another length."""
    if not rows or len(rows) > _MOST_ROWS:
        raise CannotFollowError("a parameter has too many values")
    row = rows[run.pick(f"parameters {', '.join(names)}", len(rows))]
    is_param = isinstance(row, ast.Call) and dotted(row.func) == "pytest.param"
    if isinstance(row, ast.Call) and is_param:
        values = [evaluate(one, frame, run) for one in row.args]
    elif len(names) == 1:
        values = [evaluate(row, frame, run)]
    else:
        values = [evaluate(one, frame, run) for one in _elements(row, frame.module, run)]
    return dict(zip(names, values, strict=True))


def _names(node: ast.expr) -> list[str]:
    """Return the names that a decorator gives. Raises ValueError if it does not show them."""
    names = ast.literal_eval(node)
    return [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)


def _elements(node: ast.expr, module: Module, run: Run) -> list[ast.expr]:
    """Return the elements of a list or tuple. Raises CannotFollowError for anything else."""
    if isinstance(node, ast.Name):
        run.code.use_name(module.path, node.id)
    if isinstance(node, ast.Name) and isinstance(bound := module.bindings.get(node.id), ast.expr):
        node = bound
    if not isinstance(node, (ast.List, ast.Tuple)) or any(isinstance(one, ast.Starred) for one in node.elts):
        raise CannotFollowError("the values of a parameter are not followed")
    return node.elts

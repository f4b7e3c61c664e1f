"""What binds a name in a function."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.modules import names_bound_by
from cgmigrate.linking.python.pieces import AnyFunction


def binders(name: str, function: AnyFunction) -> list[ast.AST]:
    """Return what binds a name in a function: the function itself for a parameter, loops, and other nodes."""
    result: list[ast.AST] = []
    in_loops = set[int]()
    for part in walk(function):
        if isinstance(part, ast.For) and any(isinstance(one, ast.Name) and one.id == name for one in walk(part.target)):
            result.append(part)
            in_loops.update(map(id, walk(part.target)))
        elif part is not function and id(part) not in in_loops and _binds(part, name):
            is_own = part in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            result.append(function if is_own else part)
    return result


def _binds(part: ast.AST, name: str) -> bool:
    match part:
        case ast.arg(arg=bound):
            return bound == name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return name in names
    return name in names_bound_by(part)

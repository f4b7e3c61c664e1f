"""Comparisons of a scope with its value, ``cfg.model.cuda_graph_scope == "full"``, and what follows the new settings.

Such code says what a recipe sets; tests of recipes do. It is rewritten together with what sets the scope, so the
function itself must not set one: then the object is its own, and the code says what that has.
"""

from __future__ import annotations

import ast

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import NOT_LITERAL, PythonSource, literal_value
from cgmigrate.documents.python.use_report import UseReplacement
from cgmigrate.documents.sites import FOLLOWS_OBJECT
from cgmigrate.megatron.settings import IMPL, LAYER_MODULES, MODULES, SCOPE

_FULL_ITERATION = "full_iteration"


def comparison(node: ast.Compare, source: PythonSource) -> UseReplacement | None:
    """Return what follows the new settings instead of a comparison of the scope with a literal; None for any other."""
    match node:
        case ast.Compare(
            left=ast.Attribute(attr=name, value=owner), ops=[ast.Eq() | ast.NotEq() as op], comparators=[other]
        ) if name == SCOPE and not sets_scope(node, source):
            value = literal_value(other)
            if value is NOT_LITERAL or value is None:
                return None
            sign, path = "==" if isinstance(op, ast.Eq) else "!=", source.of(owner)
            if value in (_FULL_ITERATION, [_FULL_ITERATION]):
                return UseReplacement(f'{path}.{IMPL} {sign} "{_FULL_ITERATION}"', risk=FOLLOWS_OBJECT)
            written = _written(value, source.of(other))
            return UseReplacement(f"{path}.{MODULES} {sign} {written}", risk=FOLLOWS_OBJECT) if written else None
    return None


def _written(value: object, text: str) -> str:
    """Return the modules that correspond to a scope, as text; empty for a value that has none."""
    if value == "full":
        return "[]"
    if isinstance(value, str):
        return f"[{text}]" if value in LAYER_MODULES else ""
    is_list = isinstance(value, list) and all(one in LAYER_MODULES for one in value)
    return text if is_list else ""


def read_value(node: ast.Attribute, source: PythonSource) -> UseReplacement | None:
    """Return the new setting for a scope that is compared with that of another object, or iterated over.

    None for any other read.
    """
    above = source.parent(node)
    match above:
        case ast.Compare(
            left=ast.Attribute(attr=first), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Attribute(attr=second)]
        ):
            follows = first == second
        case ast.comprehension(iter=iterated) | ast.For(iter=iterated):
            follows = iterated is node
        case _:
            follows = False
    if not follows or sets_scope(node, source):
        return None
    return UseReplacement(f"{source.of(node.value)}.{MODULES}", risk=FOLLOWS_OBJECT)


def sets_scope(node: ast.AST, source: PythonSource) -> bool:
    """Return whether the function around code gives some object a scope."""
    function = source.function_of(node)
    for part in walk(function) if function is not None else ():
        match part:
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.keyword(arg=name) | ast.arg(arg=name):
                if name == SCOPE:
                    return True
            case ast.Dict(keys=keys):
                if any(isinstance(key, ast.Constant) and key.value == SCOPE for key in keys):
                    return True
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), *_]):
                if name == SCOPE:
                    return True
    return False

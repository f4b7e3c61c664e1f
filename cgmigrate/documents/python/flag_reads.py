"""Conditions on the deprecated flags of a recipe, ``if cfg.model.external_cuda_graph:``, and what to write instead.

Such code asks what a recipe sets, before the configuration is built. It changes together with what sets the flag.
"""

from __future__ import annotations

import ast

from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.documents.python.use_report import Replacement
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL

_FLAGS = frozenset((ENABLE, EXTERNAL))
_LOCAL = '("local", "full_iteration")'
"""What the flag of the local implementation turned on; the full iteration was one of its scopes."""


def flag_condition(node: ast.AST, source: Source) -> tuple[ast.Attribute, Replacement] | None:
    """Return the flag that an expression asks, and what to write for the whole expression; None for any other."""
    if not isinstance(node, ast.expr) or (tested := _read(node)) is None:
        return None
    read, is_on = tested
    if not _is_condition(node, source):
        return None
    path = source.of(read.value)
    if isinstance(node, ast.BoolOp) or _is_either(getattr(node, "operand", node)):
        text = f'{path}.{IMPL} {"!=" if is_on else "=="} "none"'
    elif read.attr == EXTERNAL:
        text = f'{path}.{IMPL} {"==" if is_on else "!="} "transformer_engine"'
    else:
        text = f"{path}.{IMPL} {'in' if is_on else 'not in'} {_LOCAL}"
    return read, Replacement(text, if_proved=True)


def _read(node: ast.expr) -> tuple[ast.Attribute, bool] | None:
    """Return the flag that an expression asks, and whether the expression is true if the flag is."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _FLAGS:
            return node, True
        case ast.BoolOp(op=ast.Or(), values=[ast.Attribute() as first, ast.Attribute()]) if _is_either(node):
            return first, True
        case ast.UnaryOp(op=ast.Not(), operand=operand) if (inner := _read(operand)) is not None:
            return inner[0], not inner[1]
        case ast.Compare(
            left=ast.Attribute() as left, ops=[operator], comparators=[ast.Constant(value=bool() as value)]
        ) if left.attr in _FLAGS and isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return left, value is isinstance(operator, (ast.Is, ast.Eq))
    return None


def _is_either(node: ast.expr) -> bool:
    """Return whether an expression asks whether one of both flags of an object is on."""
    match node:
        case ast.BoolOp(
            op=ast.Or(),
            values=[ast.Attribute(value=first, attr=one), ast.Attribute(value=second, attr=other)],
        ):
            return {one, other} == _FLAGS and bool(dotted(first)) and dotted(first) == dotted(second)
    return False


def _is_condition(node: ast.expr, source: Source) -> bool:
    """Return whether code only asks whether an expression is true, and a comparison can take its place."""
    above = source.parent(node)
    match above:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            is_test = test is node
        case ast.comprehension(ifs=tests):
            is_test = any(test is node for test in tests)
        case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
            is_test = True
        case _:
            is_test = False
    return is_test and not _is_in_text(node, source)


def _is_in_text(node: ast.AST, source: Source) -> bool:
    """Return whether an expression is in an f-string, where its quotes may end the text."""
    above = source.parent(node)
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.JoinedStr):
            return True
        above = source.parent(above)
    return False

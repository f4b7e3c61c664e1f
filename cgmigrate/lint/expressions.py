"""Numbers that a condition computes from settings: `max_requests * (num_speculative_tokens + 1)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import TypeAlias

from cgmigrate.documents.python.nodes import walk
from cgmigrate.megatron.rule_data import RuleError

Values: TypeAlias = Callable[[str], "float | None"]
"""Returns the number that a setting has; None if it is not known."""

_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def expression(text: str) -> ast.expr:
    """Return the expression of a text. Raises RuleError if it has anything but names, numbers, `+`, `-` and `*`."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise RuleError(f"{text!r} is no expression") from None
    for node in walk(tree):
        if not isinstance(node, (ast.BinOp, ast.Name, ast.Load, ast.Constant, *_OPERATORS)):
            raise RuleError(f"{text!r} has more than names, numbers, +, - and *")
    return tree


def evaluate(node: ast.expr, values: Values) -> float | None:
    """Return the number that an expression has; None if it is not known."""
    match node:
        case ast.Name(id=name):
            return values(name)
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=operation, right=right):
            one, other = evaluate(left, values), evaluate(right, values)
            return None if one is None or other is None else _OPERATORS[type(operation)](one, other)
    return None

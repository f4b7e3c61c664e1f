"""Patterns of layers: a number, or a list with a number for each layer.

Megatron-LM's command line reads ``--moe-layer-freq "([0]*3+[1]*9)*2"`` as an expression of lists and integers, with
``+``, ``*`` and parentheses. Its own parser gives such a text to ``eval``; this module evaluates
nothing else, and no list grows beyond what a model has layers.

Source: megatron-core 0.17.1 and 0.19.2, ``moe_freq_type`` of megatron/training/arguments.py.
"""

from __future__ import annotations

import ast
import re

_MOST_LAYERS = 4096
_LONGEST = 1000
"""The longest text that is evaluated, which also bounds how deeply it is nested."""
_ACCEPTED = re.compile(r"[,0-9\[\]()+*]*")
"""The characters that Megatron-LM accepts in an expression. A blank is none of them."""


def layer_pattern(text: str) -> int | list[object] | None:
    """Return what Megatron-LM's command line reads from a text: a number or a list; None if that is not known."""
    try:
        if "[" not in text:
            return int(text)
        if len(text) > _LONGEST or not _ACCEPTED.fullmatch(text):
            return None
        return list_expression(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def list_expression(node: ast.expr) -> list[object] | None:
    """Return the list that an expression of lists and integers makes; None if it is another expression."""
    value = _value(node)
    return value if isinstance(value, list) else None


def has_layer(pattern: object, number: int) -> bool:
    """Return whether a pattern gives some layer this number: every Nth layer has 1, and the others 0, under N."""
    if isinstance(pattern, list):
        return number in pattern
    return number == 1 if pattern == 1 else number in (0, 1)


_Value = int | list[object] | None


def _value(node: ast.expr) -> _Value:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.List(elts=elements):
            items: list[object] = [_value(element) for element in elements]
            return None if None in items else items
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as operation, right=right):
            return _computed(_value(left), operation, _value(right))
    return None


def _computed(left: _Value, operation: ast.Add | ast.Mult, right: _Value) -> _Value:
    match left, operation, right:
        case int(), ast.Add(), int():
            return left + right
        case int(), ast.Mult(), int():
            return left * right
        case list(), ast.Add(), list() if len(left) + len(right) <= _MOST_LAYERS:
            return left + right
        case (list() as items, ast.Mult(), int() as times) | (int() as times, ast.Mult(), list() as items):
            return items * times if len(items) * times <= _MOST_LAYERS else None
    return None

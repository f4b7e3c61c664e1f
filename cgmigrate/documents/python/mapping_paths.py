"""Expressions that lead to a mapping: the keys on the way."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.nodes import walk


def keys_of(mapping: ast.expr, function: ast.AST | None, tree: ast.AST) -> tuple[str, ...]:
    """Return the last keys that lead to a mapping, through variables that are assigned once.

    ``function`` is None at the top of a file.
    """
    keys: list[str] = []
    node: ast.expr | None = mapping
    while node is not None:
        key, inner = _last_key(node)
        if inner is not None:
            keys.insert(0, key)
            node = inner
        elif isinstance(node, ast.Name):
            node = assigned_once(node.id, function or tree)
        else:
            break
    if not keys and isinstance(mapping, ast.Attribute):
        return (mapping.attr,)
    return tuple(keys)


def _last_key(node: ast.expr) -> tuple[str, ast.expr | None]:
    """Return the key of an item, and the mapping that it is an item of; None if the expression is no item."""
    match node:
        case ast.Subscript(value=base, slice=ast.Constant(value=str() as key)):
            return key, base
        case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[ast.Constant(value=str() as key), *_]):
            return key, base
    return "", None


def assigned_once(name: str, function: ast.AST) -> ast.expr | None:
    """Return what a variable of a function or file is assigned, None if that is not once or it is a parameter."""
    values: list[ast.expr | None] = []
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=other)], value=value) if other == name:
                values.append(value)
            case ast.Name(id=other, ctx=ast.Store() | ast.Del()) | ast.arg(arg=other) if other == name:
                values.append(None)
    # The target of an assignment is a name that is stored, too.
    stored = [value for value in values if value is not None]
    return stored[0] if len(stored) == 1 and len(values) == 2 else None

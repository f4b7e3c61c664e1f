"""Expressions that lead to a mapping: the keys on the way, and whether it is a loaded configuration of OmegaConf."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted

_LOADERS = ("OmegaConf.load", "OmegaConf.create", "OmegaConf.merge", "OmegaConf.unsafe_merge", "hydra.compose")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def keys_of(mapping: ast.expr, function: ast.AST | None, tree: ast.AST) -> tuple[str, ...]:
    """Return the last keys that lead to a mapping, through variables that are assigned once.

    ``function`` is None at the top of a file.
    """
    keys: list[str] = []
    node: ast.expr | None = mapping
    while node is not None:
        key, inner = _last_key(node)
        if inner is None and isinstance(node, ast.Attribute) and is_loaded(node.value, function, tree):
            key, inner = node.attr, node.value
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


def is_loaded(node: ast.expr | None, function: ast.AST | None, tree: ast.AST) -> bool:
    """Return whether an expression is a configuration of OmegaConf, or a mapping in one.

    ``function`` is None at the top of a file.
    """
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    match node:
        case ast.Call(func=func):
            return dotted(func).endswith(_LOADERS) or dotted(func) == "compose"
        case ast.Name(id=name):
            if function is not None and _is_parameter(name, function):
                return _is_configuration(name, function)
            return is_loaded(assigned_once(name, function or tree), function, tree)
    return False


def _is_parameter(name: str, function: ast.AST) -> bool:
    return isinstance(function, _FUNCTIONS) and any(one.arg == name for one in _parameters(function))


def _is_configuration(name: str, function: ast.AST) -> bool:
    """Return whether the parameter of a function is a configuration: its type says so, or Hydra calls the function."""
    if not isinstance(function, _FUNCTIONS) or _is_stored(name, function):
        return False
    by_hydra = any(dotted(getattr(one, "func", one)).endswith("hydra.main") for one in function.decorator_list)
    annotations = [one.annotation for one in _parameters(function) if one.arg == name and one.annotation is not None]
    return by_hydra or any(dotted(one).endswith("DictConfig") for one in annotations)


def _is_stored(name: str, function: ast.AST) -> bool:
    stores = (node for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return any(node.id == name for node in stores)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


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

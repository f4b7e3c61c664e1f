"""Loops that copy the keys of a mapping by a list of their names, each under its own name and with its value."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cgmigrate.documents.python.key_places import Literal
from cgmigrate.documents.python.nodes import parents_in, walk
from cgmigrate.documents.python.source import PythonSource, dotted

_WRAPPERS = ("frozenset", "set", "tuple", "list", "sorted")


def is_copied_as_it_is(names: Literal, source: PythonSource, *, is_looked_up: bool = False) -> bool:
    """Return whether all that a file does with a list of names is to copy the values of these keys.

    With ``is_looked_up`` it may look up whether a name is one of them as well. A list at the top of the file is not
    followed: other files may import it.
    """
    parents = parents_in(source.tree)
    expression: ast.AST = names
    above = parents.get(names)
    while isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in _WRAPPERS:
        expression, above = above, parents.get(above)
    match above:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            if isinstance(parents.get(above), ast.Module):
                return False
            uses = _loads(name, above, source.tree, parents)
        case _:
            uses = [expression]
    return bool(uses) and all(_is_copied(use, parents) or (is_looked_up and _is_test(use, parents)) for use in uses)


def _is_test(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether code looks whether something is in a list."""
    match parents.get(use):
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[names]):
            return names is use
    return False


def _loads(name: str, assignment: ast.AST, tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
    """Return where a variable of a function is read; nothing if the file does anything else with a name like it."""
    loads: list[ast.AST] = []
    for node in walk(tree):
        match node:
            case ast.Name(id=other, ctx=ast.Load()) if other == name:
                loads.append(node)
            case ast.Name(id=other) if other == name and parents[node] is not assignment:
                return []
            case ast.arg(arg=other) | ast.alias(asname=other) if other == name:
                return []
            case ast.Global(names=others) | ast.Nonlocal(names=others) if name in others:
                return []
            case ast.Constant(value=str() as text) if text == name:
                # It may be read by its name.
                return []
    return loads


def _is_copied(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether a loop over names does nothing but to copy, and the object is not one that was built before."""
    loop = parents.get(use)
    match loop:
        case ast.For(target=ast.Name(id=key), iter=iterated, body=[ast.If() as test], orelse=[]) if iterated is use:
            target = _target_of(test, key)
            return target is not None and not _is_built(target, loop, parents)
    return False


def _target_of(statement: ast.If, key: str) -> ast.expr | None:
    """Return what gets the value of a key if the mapping has it, None if the statement does anything else."""
    match statement:
        case ast.If(test=test, body=[stored, *more], orelse=[]) if all(map(_prints, more)):
            tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
            mapping = _mapping_of(tests[0], key)
            target = _stored(stored, mapping, key) if mapping is not None else None
            return target if target is not None and all(_has(one, target, key) for one in tests[1:]) else None
    return None


def _has(test: ast.expr, target: ast.expr, key: str) -> bool:
    """Return whether a test is that the target has the attribute: in the release that reads the new names it has."""
    match test:
        case ast.Call(func=ast.Name(id="hasattr"), args=[of, ast.Name(id=name)]):
            return name == key and ast.unparse(of) == ast.unparse(target)
    return False


def _mapping_of(test: ast.expr, key: str) -> ast.expr | None:
    """Return the mapping that has a key where a test is true."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[mapping]) if name == key:
            return mapping
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return _got(left, key)
    return None


def _got(value: ast.expr, key: str) -> ast.expr | None:
    """Return the mapping of ``mapping[key]`` and ``mapping.get(key)``."""
    match value:
        case ast.Subscript(value=mapping, slice=ast.Name(id=name)) if name == key:
            return mapping
        case ast.Call(func=ast.Attribute(value=mapping, attr="get"), args=[ast.Name(id=name)]) if name == key:
            return mapping
    return None


def _stored(statement: ast.stmt, mapping: ast.expr, key: str) -> ast.expr | None:
    """Return what gets the value of a key under its own name, None if the statement does anything else."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Name(id=name), value])):
            pass
        case ast.Assign(targets=[ast.Subscript(value=target, slice=ast.Name(id=name))], value=value):
            pass
        case _:
            return None
    read = _got(value, key)
    is_same = name == key and read is not None and ast.unparse(read) == ast.unparse(mapping)
    return target if is_same and ast.unparse(target) != ast.unparse(mapping) else None


def _is_built(target: ast.expr, loop: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether a configuration was validated before it gets the values, and is not again."""
    text = ast.unparse(target)
    around: ast.AST = loop
    while around in parents and not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
        around = parents[around]
    made = (
        node.value.func
        for node in walk(around)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _names(node.targets) == [text]
    )
    return text.endswith(".config") or any(dotted(one).endswith(("Config", "get_model_config")) for one in made)


def _names(targets: Sequence[ast.expr]) -> list[str]:
    return [ast.unparse(one) for one in targets]


def _prints(statement: ast.stmt) -> bool:
    """Return whether a statement only prints or logs."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
            return name in ("log", "logger", "logging") and method in ("debug", "info", "warning")
    return False

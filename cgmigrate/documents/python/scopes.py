"""Scopes: the function around a node, its parameters, what it returns, and the names that a node binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cgmigrate.documents.python.source import PARTS_WITH_STATEMENTS

Function = ast.FunctionDef | ast.AsyncFunctionDef
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def function_around(ancestors: Iterator[ast.AST]) -> ast.Module | Function | None:
    """Return the function or module that a node runs in; None inside a class body or a lambda."""
    for above in ancestors:
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return above
        if isinstance(above, (ast.ClassDef, ast.Lambda)):
            return None
    return None


def parameters_of(function: Function) -> set[str]:
    """Return the names of the parameters of a function."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {arg.arg for arg in [*named, *filter(None, (arguments.vararg, arguments.kwarg))]}


def returned_by(function: Function) -> Iterator[ast.expr]:
    """Yield what a function returns; functions and classes inside it are not read."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        if not isinstance(node, _INNER):
            for name in reversed(PARTS_WITH_STATEMENTS[type(node)]):
                stack += reversed(getattr(node, name))


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds or deletes, or takes from another scope."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case (
            ast.ExceptHandler(name=str() as name)
            | ast.MatchAs(name=str() as name)
            | ast.MatchStar(name=str() as name)
            | ast.MatchMapping(rest=str() as name)
        ):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names


def bodies_of(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements in a statement, or in a part of one."""
    for name in ("body", "orelse", "finalbody"):
        if isinstance(body := getattr(statement, name, None), list) and body:
            yield body
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body

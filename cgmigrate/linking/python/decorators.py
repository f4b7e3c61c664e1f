"""Decorators of the checkout that return the function which they get: ``@register("llama")`` keeps it in a table."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.evaluation import Run
from cgmigrate.linking.python.lookup import name_in
from cgmigrate.linking.python.modules import Module
from cgmigrate.linking.python.values import CannotFollowError, Function


def leaves_function(node: ast.expr, module: Module, run: Run) -> bool:
    """Return whether a decorator of a module leaves its function as it is."""
    called = node.func if isinstance(node, ast.Call) else node
    if not isinstance(called, ast.Name):
        return False
    try:
        value = name_in(called.id, module, run)
    except CannotFollowError:
        return False
    if not isinstance(value, Function) or not isinstance(value.node, ast.FunctionDef) or value.node.decorator_list:
        return False
    run.code.use_function(value.module.path, value.node)
    decorator = _made_by(value.node) if isinstance(node, ast.Call) else value.node
    return decorator is not None and _returns_what_it_gets(decorator) and not run.relevance.is_relevant(value.node)


def _made_by(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """Return the function that another one defines and returns, None if it returns anything else."""
    inner = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    returned = [one.value for one in _own_parts(node) if isinstance(one, ast.Return)]
    is_one = len(inner) == 1 and not inner[0].decorator_list and bool(returned)
    return inner[0] if is_one and all(_is_name(value, inner[0].name) for value in returned) else None


def _returns_what_it_gets(node: ast.FunctionDef) -> bool:
    """Return whether a function returns its parameter at its end and everywhere, and does not replace it before."""
    arguments = node.args
    if len(arguments.args) != 1 or arguments.posonlyargs or arguments.vararg or arguments.kwarg:
        return False
    name = arguments.args[0].arg
    parts = list(walk(node))
    returned = [one.value for one in parts if isinstance(one, ast.Return)]
    is_replaced = any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in parts)
    is_called = any(isinstance(one, ast.Call) and _is_name(one.func, name) for one in parts)
    ends = isinstance(node.body[-1], ast.Return) and all(_is_name(value, name) for value in returned)
    return ends and not is_replaced and not is_called


def _own_parts(node: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions that it defines."""
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(one)


def _is_name(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name

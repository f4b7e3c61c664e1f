"""Code that uses attributes by names that it computes, itself or through the functions that it calls."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.evaluation import Run
from cgmigrate.linking.python.lookup import name_in
from cgmigrate.proof.flow.modules import Import
from cgmigrate.linking.python.relevance import computed_name
from cgmigrate.linking.python.values import CannotFollowError, Function, Namespace

_MOST_CALLS = 6


def computes_names(function: Function, run: Run) -> bool:
    """Return whether a function may use any attribute of what it gets, by names that are not in its code."""
    return _computes(function, run, _MOST_CALLS)


def _computes(function: Function, run: Run, depth: int) -> bool:
    known = run.relevance.computing
    if id(function.node) not in known:
        known[id(function.node)] = (function.node, False)
        known[id(function.node)] = (function.node, _own(function) or (depth > 0 and _through(function, run, depth)))
    return known[id(function.node)][1]


def _own(function: Function) -> bool:
    return any(map(computed_name, walk(function.node)))


def _through(function: Function, run: Run, depth: int) -> bool:
    """Return whether a function that the code names does so: it may call that, or have other code call it."""
    for part in walk(function.node):
        value = _named(part, function, run)
        if isinstance(value, Function) and _computes(value, run, depth - 1):
            return True
    return False


def _named(node: ast.AST, function: Function, run: Run) -> object:
    """Return what a name of a module is bound to; None for any other code."""
    module = function.module
    match node:
        case ast.Name(id=name):
            path = [name]
        case ast.Attribute():
            path = dotted(node).split(".")
        case _:
            return None
    if not isinstance(module.bindings.get(path[0]), (Import, ast.FunctionDef)):
        return None
    try:
        value = name_in(path[0], module, run)
        for name in path[1:]:
            if not isinstance(value, Namespace):
                return None
            value = name_in(name, value.module, run)
    except CannotFollowError:
        return None
    return value

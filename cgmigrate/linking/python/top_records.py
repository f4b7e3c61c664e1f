"""Records at the top of a module that others copy there: ``BASE = Workload()``, ``LARGE = replace(BASE, gpus=8)``.

A name at the top may be any object for a part of the top, since other code may bind it again. A record is made there
again: what a record has is of the project's own, and no edit changes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.evaluation import Frame, Run
from cgmigrate.linking.python.inner_functions import empty_function
from cgmigrate.linking.python.modules import Import, Module
from cgmigrate.linking.python.own_objects import class_named, is_record
from cgmigrate.linking.python.values import Function, Object

_MOST_NAMES = 12
"""How many records are made of each other."""
_MOST_RECORDS = 512
"""How many calls at the top of a module may make records. Code that gets one is evaluated for each that differs."""


def records_at_top(names: Iterable[str], module: Module, run: Run) -> dict[str, object]:
    """Return those of some names of a module that are records. Raises CannotFollowError."""
    if _has_many_calls(module):
        return {}
    # In an order of their own: keys of objects say which of several one is.
    records = ((name, _record(name, module, run, 0)) for name in sorted(names))
    return {name: record for name, record in records if record is not None}


@lru_cache(maxsize=4096)
def _has_many_calls(module: Module) -> bool:
    return sum(isinstance(one, ast.Call) for one in module.bindings.values()) > _MOST_RECORDS


def _record(name: str, module: Module, run: Run, depth: int) -> Object | None:
    """Return the record that a name of a module is, None for anything else."""
    match module.bindings.get(name) if depth <= _MOST_NAMES else None:
        case ast.Name(id=other):
            return _record(other, module, run, depth + 1)
        case Import(module=source, name=imported) if imported:
            inner = run.modules.imported(source, module)
            return None if inner is None else _record(imported, inner, run, depth + 1)
        case ast.Call() as node:
            run.code.use_file(module.path)
            return _made(node, module, run, depth)
    return None


def _made(node: ast.Call, module: Module, run: Run, depth: int) -> Object | None:
    """Return the record that a call makes: of its class, or of another record. None for any other call."""
    names: dict[str, object] = {}
    if _called(node.func, module) == "dataclasses.replace" and node.args:
        base = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
        names[base] = _record(base, module, run, depth + 1)
        if names[base] is None:
            return None
    else:
        kind = class_named(dotted(node.func), module, run.modules, _MOST_NAMES + 1 - depth)
        if kind is None or not is_record(kind):
            return None
    value = run.handlers.value_of_call(node, Frame(Function(empty_function(), module), names, 0), run)
    return value if isinstance(value, Object) and value.is_record else None


def _called(function: ast.expr, module: Module) -> str:
    """Return the full name of a function that a module imports, empty for any other."""
    name, _, rest = dotted(function).partition(".")
    imported = module.bindings.get(name)
    return ".".join(filter(None, (imported.full, rest))) if isinstance(imported, Import) else ""

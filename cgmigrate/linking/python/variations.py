"""Variations of the states of objects: other modules in place of those that the project sets.

A check may ask for modules that no recipe has now. If recipes use the new name and the check the old one, nothing of
the project shows a difference, and the check is dead all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.evaluation import Code
from cgmigrate.linking.python.pieces import Unit
from cgmigrate.linking.python.values import FrozenSettings, frozen, thawed
from cgmigrate.megatron.settings import LAYER_MODULES, MODULES, SCOPE

_Pair = tuple[FrozenSettings, FrozenSettings]
_MODULES = frozenset(LAYER_MODULES)


def modules_named(unit: Unit, code: Code) -> tuple[str, ...]:
    """Return the modules that code of a unit names which reads the scope of an object; empty if none does."""
    own = unit.nodes or ((unit.scope,) if unit.scope is not None else ())
    functions = {(node,) for used in code.files.values() for node in used.functions}
    return tuple(sorted(frozenset[str]().union(*map(_named_in, (own, *functions)))))


@lru_cache(maxsize=65536)
def _named_in(nodes: tuple[ast.AST, ...]) -> frozenset[str]:
    """Return the modules that code names which reads a scope."""
    parts = [part for node in nodes for part in walk(node)]
    if not any(map(_reads_scope, parts)):
        return frozenset()
    return frozenset(name for part in parts if isinstance(name := _named(part), str) and name in _MODULES)


def varied(pair: _Pair, modules: Iterable[str]) -> Iterator[_Pair]:
    """Yield a state with other modules: each alone, and all of them. It has none if its scope names no modules."""
    old = dict(pair[0]).get(SCOPE)
    if not _names_modules(thawed(old)):
        return
    names = list(modules)
    for values in [*([name] for name in names), *([names] if names[1:] else [])]:
        yield _with(pair[0], values), _with(pair[1], values)


def _with(settings: FrozenSettings, modules: list[str]) -> FrozenSettings:
    return tuple(
        (name, frozen(modules) if name in (SCOPE, MODULES) and _names_modules(thawed(value)) else value)
        for name, value in settings
    )


def _names_modules(value: object) -> bool:
    values = value if isinstance(value, (list, tuple)) else [value]
    return bool(values) and all(getattr(one, "name", one) in _MODULES for one in values)


def _reads_scope(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.Constant(value=name):
            return name == SCOPE
    return False


def _named(node: ast.AST) -> object:
    match node:
        case ast.Attribute(attr=name) | ast.Constant(value=name):
            return name
    return None

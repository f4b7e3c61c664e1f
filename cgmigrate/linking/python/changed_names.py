"""Names at the top of modules that code binds again, or whose items it changes, in the module itself or from others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from cgmigrate.linking.python.modules import Import, Module

ANY = "*"
"""Any name of a module: code binds one that it computes."""
_CHANGING = frozenset(("append", "extend", "insert", "update", "setdefault", "pop", "popitem", "clear", "remove"))
"""Methods that change the items of a collection."""


@lru_cache(maxsize=4096)
def changed_in(module: Module) -> frozenset[str]:
    """Return the names that code of a module changes: its own, and those of modules that it imports."""
    return frozenset(name for node in ast.walk(module.tree) for name in _changed_by(node, module))


def _changed_by(node: ast.AST, module: Module) -> Iterator[str]:
    match node:
        case ast.Global(names=names):
            yield from names
        case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Store() | ast.Del()):
            yield from _of_module(owner, name, module)
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=owner), ast.Constant(value=str() as name), *_]):
            yield from _of_module(owner, name, module)
        case ast.Subscript(value=changed, ctx=ast.Store() | ast.Del()) | ast.AugAssign(target=changed):
            yield from _named(changed, module)
        case ast.Call(func=ast.Attribute(value=changed, attr=method)) if method in _CHANGING:
            yield from _named(changed, module)


def _of_module(owner: str, name: str, module: Module) -> Iterator[str]:
    """Yield a name if what it belongs to is imported: it may be a module."""
    if isinstance(module.bindings.get(owner), Import):
        yield name


def _named(node: ast.expr, module: Module) -> Iterator[str]:
    """Yield the name of a collection at the top of a module."""
    match node:
        case ast.Name(id=name):
            imported = module.bindings.get(name)
            yield imported.name if isinstance(imported, Import) and imported.name else name
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            yield from _of_module(owner, name, module)
        case ast.Call(func=ast.Name(id="globals")):
            yield ANY

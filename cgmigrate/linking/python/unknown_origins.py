"""Code that sets attributes by names that it computes, on objects whose origin is not followed.

Such a function may get the object of any recipe that its module may reach: those of the modules that it imports, and
all where it gets functions or modules by names that it computes. One that returns nothing is a launcher: what it does
with an object after a recipe returned it is no part of the recipe.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.function_calls import parameters
from cgmigrate.linking.python.leading_code import returns_value
from cgmigrate.linking.python.modules import LOOKUPS, Module, Modules, is_test
from cgmigrate.linking.python.pieces import AnyFunction, functions_of

WORDS = ("setattr", "__setattr__", "__dict__", "vars", "exec")
_MOST_IMPORTS = 2


def reached_by_computed_names(
    paths: Iterable[str], modules: Modules, changed: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the changed files whose objects such code may get, each with the place of the code.

    ``paths`` are files with one of WORDS, ``changed`` those with changes.
    """
    for path in paths:
        module = None if is_test(path) else modules.read(path)
        if module is None:
            continue
        for _, node, _ in functions_of(module):
            if returns_value(node) and _sets_by_name(node):
                place = f"{path}:{node.lineno}"
                reached = changed if _looks_up(node) else _imported(module, modules, _MOST_IMPORTS) & set(changed)
                yield from ((one, place) for one in sorted(reached))


def _sets_by_name(node: AnyFunction) -> bool:
    arguments = set(parameters(node))
    return any(_is_set(part, arguments) for part in walk(node))


def _is_set(node: ast.AST, arguments: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[target, name, *_]) if not isinstance(name, ast.Constant):
            return dotted(target).partition(".")[0] not in arguments
        case ast.Call(func=ast.Attribute(attr="update", value=ast.Call(func=ast.Name(id="vars"), args=[target]))):
            return dotted(target).partition(".")[0] not in arguments
    return False


def _looks_up(node: AnyFunction) -> bool:
    return any(isinstance(part, ast.Call) and dotted(part.func).rpartition(".")[2] in LOOKUPS for part in walk(node))


def _imported(module: Module, modules: Modules, depth: int) -> set[str]:
    result = set[str]()
    for path in modules.all_imported(module):
        if path not in result:
            result.add(path)
            inner = modules.read(path) if depth > 1 else None
            result |= _imported(inner, modules, depth - 1) if inner else set()
    return result

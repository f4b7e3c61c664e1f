"""Code that sets attributes by names that it computes, on objects whose origin is not followed.

Such a function may get the object of any recipe that its module may reach: those of the modules that it imports, and
all where it gets functions or modules by names that it computes. One that returns nothing is a launcher: what it does
with an object after a recipe returned it is no part of the recipe.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.function_calls import parameters
from cgmigrate.linking.python.leading_code import returns_value
from cgmigrate.proof.flow.modules import LOOKUPS, Import, Module, Modules, is_test
from cgmigrate.linking.python.pieces import AnyFunction, functions_of
from cgmigrate.proof.flow.world import SETTINGS, TRACKERS

WORDS = ("setattr", "__setattr__", "__dict__", "vars", "exec")
_LOOKS_UP = frozenset(("globals", "locals", "import_module", "__import__", "get_object"))
_MOST_IMPORTS = 2
_NAMES = SETTINGS | {*TRACKERS, "__class__", "__dict__"}


def reached_by_computed_names(
    paths: Iterable[str], modules: Modules, changed: Collection[str], leading: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the changed files whose objects such code may get, each with the place of the code.

    ``paths`` are files with one of WORDS, ``changed`` those with changes. ``leading`` are the functions that lead to
    changes, by their names.
    """
    for path in paths:
        module = None if is_test(path) else modules.read(path)
        if module is None:
            continue
        for _, node, _ in functions_of(module):
            if returns_value(node) and _sets_by_name(node, module, modules, leading):
                place = f"{path}:{node.lineno}"
                reached = changed if _looks_up(node) else _imported(module, modules, _MOST_IMPORTS) & set(changed)
                yield from ((one, place) for one in sorted(reached))


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a function that say of which object, and which attributes, it sets."""

    parameters: Collection[str]
    made: Collection[str]
    """Those of objects that it makes itself."""
    of_callers: Collection[str]
    """Those of texts that its callers give to it: `for name, value in extra.items()`."""
    of_others: Collection[str]
    """Those of texts that are no settings."""


def _sets_by_name(node: AnyFunction, module: Module, modules: Modules, leading: Collection[str]) -> bool:
    own = set(parameters(node))
    names = _Names(own, (), _names_of_callers(node, own), _names_of_others(node, module))
    if not any(_is_set(part, names) for part in walk(node)):
        return False
    # What it makes itself takes time to find.
    names = replace(names, made=_made_in(node, modules, leading))
    return any(_is_set(part, names) for part in walk(node))


def _names_of_callers(node: AnyFunction, own: set[str]) -> set[str]:
    """Return the variables of loops over the names in dicts that a function gets."""
    names = set[str]()
    for part in walk(node):
        match part:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=name), _]),
                iter=ast.Call(func=ast.Attribute(value=ast.Name(id=mapping), attr="items")),
            ) if mapping in own.difference(_bound_in(node)):
                names.add(name)
    return names


def _names_of_others(node: AnyFunction, module: Module) -> set[str]:
    """Return the variables of loops over texts that a module lists, none of which is a setting."""
    loops = [part for part in walk(node) if isinstance(part, (ast.For, ast.comprehension))]
    targets = [one.target for one in loops if _lists_others(one.iter, module)]
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    own = set(map(id, targets))
    others = {
        part.id
        for part in walk(node)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load) and id(part) not in own
    }
    return names - others - set(parameters(node))


def _lists_others(values: ast.expr, module: Module) -> bool:
    """Return whether an expression is a list of texts, or the name of one, without the names of settings."""
    bound = module.bindings.get(values.id) if isinstance(values, ast.Name) else values
    match bound:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            texts = [one.value if isinstance(one, ast.Constant) else None for one in elements]
            return all(isinstance(one, str) and one not in _NAMES for one in texts)
    return False


def _made_in(node: AnyFunction, modules: Modules, leading: Collection[str]) -> set[str]:
    """Return the names for objects that a function makes itself: no other code has them yet."""
    bound = _bound_in(node)
    named = {part.id for part in walk(node) if isinstance(part, ast.Name) and part.id[:1].isupper()}
    called = {part.attr for part in walk(node) if isinstance(part, ast.Attribute)}
    classes = {one for one in named if not _keeps_objects(one, called, modules)}
    classes |= {one for one in parameters(node)[:1] if one == "cls" and one not in bound}
    classes |= {name for name, values in bound.items() if all(_is_one_of(one, classes) for one in values)}
    made = set[str]()
    while new := {
        name
        for name, values in bound.items()
        if name not in made and all(_makes(one, classes, made, leading) for one in values)
    }:
        made |= new
    return made


def _keeps_objects(name: str, methods: Collection[str], modules: Modules) -> bool:
    """Return whether what the checkout has under a name is no class, or one that may return objects that it keeps.

    ``methods`` are those that are called.
    """
    every = [*modules.others_with(name)]
    if any(not isinstance(one.bindings.get(name), (ast.ClassDef, Import, type(None))) for one in every):
        return True
    classes = (part for module in every for part in walk(module.tree) if isinstance(part, ast.ClassDef))
    return any(one.name == name and any(_keeps(part, methods) for part in one.body) for one in classes)


def _keeps(statement: ast.stmt, methods: Collection[str]) -> bool:
    """Return whether a class keeps objects, says itself what a call of it returns, or calls what it looks up.

    A field of a dataclass is one of each object.
    """
    if isinstance(statement, ast.FunctionDef):
        if statement.name not in methods and statement.name not in ("__new__", "__init__"):
            return False
        calls = [part for part in walk(statement) if isinstance(part, ast.Call)]
        names = {dotted(one.func).rpartition(".")[2] for one in calls}
        looks_up = any(isinstance(one.func, (ast.Subscript, ast.Call)) for one in calls)
        return statement.name == "__new__" or looks_up or not names.isdisjoint(_LOOKS_UP)
    kept = (ast.Dict, ast.List, ast.Set, ast.Call, ast.DictComp, ast.ListComp, ast.SetComp)
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    is_field = isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "field"
    return isinstance(value, kept) and not is_field


def _bound_in(node: AnyFunction) -> dict[str, list[ast.expr | None]]:
    """Return what a function binds names to, None where an assignment does not show it."""
    values: dict[str, list[ast.expr | None]] = {}
    plain = set[int]()
    for part in walk(node):
        match part:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                plain.add(id(target))
                values.setdefault(name, []).append(value)
            case ast.Name(id=name, ctx=ast.Store()) if id(part) not in plain:
                values.setdefault(name, []).append(None)
    return values


def _is_one_of(value: ast.expr | None, classes: set[str]) -> bool:
    return isinstance(value, ast.Name) and value.id in classes


def _makes(value: ast.expr | None, classes: set[str], made: set[str], leading: Collection[str]) -> bool:
    """Return whether a class makes an object, or its methods that lead to no change do: `Bridge.at(path).build()`."""
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return name in classes
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return (name in classes or name in made) and method not in leading
        case ast.Call(func=ast.Attribute(value=inner, attr=method)):
            return method not in leading and _makes(inner, classes, made, leading)
    return False


def _is_set(node: ast.AST, names: _Names) -> bool:
    """Return whether code sets an attribute by a name that it computes, of an object that is not known."""
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[target, name, *_]) if not isinstance(name, ast.Constant):
            text = name.id if isinstance(name, ast.Name) else ""
            root = dotted(target).partition(".")[0]
            is_made = dotted(target) in names.made and text in names.of_callers
            return not is_made and text not in names.of_others and root not in names.parameters
        case ast.Call(func=ast.Attribute(attr="update", value=ast.Call(func=ast.Name(id="vars"), args=[target]))):
            return dotted(target).partition(".")[0] not in names.parameters
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

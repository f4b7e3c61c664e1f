"""Names at the top of modules that code binds again, or whose items it changes, in the module itself or from others."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.aliases import COLLECTION_CHANGES, changed_aliases, changed_names, origins
from cgmigrate.proof.flow.modules import IMPORTS_BY_NAME, Import, Module, Modules

ANY = "*"
"""Any name of a module: code binds one that it computes."""
_COMPUTING = ("setattr", "vars", "__dict__")
"""What sets names of a module that are computed."""
_READERS = frozenset(("getattr", "hasattr", "dir", "isinstance", "issubclass", "str", "repr", "print", "type"))
"""Functions that leave a module as it is."""


@lru_cache(maxsize=65536)
def is_changed(name: str, module: Module, modules: Modules, *, in_place: bool) -> bool:
    """Return whether code binds a name of a module again; ``in_place``, whether it changes the collection it names."""
    changed = changed_in if in_place else bound_again_in
    own = changed(module)
    if name in own or ANY in own or any(name in changed(one) for one in modules.others_with(name)):
        return True
    return _has_computed_names(module, modules) or _is_passed_on(module, modules)


@lru_cache(maxsize=65536)
def is_replaced_by_tests(name: str, modules: Modules) -> bool:
    """Return whether tests replace what a name is."""
    return any(name in replaced_in(one) for one in modules.tests_with(name))


@lru_cache(maxsize=4096)
def bound_again_in(module: Module) -> frozenset[str]:
    """Return the names that code of a module binds again: its own, and those of modules that it imports."""
    return frozenset(name for node in walk(module.tree) for name in _bound_by(node, module))


@lru_cache(maxsize=4096)
def changed_in(module: Module) -> frozenset[str]:
    """Return these names, and those of collections that code changes, or that other code may change which gets them."""
    changed = {name for node in walk(module.tree) for name in _changed_by(node, module)}
    named = {name for one in changed_aliases([module.tree]) for name in one.of} | set(_passed_to_others(module.tree))
    of_others = {name for one in named for name in _spelled(one.removeprefix("."), module)}
    return bound_again_in(module) | changed | of_others


@lru_cache(maxsize=4096)
def replaced_in(module: Module) -> frozenset[str]:
    """Return the names that tests pass to what replaces code: ``monkeypatch.setattr(flags, "MODE", "old")``."""
    calls = (node for node in walk(module.tree) if isinstance(node, ast.Call) and _replaces(node.func))
    return frozenset(
        part.value.rpartition(".")[2]
        for node in calls
        for part in walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def _replaces(function: ast.expr) -> bool:
    name = dotted(function)
    return name.endswith((".setattr", ".setitem", ".delattr", ".delitem")) or "patch" in name.split(".")


def _bound_by(node: ast.AST, module: Module) -> Iterator[str]:
    match node:
        case ast.Global(names=names):
            yield from names
        case ast.Attribute(value=owner, attr=name, ctx=ast.Store() | ast.Del()):
            yield from _of_module(owner, name, module)
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, ast.Constant(value=str() as name), *_]):
            yield from _of_module(owner, name, module)
        case (
            ast.Subscript(value=ast.Call(func=ast.Name(id="globals")), ctx=ast.Store() | ast.Del())
            | ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="globals"))))
        ):
            yield ANY


def _changed_by(node: ast.AST, module: Module) -> Iterator[str]:
    match node:
        case ast.Subscript(value=changed, ctx=ast.Store() | ast.Del()) | ast.AugAssign(target=changed):
            yield from _named(changed, module)
        case ast.Call(func=ast.Attribute(value=changed, attr=method)) if method in COLLECTION_CHANGES:
            yield from _named(changed, module)


def _of_module(owner: ast.expr, name: str, module: Module) -> Iterator[str]:
    """Yield a name if what it belongs to may be a module: it is imported, or the name is that of a constant."""
    if name.isupper() or (isinstance(owner, ast.Name) and owner.id in _imports(module)):
        yield name


@lru_cache(maxsize=4096)
def _imports(module: Module) -> dict[str, tuple[str, ...]]:
    """Return the names that a module imports at any place, each with what it may be."""
    result: dict[str, tuple[str, ...]] = {}
    for node in walk(module.tree):
        match node:
            case ast.Import(names=names):
                bound = [(one.asname or one.name.partition(".")[0], one.name) for one in names]
            case ast.ImportFrom(names=names):
                source = "." * node.level + (node.module or "")
                joined = source if source.endswith(".") or not source else f"{source}."
                bound = [(one.asname or one.name, f"{joined}{one.name}") for one in names]
            case _:
                continue
        for local, full in bound:
            result[local] = (*result.get(local, ()), full)
    return result


def _named(node: ast.expr, module: Module) -> Iterator[str]:
    """Yield the name of a collection at the top of a module."""
    match node:
        case ast.Name(id=name):
            yield from _spelled(name, module)
        case ast.Attribute(value=owner, attr=name):
            yield from _of_module(owner, name, module)


def _spelled(name: str, module: Module) -> Iterator[str]:
    """Yield a name, and the name under which another module has it."""
    imported = module.bindings.get(name)
    yield imported.name if isinstance(imported, Import) and imported.name else name


# --- collections that other code gets -------------------------------------------------------------


def _passed_to_others(tree: ast.Module) -> Iterator[str]:
    """Yield the names of what functions return, whose callers may change it, or that functions get which change it."""
    changing = dict(_changing_parameters(tree))
    for node in walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _returned(node)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in changing:
                yield from (one for at in changing[name] for value in arguments[at : at + 1] for one in origins(value))


def _returned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    bound = {one.arg for one in walk(function.args) if isinstance(one, ast.arg)}
    bound |= {one.id for one in walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for node in walk(function):
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
            yield from (name for name in origins(node.value) if name not in bound)


def _changing_parameters(tree: ast.Module) -> Iterator[tuple[str, list[int]]]:
    """Yield the functions that change collections which they get, each with the places of these parameters."""
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef):
            changed = {name for part in walk(node) for name in changed_names(part)}
            yield node.name, [at for at, one in enumerate(node.args.args) if one.arg in changed]


# --- names that are computed ----------------------------------------------------------------------


def _is_one_of(owners: frozenset[str], importer: Module, module: Module, modules: Modules) -> bool:
    """Return whether a module is one of those of which another one sets names that it computes."""
    if ANY in owners:
        return True
    names = (full for owner in owners for full in _imports(importer).get(owner, ()))
    return any((one := modules.imported(full, importer)) is not None and one.path == module.path for full in names)


@lru_cache(maxsize=4096)
def _has_computed_names(module: Module, modules: Modules) -> bool:
    """Return whether code sets names of a module that it computes: then it may bind any."""
    computing = (one for word in _COMPUTING for one in modules.others_with(word))
    return any(_is_one_of(_owners_of_any(one), one, module, modules) for one in computing)


@lru_cache(maxsize=4096)
def _is_passed_on(module: Module, modules: Modules) -> bool:
    """Return whether code uses a module as a value: what gets it may set any of its names."""
    return any(_is_one_of(_passed_on(one), one, module, modules) for one in modules.others_with(_last_name(module)))


def _last_name(module: Module) -> str:
    """Return the word by which code imports a module."""
    folder, name = os.path.split(module.path.removesuffix(".py"))
    return os.path.basename(folder) if name == "__init__" else name


@lru_cache(maxsize=4096)
def _passed_on(module: Module) -> frozenset[str]:
    """Return the names of imports that code uses as values."""
    imported = _imports(module)
    only_read = {id(part) for node in walk(module.tree) for part in _read_by(node) if isinstance(part, ast.Name)}
    return frozenset(
        node.id
        for node in walk(module.tree)
        if isinstance(node, ast.Name) and node.id in imported and id(node) not in only_read
    )


def _read_by(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what code only reads attributes of, calls, or derives a class of."""
    match node:
        case ast.Attribute(value=value):
            yield value
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _READERS:
            yield from arguments
        case ast.Call(func=function):
            yield function
        case ast.ClassDef(bases=bases):
            yield from bases


@lru_cache(maxsize=4096)
def _owners_of_any(module: Module) -> frozenset[str]:
    """Return the names of the modules of which code sets names that it computes; ``ANY`` if it may be any module."""
    computed = frozenset(
        target.id
        for node in walk(module.tree)
        if isinstance(node, ast.Assign) and _is_any_module(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    )
    owners = set[str]()
    for node in walk(module.tree):
        if (owner := _owner_of_computed(node)) is None:
            continue
        is_any = _is_any_module(owner) or (isinstance(owner, ast.Name) and owner.id in computed)
        owners.add(ANY if is_any else owner.id if isinstance(owner, ast.Name) else "")
    return frozenset(owners)


def _owner_of_computed(node: ast.AST) -> ast.expr | None:
    """Return that of which code sets attributes by names that it computes, None for other code."""
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(), *_]):
            return None
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
            return owner
        case (
            ast.Subscript(value=names, ctx=ast.Store() | ast.Del())
            | ast.AugAssign(target=names)
            | ast.Assign(value=names)
        ):
            return _owner_of_names(names)
        case ast.Call(func=ast.Attribute(value=names, attr=method)) if method in COLLECTION_CHANGES:
            return _owner_of_names(names)
    return None


def _owner_of_names(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Name(id="vars"), args=[owner]) | ast.Attribute(value=owner, attr="__dict__"):
            return owner
    return None


def _is_any_module(node: ast.expr) -> bool:
    """Return whether code gets a module by a name that it may compute."""
    return any(
        (isinstance(part, ast.Attribute) and part.attr in ("modules", *IMPORTS_BY_NAME))
        or (isinstance(part, ast.Name) and part.id in IMPORTS_BY_NAME)
        for part in walk(node)
    )

"""Names of functions and modules, followed through imports and re-exports of the checkout."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache

from cgmigrate.documents.python.nodes import has_parameters, walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.changed_names import is_changed, is_replaced_by_tests
from cgmigrate.linking.python.evaluation import Frame, Run, cannot_follow
from cgmigrate.proof.flow.modules import Import, Module
from cgmigrate.linking.python.values import (
    CannotFollowError,
    Class,
    Function,
    Member,
    Namespace,
    Object,
    Outside,
    SharedDict,
    SharedList,
    shared,
)
from cgmigrate.proof.flow.world import SETTINGS, is_enumeration

_MOST_IMPORTS = 8
_NONE = object()


def value_of_name(node: ast.Name, frame: Frame, run: Run) -> object:
    """Return what a name is in a function."""
    if node.id in frame.names:
        return frame.names[node.id]
    if node.id in frame.function.around:
        return frame.function.around[node.id]
    value = _binding_of(node.id, frame.module, run, 0)
    if value is not _NONE:
        return value
    if hasattr(builtins, node.id):
        return Outside(f"builtins.{node.id}")
    raise cannot_follow(f"`{node.id}` is not known", node, frame)


def name_in(name: str, module: Module, run: Run) -> object:
    """Return what a name of a module is. Raises CannotFollowError if it is not known."""
    value = _binding_of(name, module, run, 0)
    if value is not _NONE:
        return value
    if (inner := run.modules.imported(f".{name}", module)) is not None and module.path.endswith("__init__.py"):
        return Namespace(inner)
    raise CannotFollowError(f"`{name}` is not known in {module.path}")


def _binding_of(name: str, module: Module, run: Run, depth: int) -> object:
    """Return what a name is at the top of a module; _NONE if it is none of its names."""
    if depth > _MOST_IMPORTS:
        raise CannotFollowError(f"`{name}` is imported through too many modules ({module.path})")
    run.code.use_name(module.path, name)
    if (value := _of_stars(name, module, run, depth)) is not _NONE:
        return value
    if name in module.bindings:
        return _of_binding(name, module, run, depth)
    if any(run.modules.imported(star, module) is None for star in module.stars) and not hasattr(builtins, name):
        # It may be a name of a module that is not read.
        return Outside(f"*.{name}")
    return _NONE


def _of_stars(name: str, module: Module, run: Run, depth: int) -> object:
    """Return what the last import with a star binds a name to; _NONE if none does, or the module itself later."""
    is_bound = name in module.bindings
    for star in reversed(module.stars[module.stars_before.get(name, 0) if is_bound else 0 :]):
        inner = run.modules.imported(star, module)
        if inner is None:
            if is_bound and not star.startswith("megatron."):
                raise CannotFollowError(f"`{name}` may be a name of `{star}`, which is not read ({module.path})")
            continue
        exports = inner.exports
        if name not in exports if exports is not None else name.startswith("_"):
            continue
        if (value := _binding_of(name, inner, run, depth + 1)) is not _NONE:
            return value
    return _NONE


def _of_binding(name: str, module: Module, run: Run, depth: int) -> object:
    binding = module.bindings[name]
    if isinstance(binding, ast.FunctionDef) and is_changed(name, module, run.modules, in_place=False):
        raise CannotFollowError(f"`{name}` is replaced by other code ({module.path})")
    match binding:
        case None:
            raise CannotFollowError(f"`{name}` is bound in a way that is not followed ({module.path})")
        case ast.FunctionDef() as node:
            is_flag = not has_parameters(node.args) and not run.relevance.is_relevant(node)
            return _of_run(name, module, run) if is_flag and _is_replaced(name, run) else Function(node, module)
        case ast.ClassDef() as node:
            return Class(node, module)
        case Import() as imported:
            return _of_import(imported, module, run, depth)
        case ast.expr() as node:
            return _of_expression(name, node, module, run)
    raise TypeError(name)


def _of_import(imported: Import, module: Module, run: Run, depth: int) -> object:
    full = imported.full
    if imported.otherwise is not None:
        run.touched.asks_release = True
        if not run.world.has_class(full):
            return _constant(imported.otherwise)
    if is_enumeration(full):
        return Outside(full)
    inner = run.modules.imported(imported.module, module)
    if imported.otherwise is not None and inner is not None:
        raise CannotFollowError(f"`{imported.name}` is something else if its import fails ({module.path})")
    if not imported.name:
        return Outside(full) if inner is None else Namespace(inner)
    if inner is None:
        return Outside(_absolute(full, module))
    value = _binding_of(imported.name, inner, run, depth + 1)
    if value is not _NONE:
        return value
    below = run.modules.imported(f".{imported.name}", inner) if inner.path.endswith("__init__.py") else None
    if below is None:
        raise CannotFollowError(f"`{imported.name}` is no name at the top of {inner.path}")
    return Namespace(below)


def _absolute(full: str, module: Module) -> str:
    return f"{module.package}{full}" if full.startswith(".") else full


def _of_expression(name: str, node: ast.expr, module: Module, run: Run) -> object:
    """Return the value of an expression at the top of a module: a constant, or an object that is not known."""
    if not isinstance(node, ast.Constant):
        # Other code of the module may change it, or is used in it.
        run.code.use_file(module.path)
    if _has_settings(node):
        run.use_lines(node, module)
    if name in module.values:
        return module.values[name]
    try:
        value = _constant(node)
    except ValueError:
        value = _member(node, module, run) or _module(node, module, run)
    if value is None and not isinstance(node, ast.Constant):
        return _of_run(name, module, run)
    in_place = isinstance(value, (SharedList, SharedDict, tuple))
    is_registry = isinstance(value, (SharedList, SharedDict)) and not value
    if is_registry or is_changed(name, module, run.modules, in_place=in_place) or _is_replaced(name, run):
        # A registry, or a switch: what it is depends on the code that was executed before.
        made = _of_run(name, module, run)
        made.may_be_other = True
        return made
    module.values[name] = value
    return value


@lru_cache(maxsize=4096)
def _has_settings(node: ast.expr) -> bool:
    """Return whether a literal has the name of a setting: what code gets from it may be given to an object."""
    names = (one.arg if isinstance(one, ast.keyword) else getattr(one, "value", None) for one in walk(node))
    return any(isinstance(name, str) and name in SETTINGS for name in names)


def _is_replaced(name: str, run: Run) -> bool:
    return is_replaced_by_tests(name, run.modules)


def _of_run(name: str, module: Module, run: Run) -> Object:
    """Return the object that a name of a module is: one object for all code of a path."""
    key = f"{module.path}:{name}"
    return run.shared.setdefault(key, Object(key))


def _member(node: ast.expr, module: Module, run: Run) -> object:
    """Return ``CudaGraphScope.attn``; None for anything else."""
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)) and "." not in base:
        value = _binding_of(base, module, run, 0)
        if isinstance(value, Outside) and is_enumeration(value.name):
            return Member(value.name.rpartition(".")[2], node.attr)
    return None


def _module(node: ast.expr, module: Module, run: Run) -> Namespace | None:
    """Return the module of ``importlib.import_module("package.name")``; None for anything else."""
    match node:
        case ast.Call(func=function, args=[ast.Constant(value=str() as name)], keywords=[]):
            if dotted(function) in ("importlib.import_module", "import_module"):
                inner = run.modules.imported(name, module)
                return None if inner is None else Namespace(inner)
    return None


def _constant(node: ast.expr) -> object:
    """Return the value of a literal, or of ``dict(name=literal)``. Raises ValueError for anything else."""
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=entries) if all(one.arg for one in entries):
            return shared({one.arg: ast.literal_eval(one.value) for one in entries})
    return shared(ast.literal_eval(node))


def imported_in_function(node: ast.Import | ast.ImportFrom, frame: Frame, run: Run) -> dict[str, object]:
    """Return the names that an import in a function binds."""
    result: dict[str, object] = {}
    for alias in node.names:
        if isinstance(node, ast.Import):
            local = alias.asname or alias.name.partition(".")[0]
            imported = Import(alias.name if alias.asname else local)
        elif alias.name == "*":
            raise cannot_follow("a star import in a function is not followed", node, frame)
        else:
            local, imported = alias.asname or alias.name, Import("." * node.level + (node.module or ""), alias.name)
        result[local] = _of_import(imported, frame.module, run, 0)
    return result

"""What names of modules stand for: definitions, imports and re-exports, and attributes of classes."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice

from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.proof.flow.limits import NotFollowedError
from cgmigrate.proof.flow.modules import Import, Module, Modules
from cgmigrate.proof.flow.run import WHOLE, FlowRun
from cgmigrate.proof.flow.values import Builtin, Class, External, Function, PackageModule, Unknown
from cgmigrate.proof.flow.world import is_enumeration


def global_name(run: FlowRun, module: Module, name: str) -> object:
    """Return what a name at the top of a module is."""
    key = module.path, name
    known = None if run.is_patched else run.side.names.get(key)
    if known is None:
        if key in run.globals:
            run.computed += 1
        else:
            run.globals[key] = Unknown(f"{name} of {module.path}")
            run.globals[key] = _resolved(run, module, name)
    elif run.is_finding or key not in run.globals:
        value, touched = known
        for one in touched:
            run.touch(*one)
        run.globals[key] = class_of(run, value.module, value.node) if isinstance(value, Class) else value
    return run.globals[key]


def _resolved(run: FlowRun, module: Module, name: str) -> object:
    """Return what a name is; where nothing is computed for it, it is the same for all paths."""
    before = run.computed, run.touched, run.is_finding
    run.touched, run.is_finding = {one: set() for one in islice(run.touched, 1)}, True
    try:
        run.touch(module, name)
        value = _bound(run, module, name)
        if run.computed == before[0] and not run.is_patched:
            touched = [(one, own) for one, every in run.touched.items() for own in every]
            run.side.names[module.path, name] = value, touched
    finally:
        inner, (_, run.touched, run.is_finding) = run.touched, before
        for one, names in inner.items():
            run.touched.setdefault(one, set()).update(names)
    return value


def _bound(run: FlowRun, module: Module, name: str) -> object:
    for value in _bound_elsewhere(run, module, name):
        return value
    binding = module.bindings[name]
    if isinstance(binding, (ast.List, ast.Dict)) and _is_filled(name, module):
        binding = None
    match binding:
        case ast.FunctionDef():
            return Function(module, binding)
        case ast.ClassDef():
            return class_of(run, module, binding)
        case Import():
            return imported(run, module, binding)
        case ast.expr():
            run.note(module, binding)
            return run.evaluate(module, binding)
    return _not_known(run, module, name)


def _bound_elsewhere(run: FlowRun, module: Module, name: str) -> Iterator[object]:
    """Yield what a name is that no binding of the module decides: star imports after it bind it again, last first."""
    if name not in module.bindings:
        yield _not_bound(run, module, name)
        return
    for source in reversed(module.stars[module.stars_before.get(name, 0) :]):
        other = run.side.modules.imported(source, module)
        if other is None or is_part_of_megatron(other.path) or _exports(run, other, "__all__"):
            yield _not_known(run, module, name)
        elif not name.startswith("_") and (_exports(run, other, name) or other.stars):
            yield global_name(run, other, name)


def _not_known(run: FlowRun, module: Module, name: str) -> Unknown:
    if name in run.side.slice.functions:
        run.note_function(name)
        raise NotFollowedError(f"it is not known which function `{name}` is")
    return Unknown(f"{name} of {module.path}")


def _not_bound(run: FlowRun, module: Module, name: str) -> object:
    for source in reversed(module.stars):
        other = run.side.modules.imported(source, module)
        if other is None or is_part_of_megatron(other.path):
            continue
        if _exports(run, other, name) or other.stars:
            return global_name(run, other, name)
    if hasattr(builtins, name):
        return Builtin(name)
    return External(f"{module.stars[-1]}.{name}") if module.stars else Unknown(name)


@lru_cache(maxsize=65536)
def _is_filled(name: str, module: Module) -> bool:
    """Return whether code of a module changes a collection at its top."""
    changed = rf"\b{name}(\[[^\]\n]*\]\s*=[^=]|\.(append|update|setdefault|add|extend|insert|pop|clear)\()"
    return re.search(changed, module.text) is not None


def _exports(run: FlowRun, module: Module, name: str) -> bool:
    run.touch(module, name)
    return name in module.bindings


def holds_in(modules: Modules, touched: Mapping[Module, Set[str]]) -> bool:
    """Return whether code that looked for some names in modules finds the same in other versions of these."""
    return all(
        other is one or (other is not None and WHOLE not in names and _differing(one, other).isdisjoint(names))
        for one, names in touched.items()
        for other in (modules.read(one.path),)
    )


@lru_cache(maxsize=8192)
def _differing(one: Module, other: Module) -> Set[str]:
    """Return the names that two versions of a module bind to something else, or in a way that is not known."""
    every = one.bindings.keys() | other.bindings.keys()
    return every if one.stars != other.stars else {name for name in every if not _is_same(name, one, other)}


def _is_same(name: str, one: Module, other: Module) -> bool:
    binding = one.bindings.get(name)
    return (
        binding is not None
        and binding == other.bindings.get(name)
        and one.stars_before[name] == other.stars_before[name]
        and (not isinstance(binding, (ast.List, ast.Dict)) or _is_filled(name, one) == _is_filled(name, other))
    )


def class_of(run: FlowRun, module: Module, node: ast.ClassDef) -> Class:
    """Return a class of a module: the same one each time."""
    if node not in run.classes:
        run.classes[node] = Class(module, node)
    known = run.classes[node]
    assert isinstance(known, Class)
    return known


def imported(run: FlowRun, module: Module, one: Import) -> object:
    """Return what a module imports."""
    modules = run.side.modules
    if one.otherwise is not None and not run.side.world.has_class(one.full):
        return run.evaluate(module, one.otherwise)
    source = modules.imported(one.module, module)
    if source is not None and is_part_of_megatron(source.path):
        return External(one.full)
    if not one.name:
        return PackageModule(source) if source is not None else External(one.full)
    if source is not None and (_exports(run, source, one.name) or source.stars):
        return global_name(run, source, one.name)
    inner = modules.imported(f"{one.module}.{one.name}" if one.module.strip(".") else f"{one.module}{one.name}", module)
    if inner is not None and not is_part_of_megatron(inner.path):
        return PackageModule(inner)
    return External(one.full)


def bases_of(run: FlowRun, one: Class) -> Sequence[object]:
    """Return the classes that a class is derived from, itself first."""
    if one not in run.bases:
        run.bases[one] = list(_bases_of(run, one))
    return run.bases[one]


def _bases_of(run: FlowRun, one: Class) -> Iterator[object]:
    seen: set[int] = set()
    open_ones: list[object] = [one]
    while open_ones:
        first = open_ones.pop(0)
        if id(first) in seen:
            continue
        seen.add(id(first))
        yield first
        if isinstance(first, Class):
            open_ones += [run.evaluate(first.module, base) for base in first.node.bases]


def is_record(run: FlowRun, one: Class) -> bool:
    """Return whether the objects of a class are the project's own: no class of another package is its base."""
    return not any(
        isinstance(base, Unknown) or (isinstance(base, External) and not _is_plain_base(base.name))
        for base in bases_of(run, one)
    )


def _is_plain_base(name: str) -> bool:
    return name.partition(".")[0] in ("abc", "typing", "typing_extensions", "enum", "object", "unittest")


def is_foreign(name: str) -> bool:
    """Return whether a class is one of another package than megatron-core that may set settings."""
    return not (_is_plain_base(name) or name.startswith("megatron.core."))


def member_named(node: ast.ClassDef, name: str) -> tuple[ast.stmt, ast.expr | None] | None:
    """Return the first attribute of a name in the body of a class, as `members_of` does."""
    return _first_members(node).get(name)


@lru_cache(maxsize=65536)
def _first_members(node: ast.ClassDef) -> dict[str, tuple[ast.stmt, ast.expr | None]]:
    return {name: (statement, value) for name, statement, value in reversed(members_of(node))}


@lru_cache(maxsize=65536)
def members_of(node: ast.ClassDef) -> Sequence[tuple[str, ast.stmt, ast.expr | None]]:
    """Return the attributes in the body of a class: each name with its statement, and its value if it has one."""
    result: list[tuple[str, ast.stmt, ast.expr | None]] = []
    for statement in node.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                result.append((name, statement, None))
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                result.append((name, statement, value))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                result.append((name, statement, value))
    return result


def enumeration(value: object) -> str:
    """Return the name of an enumeration of values of settings, empty for other values."""
    return value.name.rpartition(".")[2] if isinstance(value, External) and is_enumeration(value.name) else ""

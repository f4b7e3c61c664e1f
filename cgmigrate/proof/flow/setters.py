"""Finds the functions of a project that set the modules of an object and clear its old scope, by evaluating them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.setters import Setters
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import IMPL, MODULES, SCOPE
from cgmigrate.megatron.types import Reader
from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow.calls import HANDLERS, call_function
from cgmigrate.proof.flow.limits import NotFollowedError
from cgmigrate.proof.flow.modules import Import, Module, Modules
from cgmigrate.proof.flow.run import FlowRun, Frozen, Side, paths_of, state_of
from cgmigrate.proof.flow.slices import Slice
from cgmigrate.proof.flow.states import plain_setting
from cgmigrate.proof.flow.values import Function, Object
from cgmigrate.proof.flow.world import SETTINGS, World

_PURE = frozenset(
    (
        *("getattr", "hasattr", "isinstance", "issubclass", "list", "tuple", "set", "sorted", "str", "len", "any"),
        *("all", "bool", "iter", "type", "repr", "map", "filter", "zip", "enumerate"),
    )
)
_METHODS = frozenset(dir(str)) | {"get", "items", "keys", "values", "fromkeys"}
_OF_LOCALS = frozenset(("append", "extend", "add", "insert"))
"""Builtins and methods that code of a setter may call; the last only on its own variables."""
_EFFECTS = (ast.Global, ast.Nonlocal, ast.With, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom)
_MODULES = ["attn", "mlp"]
_OLD: Frozen = ((IMPL, "transformer_engine"), (SCOPE, ("list", "moe_router")))
_NEW: Frozen = ((IMPL, "transformer_engine"), (MODULES, ("list", "moe_router")))
"""Settings that an object may have before a setter is called."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A function as a file imports it."""

    module: str
    name: str
    node: ast.FunctionDef
    path: str


def setters_of(
    modules: Modules, seeds: Sequence[str], release: Release, names: Sequence[str] | None = None
) -> Setters | None:
    """Return the setters with some full names, or that files of a project import if these are None.

    Returns None if there are none: a function that does not do what a setter does is none.
    """
    every = _candidates(modules, seeds) if names is None else set(_named(modules, seeds, names))
    candidates = sorted(every, key=lambda one: (one.module, one.name))
    for one in candidates:
        if _gives(one, [_MODULES], modules, release):
            clears = (
                other.name for other in candidates if other.module == one.module and _gives(other, [], modules, release)
            )
            return Setters(one.module, one.name, next(clears, ""))
    return None


def _candidates(modules: Modules, seeds: Iterable[str]) -> set[_Candidate]:
    """Return the functions that may be setters: public ones that code other than tests imports by their full names."""
    result: dict[tuple[str, str], _Candidate] = {}
    for path in seeds:
        importer = None if is_test(path) else modules.read(path)
        for bound in importer.bindings.values() if importer else ():
            if not isinstance(bound, Import) or not bound.name or bound.module.startswith("."):
                continue
            key = (bound.module, bound.name)
            if key in result or bound.name.startswith("_") or "." not in bound.module:
                continue
            assert importer is not None
            source = modules.imported(bound.module, importer)
            node = source.bindings.get(bound.name) if source else None
            if (
                isinstance(node, ast.FunctionDef)
                and source
                and 1 <= len(node.args.args) <= 2
                and MODULES in source.text
                and SCOPE in source.text
            ):
                result[key] = _Candidate(*key, node, source.path)
    return set(result.values())


def _named(modules: Modules, seeds: Iterable[str], names: Iterable[str]) -> Iterator[_Candidate]:
    """Yield the functions that have some full names, as the first file of the project imports them that can."""
    importers = [one for path in seeds if not is_test(path) and (one := modules.read(path)) is not None]
    for full in names:
        module, _, name = full.rpartition(".")
        for importer in importers:
            source = modules.imported(module, importer)
            node = source.bindings.get(name) if source else None
            if isinstance(node, ast.FunctionDef) and source:
                yield _Candidate(module, name, node, source.path)
                break


def _gives(candidate: _Candidate, arguments: list[list[str]], modules: Modules, release: Release) -> bool:
    """Return whether a function gives each object some modules, clears its scope, and does nothing else."""
    source = modules.read(candidate.path)
    if len(candidate.node.args.args) != 1 + len(arguments) or source is None:
        return False
    if not _only_sets(candidate.node, source, frozenset()):
        return False
    try:
        side = Side(modules, World(release, Reader.BRIDGE), Slice(), {})
        return all(_gives_from(state, candidate, arguments, side) for state in (_OLD, _NEW))
    except NotFollowedError:
        return False


def _gives_from(state: Frozen, candidate: _Candidate, arguments: list[list[str]], side: Side) -> bool:
    """Return whether a function gives an object with some settings some modules, and clears its scope."""
    source = side.modules.read(candidate.path)
    assert source is not None
    side.slice.add([source])
    function = Function(source, candidate.node)

    def start(run: FlowRun) -> object:
        return call_function(run, function, [Object("config", is_argument=True, is_part=True), *arguments], {})

    expected = arguments[0] if arguments else []
    runs = paths_of(start, lambda planned: FlowRun(side, HANDLERS, [state], 0, planned))
    return all(_is_set(one, expected) for one in runs)


def _only_sets(node: ast.FunctionDef, module: Module, seen: frozenset[str]) -> bool:
    """Return whether a function, with those of its module that it calls, sets no other attributes than settings.

    What is evaluated are only the statements that settings need, so that would not show others.
    """
    parts = [part for statement in node.body for part in walk(statement)]
    return not node.decorator_list and all(_is_harmless(part, module, seen | {node.name}) for part in parts)


def _is_harmless(part: ast.AST, module: Module, seen: frozenset[str]) -> bool:
    match part:
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            return name in SETTINGS
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), _]):
            return name in SETTINGS
        case ast.Call(func=function):
            return _is_harmless_call(function, module, seen)
        case ast.Subscript(ctx=ast.Store() | ast.Del()):
            return False
    return not isinstance(part, _EFFECTS)


def _is_harmless_call(function: ast.expr, module: Module, seen: frozenset[str]) -> bool:
    match function:
        case ast.Name(id=name):
            called = module.bindings.get(name)
            if isinstance(called, ast.FunctionDef):
                return name in seen or _only_sets(called, module, seen)
            return name in _PURE or name[:1].isupper()
        case ast.Attribute(value=owner, attr=name):
            return name in _METHODS or (name in _OF_LOCALS and isinstance(owner, ast.Name))
    return False


def _is_set(run: FlowRun, expected: list[str]) -> bool:
    if run.outcome != "returns None" or run.events or len(run.arguments) != 1:
        return False
    (argument,) = (one for one in run.objects.values() if one.key in run.arguments)
    settings = dict(state_of(argument))
    modules = argument.fields.get(MODULES)
    return (
        plain_setting(modules) == expected
        and settings.get(SCOPE) is None
        and settings.get(IMPL) == "transformer_engine"
    )

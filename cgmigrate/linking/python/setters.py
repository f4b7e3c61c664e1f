"""Finds the functions of a project that set the modules of an object and clear its old scope, by evaluating them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.setters import Setters
from cgmigrate.linking.python.calls import value_of_call
from cgmigrate.linking.python.evaluation import Handlers, NotFollowedError, Path, Run, Unknowns, paths_of
from cgmigrate.linking.python.leading_code import relevance_of
from cgmigrate.linking.python.modules import Import, Modules, is_test
from cgmigrate.linking.python.objects import frozen_settings
from cgmigrate.linking.python.outcomes import plain_setting
from cgmigrate.linking.python.path_pairs import plain
from cgmigrate.linking.python.pieces import Unit
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.statements import execute, store
from cgmigrate.linking.python.values import CannotFollowError, FrozenSettings
from cgmigrate.linking.python.world import World
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import IMPL, MODULES, SCOPE
from cgmigrate.megatron.types import Reader

_HANDLERS = Handlers(value_of_call, execute, store)
_MODULES = ["attn", "mlp"]
_OLD: FrozenSettings = ((IMPL, "transformer_engine"), (SCOPE, ("list", "moe_router")))
_NEW: FrozenSettings = ((IMPL, "transformer_engine"), (MODULES, ("list", "moe_router")))
"""Settings that an object may have before a setter is called."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A function as a file imports it."""

    module: str
    name: str
    importer: str
    node: ast.FunctionDef
    path: str


def setters_of(modules: Modules, seeds: Sequence[str], release: Release) -> Setters | None:
    """Return the setters that files of a project import, None if it has none."""
    candidates = sorted(_candidates(modules, seeds), key=lambda one: (one.module, one.name))
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
                and _names_modules(source.text)
            ):
                result[key] = _Candidate(*key, path, node, source.path)
    return set(result.values())


def _names_modules(text: str) -> bool:
    return MODULES in text and SCOPE in text


def _gives(candidate: _Candidate, arguments: list[list[str]], modules: Modules, release: Release) -> bool:
    """Return whether a function gives each object some modules, clears its scope, and does nothing else."""
    if len(candidate.node.args.args) != 1 + len(arguments):
        return False
    try:
        paths = list(_paths(candidate, arguments, modules, release))
    except (CannotFollowError, NotFollowedError):
        return False
    expected = arguments[0] if arguments else []
    return bool(paths) and all(_is_set(one, expected) for one in paths)


def _is_set(path: Path, expected: list[str]) -> bool:
    if path.error or path.events or len(path.opened) != 1 or path.value is not None:
        return False
    ((opened, _),) = path.opened
    settings = plain(frozen_settings(opened))
    return (
        plain_setting(settings.get(MODULES)) == expected
        and settings.get(SCOPE) is None
        and settings.get(IMPL) == "transformer_engine"
    )


def _paths(candidate: _Candidate, arguments: list[list[str]], modules: Modules, release: Release) -> Iterator[Path]:
    """Yield the paths of a call of a function as its importer would write it."""
    values = "".join(f", {one!r}" for one in arguments)
    name = candidate.name
    text = f"from {candidate.module} import {name}\n\n\ndef call(config):\n    {name}(config{values})\n"
    path = os.path.join(os.path.dirname(candidate.importer), "(call).py")
    edited = modules.with_texts({path: text})
    module = edited.read(path)
    if module is None:
        return
    node = module.bindings["call"]
    assert isinstance(node, ast.FunctionDef)
    relevance = relevance_of(References(edited), [candidate.path, path])
    unit = Unit("call#1", module, node)

    def run_of(planned: Sequence[int]) -> Run:
        unknowns = Unknowns([_OLD, _NEW])
        return Run(edited, World(release, Reader.BRIDGE), relevance, _HANDLERS, unknowns, planned)

    yield from paths_of("call", unit.evaluate, run_of)

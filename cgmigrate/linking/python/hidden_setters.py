"""Functions that may set a setting by a name that they compute, in files that name no setting.

Such a name is in parts in the code: ``setattr(model, "cuda_graph_" + name, value)``. A function that gets the whole
name from its callers sets no setting of its own; one that has a part of a name, and calls it, may do so.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.leading_code import FunctionFacts, facts_of
from cgmigrate.linking.python.modules import Modules, is_test
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.relevance import sets_by_computed_name
from cgmigrate.linking.python.world import SETTINGS

_WORDS = ("setattr", "__setattr__", "__dict__", "vars", "exec")
_SHORTEST = 4
"""The length of a text that counts as a part of the name of a setting."""
_COMMON = frozenset(("cuda", "full", "graph", "model", "enable", "external", "inference", "module", "modules"))
"""Words that are in such names, and in much other code."""


def setters_by_name(files_with: FilesWith, modules: Modules) -> list[FunctionFacts]:
    """Return the functions that set attributes by names that they get or compute."""
    return [one for one in _functions(files_with(_WORDS), modules) if _sets(one.node)]


def hidden_files(setters: Collection[FunctionFacts], files_with: FilesWith, modules: Modules) -> tuple[str, ...]:
    """Return the files of functions that may set a setting by a name in parts, and of those that use them."""
    names = _names(setters)
    users = _functions(files_with(sorted(names)), modules)
    waiting = [one for one in (*setters, *users) if _has_part(one.node) and (_sets(one.node) or names & one.words)]
    files: dict[str, None] = {}
    known = set[str]()
    while waiting:
        files |= dict.fromkeys(one.path for one in waiting)
        new = _names(waiting) - known
        known |= new
        waiting = [one for one in _functions(files_with(sorted(new)), modules) if _uses(one, new)] if new else []
    return tuple(files)


def _uses(function: FunctionFacts, names: Collection[str]) -> bool:
    return function.may_leave and not function.words.isdisjoint(names)


def _names(functions: Iterable[FunctionFacts]) -> set[str]:
    """Return the names by which code calls functions: that of its class for a method that makes an object."""
    return {one.inside.name if one.inside and one.node.name.startswith("__") else one.node.name for one in functions}


def _functions(paths: Iterable[str], modules: Modules) -> Iterator[FunctionFacts]:
    for path in paths:
        yield from () if is_test(path) else facts_of(modules.read(path))


@lru_cache(maxsize=65536)
def _sets(node: AnyFunction) -> bool:
    return any(map(sets_by_computed_name, ast.walk(node)))


@lru_cache(maxsize=65536)
def _has_part(node: AnyFunction) -> bool:
    """Return whether code has a text that is a part of the name of a setting."""
    return any(isinstance(one, ast.Constant) and _is_part(one.value) for one in ast.walk(node))


def _is_part(text: object) -> bool:
    if not isinstance(text, str) or len(text) < _SHORTEST or text.strip("_") in _COMMON:
        return False
    return any(text in name and text != name for name in SETTINGS)

"""The modules of a checkout that may set, read or pass on the settings of some functions, by the words in them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable

from cgmigrate.linking.python.computed_functions import gets_computed_functions, sets_computed_names
from cgmigrate.linking.python.definitions import Definition, Graph
from cgmigrate.linking.python.modules import Modules
from cgmigrate.linking.python.world import SETTINGS
from cgmigrate.text.files import read_bytes

_MOST_BYTES = 1024 * 1024
_MOST_ROUNDS = 6
_MOST_FILES = 128
"""Of those that name functions with settings; of more files, those are read that may use a setting."""
_MOST_SETTERS = 512
"""Names of code that may set a setting of what it gets."""
_COMPUTING = (
    *("setattr", "getattr", "delattr", "vars", "__dict__", "eval", "exec", "globals", "locals"),
    *("__setattr__", "__getattribute__", "__delattr__", "attrgetter", "methodcaller", "asdict", "getmembers"),
    *("import_module", "__import__"),
)
_WORDS = (*sorted(SETTINGS), *_COMPUTING)
_WORD = re.compile(rb"[A-Za-z_]\w*")


class TooManyError(Exception):
    """The modules lead to more and more others."""


def graph_of(
    modules: Modules,
    seeds: Iterable[str],
    is_site: Callable[[Definition], bool],
    files_with: Callable[[Collection[str]], Iterable[str]],
) -> Graph:
    """Return the definitions of modules with settings, and of those that use functions with sites.

    ``files_with`` returns the files of the checkout that contain one of some words. Raises TooManyError.
    """
    graph, known = Graph(), set[str]()
    _add(graph, modules, seeds, known)
    for _ in range(_MOST_ROUNDS):
        names = [name for one in graph.definitions if is_site(one) for name in one.names]
        if not names:
            return _checked(graph)
        matches = _users(graph, graph.leading_to(names), files_with) - known
        words = {word.encode() for word in (*_WORDS, *graph.setters())}
        imported = {
            path for one in list(known) if (module := modules.read(one)) for path in modules.files_imported(module)
        }
        # Code that computes names, and what leads to it, may set settings of the objects that it gets.
        setters = graph.setters()
        if len(setters) > _MOST_SETTERS:
            raise TooManyError
        matches |= {path for path in set(files_with((*_COMPUTING, *sorted(setters)))) - known if _has_word(path, words)}
        new = sorted(matches)
        if len(new) > _MOST_FILES:
            # The others have no name of a setting, and none that is computed.
            new = [path for path in new if path in imported or _has_word(path, words)]
        if not new:
            return _checked(graph)
        _add(graph, modules, new, known)
    raise TooManyError


def _checked(graph: Graph) -> Graph:
    """Return a graph whose code does not get functions by computed names. Raises TooManyError.

    Code that does, and code that sets attributes so, may be in different files; tests call for themselves.
    """
    modules = {
        one.module.path: one.module for one in graph.definitions if "test" not in os.path.basename(one.module.path)
    }
    if any(map(sets_computed_names, modules.values())) and any(map(gets_computed_functions, modules.values())):
        raise TooManyError
    return graph


def _users(graph: Graph, names: Collection[str], files_with: Callable[[Collection[str]], Iterable[str]]) -> set[str]:
    """Return the files that may use some names; short ones are words of any code, unless it names their module."""
    names = [name for name in names if not name.startswith("test")]
    short = [name for name in names if "_" not in name.strip("_")]
    result = set(files_with(sorted(set(names) - set(short))))
    if short:
        stems = {_stem(one.module.path) for one in graph.definitions if not one.names.isdisjoint(short)}
        both = set(files_with(short)) & set(files_with(sorted(stems)))
        required = [{word.encode() for word in words} for words in (short, stems)]
        result |= {path for path in both - result if all(_has_word(path, words) for words in required)}
    return result


def _stem(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == "__init__.py" else name.removesuffix(".py")


def _add(graph: Graph, modules: Modules, paths: Iterable[str], known: set[str]) -> None:
    for path in paths:
        if path not in known and (module := modules.read(path)) is not None:
            graph.add(module)
        known.add(path)


def _has_word(path: str, words: Collection[bytes]) -> bool:
    try:
        return not set(words).isdisjoint(_WORD.findall(read_bytes(path, _MOST_BYTES)))
    except OSError:
        return False

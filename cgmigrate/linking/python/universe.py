"""The modules of a checkout that may set, read or pass on the settings of some functions, matches by their words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from cgmigrate.linking.python.definitions import Definition, Graph
from cgmigrate.linking.python.modules import Modules
from cgmigrate.linking.python.world import SETTINGS
from cgmigrate.text.files import read_bytes

_MOST_BYTES = 1024 * 1024
_MOST_ROUNDS = 6
_WORDS = (*sorted(SETTINGS), "setattr", "getattr", "vars", "__dict__", "eval", "exec")
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
            return graph
        leading = [name for name in graph.leading_to(names) if not name.startswith("test") and "_" in name.strip("_")]
        matches = set(files_with(leading)) - known
        words = {word.encode() for word in (*_WORDS, *graph.setters())}
        imported = {
            path for one in list(known) if (module := modules.read(one)) for path in modules.files_imported(module)
        }
        new = [path for path in sorted(matches) if path in imported or _has_word(path, words)]
        if not new:
            return graph
        _add(graph, modules, new, known)
    raise TooManyError


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

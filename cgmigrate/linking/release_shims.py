"""Code that is written for several releases of megatron-core: it tests which names of the settings exist.

Such code is a ``try`` that imports a class of the new scopes, or a condition on the release with the new names in it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator

from cgmigrate.documents.python.name_resolution import MODULE_CLASS
from cgmigrate.documents.python.nodes import walk, words_of
from cgmigrate.documents.python.release_checks import caught_for_releases, release_check_in
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.python.values import INFERENCE_CLASS
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.file_search import FileSearch
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import read_bytes

_NEW_CLASSES = frozenset((MODULE_CLASS, INFERENCE_CLASS))


def release_shim(search: FileSearch, sources: Iterable[tuple[str, bytes]], catalogue: Catalogue) -> str:
    """Return the place of code that is written for several releases, empty if there is none.

    ``sources`` are Python files that the run has read.
    """
    names = sorted((catalogue.newer_names & catalogue.captures) | _NEW_CLASSES)
    texts = dict(sources)
    for path in sorted({*texts, *search.tracked(names, "*.py")}):
        if not is_part_of_megatron(os.path.abspath(path)) and (
            line := _shim_in(path, texts.get(path), catalogue, names)
        ):
            return f"{path}:{line}"
    return ""


def _shim_in(path: str, data: bytes | None, catalogue: Catalogue, names: list[str]) -> int:
    """Return the first line of a file that is written for several releases, 0 if there is none."""
    try:
        text, _ = decode(read_bytes(path) if data is None else data)
        if not any(name in text for name in names):
            return 0
        source = PythonSource(text, catalogue)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return 0
    return min(_shims(source, frozenset(names)), default=0)


def _shims(source: PythonSource, names: frozenset[str]) -> Iterator[int]:
    for node in source.walk():
        match node:
            case ast.Try(body=body):
                is_shim = _names_one(names, body) and bool(caught_for_releases(node, source.catalogue))
            case ast.If(test=test) | ast.IfExp(test=test):
                checks = release_check_in(test, source.catalogue) and not _is_in_all(test, source.catalogue, names)
                is_shim = bool(checks) and _names_one(names, [node])
            case _:
                continue
        if is_shim:
            yield node.lineno


def _is_in_all(test: ast.expr, catalogue: Catalogue, names: frozenset[str]) -> bool:
    """Return whether a test is for a setting that the last release of the old names has, too: `cuda_graph_impl`."""
    match test:
        case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=str() as name)]):
            return name in catalogue.captures - catalogue.deprecated - names
    return False


def _names_one(names: frozenset[str], nodes: Iterable[ast.AST]) -> bool:
    """Return whether code has one of some names: of a setting, an attribute, an import, or a text."""
    return any(word in names for node in nodes for part in walk(node) for word in words_of(part))

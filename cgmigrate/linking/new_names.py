"""Code that gives a setting with a new name a value beside all keys of a mapping: ``Config(new=value, **mapping)``.

Once the mapping has that key, too, the call fails.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cgmigrate.documents.python.source import PythonSource
from cgmigrate.megatron.catalogue import Catalogue


def new_names(catalogue: Catalogue) -> frozenset[str]:
    """Return the names that take the place of deprecated ones."""
    return catalogue.captures - catalogue.deprecated


def new_names_set(text: str, catalogue: Catalogue) -> Iterator[tuple[str, int]]:
    """Yield the new names that Python text gives to calls beside the keys of a mapping, each with the line."""
    names = new_names(catalogue)
    if not any(name in text for name in names):
        return
    try:
        source = PythonSource(text, catalogue)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in source.walk():
        if isinstance(node, ast.Call) and any(keyword.arg is None for keyword in node.keywords):
            yield from ((one.arg, one.lineno) for one in node.keywords if one.arg in names)

"""Code that sets or tests settings by itself, beside the code that copies them from a mapping.

Such code may override what is copied, or be overridden by it; which of them counts may change with the names.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Mapping

from cgmigrate.documents.python.key_copies import KeyCopier, copy_reader
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.linking.name_reads import name_set
from cgmigrate.linking.name_texts import names_in_texts
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import MAX_GENERATED, read_bytes

_CHANGES = ("replace", "_replace", "evolve", "update", "merge")
"""Functions that change what an object or mapping has."""


def first_write(
    paths: Collection[str],
    texts: Mapping[str, bytes],
    catalogue: Catalogue,
    copiers: Mapping[str, Collection[KeyCopier]],
) -> str:
    """Return the first place that sets a captured setting which code may copy as well, empty if there is none.

    ``copiers`` are the code that copies keys, by its file. Attributes and keys count, and new names in these files or
    on a line with the last key of a mapping that is copied. Tests and megatron-core itself do not count.
    """
    keys = {one.keys[-1] for of_file in copiers.values() for one in of_file if one.keys}
    for path in sorted({*paths, *copiers}):
        is_other = "test" in os.path.relpath(path) or is_part_of_megatron(os.path.abspath(path))
        if is_other and path not in copiers:
            continue
        try:
            source = PythonSource(
                decode(texts[path] if path in texts else read_bytes(path, MAX_GENERATED))[0], catalogue
            )
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        lines = source.text.split("\n")
        for is_set, line in _writes(source):
            if is_set or path in copiers or any(key in lines[line - 1] for key in keys):
                return f"{path}:{line}"
    return ""


def _writes(source: PythonSource) -> Iterator[tuple[bool, int]]:
    """Yield the line of each place that sets a captured setting, and of other code with a new name.

    The first value is false for the latter.
    """
    copied = {id(node) for copier in copy_reader(source).collected() for node in copier.nodes()}
    names, new = source.catalogue.captures, source.catalogue.captures - source.catalogue.deprecated
    for node in source.walk():
        if id(node) in copied:
            continue
        if _item_set(node, names) in names or name_set(node, source) in names:
            yield True, getattr(node, "lineno", 0)
        elif in_text := next(names_in_texts(node, source, names), None):
            yield True, in_text[1]
        elif isinstance(node, ast.Dict):
            if any(isinstance(key, ast.Constant) and key.value in names for key in node.keys):
                yield True, node.lineno
        elif isinstance(node, ast.Constant) and node.value in new and not isinstance(source.parent(node), ast.Expr):
            yield False, node.lineno


def _item_set(node: ast.AST, names: Collection[str]) -> object:
    """Return the key of an item that a node sets or deletes, or the name that a call sets; None if it sets none."""
    match node:
        case ast.Call(func=func, keywords=keywords) if dotted(func).rpartition(".")[2] in _CHANGES:
            return next((keyword.arg for keyword in keywords if keyword.arg in names), None)
        case ast.Subscript(slice=ast.Constant(value=name), ctx=ast.Store() | ast.Del()):
            return name
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), _]):
            return name
    return None

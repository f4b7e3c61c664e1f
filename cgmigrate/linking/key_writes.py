"""Code that sets or tests settings by itself, beside the code that copies them from a mapping.

Such code may override what is copied, or be overridden by it; which of them counts may change with the names.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from cgmigrate.documents.python.key_copies import KeyCopier, copiers_in
from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import MAX_GENERATED, read_bytes


@dataclass(frozen=True, slots=True)
class Copiers:
    """The code that copies keys, by its file."""

    by_path: Mapping[str, Collection[KeyCopier]]

    @property
    def targets(self) -> set[str]:
        """The last names of what gets the values."""
        return {one.target.rpartition(".")[2] for of_file in self.by_path.values() for one in of_file}

    @property
    def keys(self) -> set[str]:
        """The last keys of the mappings."""
        return {one.keys[-1] for of_file in self.by_path.values() for one in of_file if one.keys}


def first_write(paths: Collection[str], texts: Mapping[str, bytes], catalogue: Catalogue, copiers: Copiers) -> str:
    """Return the first place that sets a captured setting which code may copy as well, empty if there is none.

    In the files of the copiers every object counts, and every new name; in others objects with the name of a target,
    mappings, and new names on a line with the last key of a mapping that is copied. Tests do not count.
    """
    for path in sorted({*paths, *copiers.by_path}):
        if "test" in os.path.relpath(path) and path not in copiers.by_path:
            continue
        try:
            source = Source(decode(texts[path] if path in texts else read_bytes(path, MAX_GENERATED))[0], catalogue)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        lines = source.text.split("\n")
        for owner, line in _writes(source):
            is_named = owner == "?" and any(key in lines[line - 1] for key in copiers.keys)
            if path in copiers.by_path or is_named or not owner or owner in copiers.targets:
                return f"{path}:{line}"
    return ""


def _writes(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the last name of each object whose setting is set, empty for a mapping, with the line.

    It is ``?`` for other code with a new name.
    """
    copied = {id(node) for copier in copiers_in(source) for node in copier.nodes()}
    names, new = source.catalogue.captures, source.catalogue.captures - source.catalogue.deprecated
    for node in source.walk():
        if id(node) in copied:
            continue
        match node:
            case ast.Attribute(value=owner, attr=name, ctx=ast.Store()) if name in names:
                yield dotted(owner).rpartition(".")[2] or "?", node.lineno
            case ast.Subscript(slice=ast.Constant(value=name), ctx=ast.Store() | ast.Del()) if name in names:
                yield "", node.lineno
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=name), _]) if name in names:
                yield dotted(owner).rpartition(".")[2] or "?", node.lineno
            case ast.Dict(keys=keys) if any(isinstance(key, ast.Constant) and key.value in names for key in keys):
                yield "", node.lineno
            case ast.Constant(value=name) if name in new and not isinstance(source.parent(node), ast.Expr):
                yield "?", node.lineno

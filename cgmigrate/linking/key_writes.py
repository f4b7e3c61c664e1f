"""Code that sets settings by itself, beside the code that copies them from a mapping.

Such code may override what is copied, or be overridden by it; which of them counts may change with the names.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Mapping

from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import MAX_GENERATED, read_bytes


def first_write(
    paths: Collection[str], texts: Mapping[str, bytes], catalogue: Catalogue, copiers: Mapping[str, Collection[str]]
) -> str:
    """Return the first place that sets a captured setting which code may copy as well, empty if there is none.

    ``copiers`` are the files that copy keys, each with the last names of its targets. In these files every object
    counts; in others objects with such a name, and mappings. Tests do not count.
    """
    targets = {name for of_file in copiers.values() for name in of_file}
    for path in sorted({*paths, *copiers}):
        if "test" in os.path.relpath(path) and path not in copiers:
            continue
        try:
            source = Source(decode(texts[path] if path in texts else read_bytes(path, MAX_GENERATED))[0], catalogue)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        for owner, line in _writes(source):
            if path in copiers or not owner or owner in targets:
                return f"{path}:{line}"
    return ""


def writes_pattern(catalogue: Catalogue) -> str:
    """Return the extended regular expression of a line that may set a captured setting."""
    names = "|".join(sorted(catalogue.captures))
    named = rf"[.]({names})|\[[\"']({names})[\"']\]"
    return rf"({named})[[:blank:]]*=([^=]|$)|setattr\([^)]*[\"']({names})[\"']"


def _writes(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the last name of each object whose setting is set, empty for a mapping, with the line."""
    from cgmigrate.documents.python.key_copies import copiers_in

    copied = {id(node) for copier in copiers_in(source) for node in copier.nodes()}
    names = source.catalogue.captures
    for node in source.walk():
        if id(node) in copied:
            continue
        match node:
            case ast.Attribute(value=owner, attr=name, ctx=ast.Store()) if name in names:
                yield dotted(owner).rpartition(".")[2] or "?", node.lineno
            case ast.Subscript(slice=ast.Constant(value=name), ctx=ast.Store()) if name in names:
                yield "", node.lineno
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=name), _]) if name in names:
                yield dotted(owner).rpartition(".")[2] or "?", node.lineno

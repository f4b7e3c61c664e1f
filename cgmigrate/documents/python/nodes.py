"""The nodes of Python code."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from weakref import WeakKeyDictionary, WeakValueDictionary

_TREES: WeakValueDictionary[str | bytes, ast.Module] = WeakValueDictionary()
"""The trees of texts, as long as something has them."""
_BELOW: WeakKeyDictionary[ast.AST, tuple[ast.AST, ...]] = WeakKeyDictionary()
"""The nodes below modules and statements: the same ones are walked for many questions."""


def parse(text: str | bytes) -> ast.Module:
    """Return the tree of a file. Raises SyntaxError or ValueError, RecursionError or MemoryError."""
    tree = _TREES.get(text)
    if tree is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the file are for its author
            tree = _TREES[text] = ast.parse(text)
    return tree


@lru_cache(1)
def parsed(text: str | bytes) -> ast.Module | None:
    """Return the tree of a file, None for text that Python does not parse."""
    try:
        return parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """Return a node and all below it in the order of `ast.walk`, which walks each time. No tree changes after this."""
    if not isinstance(root, ast.stmt | ast.mod):
        return chain((root,), _below(root))
    below = _BELOW.get(root)
    if below is None:
        # Without the node itself: it would never be forgotten.
        below = _BELOW[root] = tuple(_below(root))
    return chain((root,), below)


def _below(root: ast.AST) -> list[ast.AST]:
    nodes = [root]
    for node in nodes:
        parts = node.__dict__
        for name in node._fields:
            part = parts.get(name)
            if isinstance(part, list):
                nodes += [one for one in part if isinstance(one, ast.AST)]
            elif isinstance(part, ast.AST):
                nodes.append(part)
    return nodes[1:]


def parents_in(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """Return the node above each node below another."""
    return {below: node for node in walk(root) for below in ast.iter_child_nodes(node)}


def words_of(node: ast.AST) -> Iterator[str]:
    """Yield the words that a node itself names: in code, or as a text that may be a key."""
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.alias(name=word):
            yield word
        case ast.keyword(arg=str() as word) | ast.FunctionDef(name=word) | ast.Constant(value=str() as word):
            yield word


def imported_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the modules that code may import, wherever it does; ``.common`` is relative."""
    for node in walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=name, names=names, level=level):
                source = "." * level + (name or "")
                yield source
                yield from (f"{source}.{alias.name}" if name else f"{source}{alias.name}" for alias in names)

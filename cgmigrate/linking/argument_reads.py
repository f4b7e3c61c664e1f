"""Code that reads or sets settings of parsed arguments: ``args.enable_cuda_graph``, or ``getattr(args, name)``.

A flag that is written under its new name leaves the old attribute at its default. Code that still reads it takes
another branch then, without an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import last_name
from cgmigrate.text.files import read_bytes

_MOST_BYTES = 1024 * 1024
_ARGUMENTS = re.compile(r"(.*_)?(args|arguments|namespace|opts?|options|flags)", re.IGNORECASE)
"""What code names parsed arguments, and functions that return them."""
_CLASS = "Namespace"


def arguments_read(path: str, names: Collection[str]) -> Mapping[str, int]:
    """Return those of some settings that a file reads or sets in parsed arguments, each with its first line.

    A file that cannot be read has none.
    """
    try:
        tree = ast.parse(read_bytes(path, _MOST_BYTES).decode("utf-8", "replace"))
        nodes = list(walk(tree))
        bound = frozenset(_bound(nodes))
        lines: dict[str, int] = {}
        for name, line in _uses(nodes, bound):
            if name in names:
                lines[name] = min(line, lines.get(name, line))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return lines


def _bound(nodes: Collection[ast.AST]) -> Iterator[str]:
    """Yield the names that code binds to parsed arguments."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=ast.Call() as value) if _is_arguments(value, ()):
                yield from map(last_name, targets)
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if last_name(annotation) == _CLASS:
                yield name


def _is_arguments(node: ast.expr, bound: Collection[str]) -> bool:
    """Return whether an expression is parsed arguments, or a dict of them, as far as names show."""
    match node:
        case ast.Call(func=ast.Name(id="vars"), args=[inner]) | ast.Attribute(value=inner, attr="__dict__"):
            return _is_arguments(inner, bound)
        case ast.Call(func=func):
            return _ARGUMENTS.fullmatch(last_name(func)) is not None
        case ast.Subscript(value=inner):
            # `parse_known_args()[0]`
            return isinstance(inner, ast.Call) and _is_arguments(inner, bound)
    name = last_name(node)
    return name in bound or _ARGUMENTS.fullmatch(name) is not None


def _uses(nodes: Collection[ast.AST], bound: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the names that code reads or sets in parsed arguments, each with its line."""
    for node in nodes:
        match node:
            case ast.Attribute(value=owner, attr=name) if _is_arguments(owner, bound):
                yield name, node.lineno
            case ast.Call(func=ast.Name(), args=[owner, ast.Constant(value=str() as name), *_]) if _is_arguments(
                owner, bound
            ):
                yield name, node.lineno
            case (
                ast.Subscript(value=owner, slice=ast.Constant(value=str() as name))
                | ast.Call(func=ast.Attribute(value=owner), args=[ast.Constant(value=str() as name), *_])
                | ast.Compare(left=ast.Constant(value=str() as name), comparators=[owner])
            ) if _is_arguments(owner, bound):
                yield name, node.lineno

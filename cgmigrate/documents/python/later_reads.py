"""Code that reads a boolean which a constructor gets: after a fix of the call, such code reads the default."""

from __future__ import annotations

import ast
from collections.abc import Collection

from cgmigrate.documents.python.site_nodes import Place
from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.megatron.settings import ENABLE, EXTERNAL


def read_of_switch(place: Place, source: Source) -> str:
    """Return which line of the file may read a boolean that a call turns on, empty if none does."""
    names = {item.field for item in place.items if item.field in (ENABLE, EXTERNAL) and item.value is not False}
    if not names:
        return ""
    own = {id(part) for item in place.items for value in item.values for part in ast.walk(value)}
    reads = ((node, _name_read(node, source, names)) for node in source.walk() if id(node) not in own)
    node, name = min(((n, m) for n, m in reads if m), key=lambda read: source.span(read[0]).start, default=(None, ""))
    if node is None:
        return ""
    return f"line {getattr(node, 'lineno', 0)} may read `{name}` of the object, which would be false then"


def _name_read(node: ast.AST, source: Source, names: Collection[str]) -> str:
    """Return which of some names a node reads from an object other than the arguments of a command line."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load(), value=base) if name in names:
            return "" if dotted(base).rpartition(".")[2] == "args" else name
        case ast.MatchClass(kwd_attrs=attributes):
            return next((name for name in attributes if name in names), "")
        case ast.Constant(value=str() as name) if name in names:
            return name if _may_be_read(source.parent(node)) else ""
    return ""


def _may_be_read(above: ast.AST | None) -> bool:
    """Return whether a name as text may be read; ``above`` is what contains it."""
    match above:
        case ast.Call(func=func):
            return dotted(func) not in ("setattr", "delattr", "hasattr")
        case ast.Subscript(ctx=context):
            return isinstance(context, ast.Load)
    # A key of a dict sets, a statement of its own is a docstring.
    return not isinstance(above, (ast.Dict, ast.Expr, ast.JoinedStr))

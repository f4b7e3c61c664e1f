"""Code that sees a setting which a constructor gets: after a fix of the call, it sees the default instead."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from cgmigrate.documents.python.scopes import function_around
from cgmigrate.documents.python.site_nodes import Item, Place
from cgmigrate.documents.python.source import Source, dotted


def read_of_setting(place: Place, source: Source) -> str:
    """Return which line of the file may read a setting of a call, or set it again; empty if none does."""
    names = {item.field for item in place.items if _is_read_as_written(item, source)}
    if not names:
        return ""
    own = {id(part) for item in place.items for value in item.values for part in ast.walk(value)}
    others = names - source.catalogue.captures
    nodes = [node for node in source.walk() if id(node) not in own]
    reads = [(node, name) for node in nodes if (name := _name_read(node, source, names))]
    writes = [(node, name) for node in nodes if (name := _name_set(node, source, others))] if others else []
    node, name = min(
        (*reads, *_in_function(place, writes, source)),
        key=lambda named: source.span(named[0]).start,
        default=(None, ""),
    )
    if node is None:
        return ""
    line = getattr(node, "lineno", 0)
    if (node, name) in writes:
        return f"line {line} may set `{name}` of the object again"
    default = "have its default" if name in others else "be false"
    return f"line {line} may read `{name}` of the object, which would {default} then"


def _is_read_as_written(item: Item, source: Source) -> bool:
    """Return whether the object of a constructor keeps what it gets: the capture model has the other settings."""
    setting = source.catalogue[item.field]
    if not setting.deprecated:
        return False
    return not setting.captures or (setting.is_flag and item.value is not False)


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


def _name_set(node: ast.AST, source: Source, names: Collection[str]) -> str:
    """Return which of some names a node sets or deletes."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if name in names:
            return name
        case ast.Constant(value=str() as name) if name in names:
            above = source.parent(node)
            is_set = isinstance(above, ast.Call) and dotted(above.func) in ("setattr", "delattr")
            return name if is_set else ""
    return ""


_Named = tuple[ast.AST, str]


def _in_function(place: Place, nodes: list[_Named], source: Source) -> Iterator[_Named]:
    """Yield the nodes in the function of a call."""
    function = function_around(source.ancestors(place.items[0].node))
    yield from (named for named in nodes if function_around(source.ancestors(named[0])) is function)

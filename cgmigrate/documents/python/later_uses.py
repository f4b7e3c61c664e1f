"""Code that sees a setting which a constructor gets: after a fix of the call, it sees the default instead."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.scopes import function_around
from cgmigrate.documents.python.site_nodes import Item, Place
from cgmigrate.documents.python.source import Source, dotted


@dataclass(frozen=True, slots=True)
class _Use:
    """A node that reads a setting of an object, or ``sets`` it; ``order`` is that of the text."""

    node: ast.AST
    name: str
    sets: bool
    order: tuple[int, bool, int]


class LaterUses:
    """Decides for the calls of one file; its nodes are read once, since a file may have many calls."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def of_place(self, place: Place) -> str:
        """Return which line of the file may read a setting of a call, or set it again; empty if none does."""
        source = self._source
        names = {item.field for item in place.items if _is_read_as_written(item, source)}
        if not names:
            return ""
        own = {id(part) for item in place.items for value in item.values for part in walk(value)}
        others = names - source.catalogue.captures
        function = function_around(source.ancestors(place.items[0].node))
        uses = [self._reads.get(name, ()) for name in sorted(names)]
        uses += [self._writes.get((id(function), name), ()) for name in sorted(others)]
        firsts = [use for some in uses if (use := next((use for use in some if id(use.node) not in own), None))]
        if not firsts:
            return ""
        first = min(firsts, key=lambda use: use.order)
        line, name = getattr(first.node, "lineno", 0), first.name
        if first.sets:
            return f"line {line} may set `{name}` of the object again"
        default = "have its default" if name in others else "be false"
        return f"line {line} may read `{name}` of the object, which would {default} then"

    @cached_property
    def _reads(self) -> Mapping[str, Sequence[_Use]]:
        """The nodes that read each setting, in the order of the text."""
        source, result = self._source, defaultdict[str, list[_Use]](list)
        for number, node in enumerate(source.walk()):
            for name in _names_read(node, source, source.catalogue.deprecated):
                result[name].append(_Use(node, name, False, (source.span(node).start, False, number)))
        return {name: sorted(uses, key=lambda use: use.order) for name, uses in result.items()}

    @cached_property
    def _writes(self) -> Mapping[tuple[int, str], Sequence[_Use]]:
        """The nodes that set each setting, by the function around them, in the order of the text."""
        source, result = self._source, defaultdict[tuple[int, str], list[_Use]](list)
        for number, node in enumerate(source.walk()):
            if name := _name_set(node, source, source.catalogue.deprecated):
                function = function_around(source.ancestors(node))
                result[id(function), name].append(_Use(node, name, True, (source.span(node).start, True, number)))
        return {key: sorted(uses, key=lambda use: use.order) for key, uses in result.items()}


def _is_read_as_written(item: Item, source: Source) -> bool:
    """Return whether the object of a constructor keeps what it gets: the capture model has the other settings."""
    setting = source.catalogue[item.field]
    if not setting.deprecated:
        return False
    return not setting.captures or (setting.is_flag and item.value is not False)


def _names_read(node: ast.AST, source: Source, names: Collection[str]) -> Sequence[str]:
    """Return which of some names a node reads from an object other than the arguments of a command line."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load(), value=base) if name in names:
            return () if dotted(base).rpartition(".")[2] == "args" else (name,)
        case ast.MatchClass(kwd_attrs=attributes):
            return [name for name in attributes if name in names]
        case ast.Constant(value=str() as name) if name in names:
            return (name,) if _may_be_read(source.parent(node)) else ()
    return ()


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

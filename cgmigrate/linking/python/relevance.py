"""Which code may set or read a setting, or replace an object that has settings: only this code is followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.linking.python.definitions import computed_name

_COPIES = frozenset(("replace", "deepcopy"))
"""Names of code that copies an object."""
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)


@dataclass(slots=True)
class Relevance:
    """Decides by names. ``words`` are the settings and the functions that may set or read them.

    ``holders`` are the attributes that lead to objects with settings (``model`` in ``cfg.model.cuda_graph_scope``).
    """

    words: frozenset[str]
    holders: frozenset[str]
    _known: dict[int, tuple[ast.AST, bool]] = field(default_factory=dict)

    def is_relevant(self, node: ast.AST) -> bool:
        """Return whether code may set or read a setting, or replace an object that has settings."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = (node, any(map(self._names, ast.walk(node))))
        return known[1]

    def _names(self, node: ast.AST) -> bool:
        if computed_name(node):
            return True
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                return name in self.words or name in self.holders
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str() as name):
                return name in self.words or name in _COPIES
            case ast.keyword(arg=name) | ast.alias(name=name) | ast.arg(arg=name):
                return name is None or name in self.words
            case ast.MatchClass(kwd_attrs=names):
                return not self.words.isdisjoint(names)
        return False

    def may_be_skipped(self, node: ast.stmt) -> bool:
        """Return whether a statement of which only a part is executed changes nothing that is followed."""
        return not self.is_relevant(node) and not any(map(_may_not_be_skipped, ast.walk(node)))


def _may_not_be_skipped(node: ast.AST) -> bool:
    """Return whether a node leaves the code around it, or replaces a member of a collection: an object, perhaps."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, (ast.Store, ast.Del))
    return isinstance(node, _LEAVES)


def holders_in(tree: ast.AST, settings: frozenset[str]) -> Iterator[str]:
    """Yield the attributes whose settings code names: ``model`` of ``cfg.model.cuda_graph_scope``."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr=holder), attr=name) if name in settings:
                yield holder
            case ast.Call(args=[ast.Attribute(attr=holder), ast.Constant(value=str() as name), *_]) if name in settings:
                yield holder

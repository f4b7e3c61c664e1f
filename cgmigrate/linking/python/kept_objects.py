"""Attributes in which code keeps objects that it gets: what is read of them may be known under another name.

``def keep(cfg): cfg.target = cfg.model`` names no setting, so it is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.proof.flow.modules import Modules

_PLAIN = (ast.Constant, ast.JoinedStr, ast.Compare)


@dataclass
class KeptObjects:
    """Says in which attributes code of a project keeps objects that it has.

    Code that sets one of ``holders`` is always followed.
    """

    modules: Modules
    files_with: Callable[[Collection[str]], Iterable[str]]
    holders: Collection[str]
    _known: dict[str, bool] = field(default_factory=dict)

    def in_attribute(self, name: str) -> bool:
        """Return whether code that is not followed may keep an object that it has in an attribute with a name."""
        if name not in self._known:
            self._known[name] = name not in self.holders and any(map(self._keeps(name), self.files_with([name])))
        return self._known[name]

    def _keeps(self, name: str) -> Callable[[str], bool]:
        def keeps(path: str) -> bool:
            module = self.modules.read(path)
            return module is None or name in kept_in(module.tree)

        return keeps


@lru_cache(maxsize=16384)
def kept_in(node: ast.AST) -> frozenset[str]:
    """Return the attributes that some code sets to what may be an object that other code has, or have one."""
    return frozenset(_kept_in(node))


def _kept_in(node: ast.AST) -> Iterator[str]:
    for part in walk(node):
        match part:
            case ast.Assign(targets=targets, value=value) if _may_be_known(value):
                yield from (name for target in targets for name in _attributes(target))
            case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _attributes(target) if _may_be_known(value) else ()
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str() as name), value]):
                yield from [name] if _may_be_known(value) else ()
            case ast.For(target=target) | ast.AsyncFor(target=target):
                yield from _attributes(target)
            case ast.withitem(optional_vars=ast.expr() as target):
                yield from _attributes(target)


def _attributes(target: ast.expr) -> Iterator[str]:
    """Yield the attributes that a target sets, or of which it sets an item."""
    for part in walk(target):
        match part:
            case (
                ast.Attribute(attr=str() as name, ctx=ast.Store())
                | ast.Subscript(value=ast.Attribute(attr=str() as name), ctx=ast.Store())
            ):
                yield name


def _may_be_known(value: ast.expr) -> bool:
    """Return whether a value may be an object that other code has: it comes from a name or an attribute."""
    if isinstance(value, _PLAIN):
        return False
    called = {id(part.func) for part in walk(value) if isinstance(part, ast.Call)}
    parts = (part for part in walk(value) if isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in called)
    return any(isinstance(part.ctx, ast.Load) for part in parts)

"""Attributes of Megatron-LM's arguments that were one value and are a list now: what compares them with one value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.read_messages import HolderKind, kind_of
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.megatron.retyped import Listed, became_lists

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_LISTS = (ast.List, ast.Tuple, ast.ListComp)


class RetypedArguments:
    """Finds the comparisons of a file that a list changes."""

    def __init__(self, source: PythonSource, names: Names) -> None:
        self._source = source
        self._is_own = any(module.startswith("megatron.") for module in names.modules)

    def problems(self, node: ast.Compare) -> Iterator[Problem]:
        """Yield the problem of a comparison with one operator, unless the file handles a list as well."""
        if not self._is_own or len(node.ops) != 1:
            return
        for read, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            name = _attribute(read)
            listed = became_lists().get(name)
            if listed is None or name in self._handled:
                continue
            if effect := _effect(node.ops[0], other, listed, is_left=read is node.left):
                release = f"since megatron-core {listed.since}"
                message = f"{release}, `{name}` of the arguments is a list where its flag is written: {effect}"
                yield Problem(ProblemKind.CHANGED_TYPE, self._source.span(node), message, since=listed.since)

    @cached_property
    def _handled(self) -> frozenset[str]:
        """The attributes that the file tests for a list, goes through, takes items of, or sets itself."""
        names: set[str] = set()
        for node in ast.walk(self._source.tree):
            match node:
                case ast.Call(func=ast.Name(id="isinstance" | "type" | "len" | "list"), args=[first, *_]):
                    names.add(_attribute(first))
                case ast.Subscript(value=value) | ast.For(iter=value) | ast.comprehension(iter=value):
                    names.add(_attribute(value))
                case ast.Assign(targets=targets):
                    names.update(map(_attribute, targets))
        return frozenset(names)


def _attribute(node: ast.expr) -> str:
    """Return which attribute of the arguments an expression is, empty for any other."""
    match node:
        case ast.Attribute(value=value, attr=name) if kind_of(value) is HolderKind.ARGS:
            return name
        case ast.Call(func=func, args=[value, ast.Constant(value=str() as name), *_]) if dotted(func) == "getattr":
            return name if kind_of(value) is HolderKind.ARGS else ""
    return ""


def _effect(operator: ast.cmpop, other: ast.expr, listed: Listed, *, is_left: bool) -> str:
    """Return what a comparison does with a list, empty if that is not known; ``is_left`` is where the attribute is."""
    is_one = isinstance(other, ast.Constant) and other.value is not None
    match operator:
        case ast.Eq() | ast.NotEq() if is_one:
            return f"this is {'false' if isinstance(operator, ast.Eq) else 'true'} then, whatever it has"
        case ast.In() | ast.NotIn() if is_left and isinstance(other, (*_LISTS, ast.Set)):
            return f"this is {'false' if isinstance(operator, ast.In) else 'true'} then, whatever it has"
        case ast.In() | ast.NotIn() if not is_left and isinstance(other, ast.Constant):
            is_part = any(str(other.value) in one and other.value != one for one in listed.choices)
            return "`in` compares whole names then, and no longer a part of one" if is_part else ""
    return "this is a TypeError then" if isinstance(operator, _ORDERED) and not isinstance(other, _LISTS) else ""

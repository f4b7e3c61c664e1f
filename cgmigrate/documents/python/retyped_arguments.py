"""Attributes of Megatron-LM's arguments that were one value and are a list now: what compares them with one value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.read_messages import HolderKind, kind_of
from cgmigrate.documents.python.source import PythonSource, last_name
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
            name, kind = _attribute(read)
            listed = became_lists().get(name)
            is_of_config = kind is not HolderKind.ARGS
            if listed is None or name in self._handled or (is_of_config and not listed.is_of_config):
                continue
            if effect := _effect(node.ops[0], other, listed, is_left=read is node.left):
                where = "is a list where its flag is written"
                where = "of a configuration is a list where it comes from a flag" if is_of_config else where
                message = f"since megatron-core {listed.since}, `{name}` {where}: {effect}"
                yield Problem(ProblemKind.CHANGED_TYPE, self._source.span(node), message, since=listed.since)

    @cached_property
    def _handled(self) -> frozenset[str]:
        """The attributes that the file tests for a list, goes through, takes items of, or sets itself."""
        names: set[str] = set()
        for node in ast.walk(self._source.tree):
            match node:
                case ast.Call(func=ast.Name(id="isinstance" | "type" | "len" | "list"), args=[first, *_]):
                    names.add(_attribute(first)[0])
                case ast.Subscript(value=value) | ast.For(iter=value) | ast.comprehension(iter=value):
                    names.add(_attribute(value)[0])
                case ast.Assign(targets=targets):
                    names.update(_attribute(target)[0] for target in targets)
        return frozenset(names)


def _attribute(node: ast.expr) -> tuple[str, HolderKind]:
    """Return which attribute of the arguments or of a configuration an expression is, an empty name for any other."""
    match node:
        case ast.Attribute(value=value, attr=name):
            pass
        case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str() as name), *_]):
            pass
        case _:
            return "", HolderKind.UNKNOWN
    kind = kind_of(value)
    is_known = kind is HolderKind.ARGS or last_name(value).lower().endswith("config")
    return (name, kind) if is_known else ("", HolderKind.UNKNOWN)


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

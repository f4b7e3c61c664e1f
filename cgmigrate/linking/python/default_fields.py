"""Fields of data classes that are settings with plain defaults: what objects of such a class have from the start.

Only a field with an annotation counts: the generated ``__init__`` gives any other one the default of the base.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from cgmigrate.documents.python.source import NOT_LITERAL, dotted, literal_value
from cgmigrate.proof.flow.world import SETTINGS

NO_DEFAULTS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DefaultField:
    """A setting that a class has, with its default."""

    name: str
    value: object
    statement: ast.AnnAssign


@lru_cache(maxsize=16384)
def default_fields(node: ast.ClassDef) -> tuple[DefaultField, ...]:
    """Return the fields of a data class that are settings, as far as their defaults are plain values."""
    if not any(_is_dataclass(one) for one in node.decorator_list):
        return ()
    return tuple(
        DefaultField(one.target.id, value, one)
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id in SETTINGS
        if (value := _default(one.value)) is not NOT_LITERAL
    )


def _is_dataclass(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=function, keywords=keywords):
            return _is_dataclass(function) and not any(one.arg in ("init", None) for one in keywords)
    return dotted(node).rpartition(".")[2] == "dataclass"


def _default(node: ast.expr | None) -> object:
    match node:
        case None:
            return NOT_LITERAL
        case ast.Call(func=function, args=[], keywords=[ast.keyword(arg="default", value=value)]):
            return literal_value(value) if dotted(function).rpartition(".")[2] == "field" else NOT_LITERAL
        case ast.Call(
            func=function,
            args=[],
            keywords=[
                ast.keyword(arg="default_factory", value=ast.Lambda(body=value) | (ast.Name(id="list") as value))
            ],
        ) if dotted(function).rpartition(".")[2] == "field":
            return [] if isinstance(value, ast.Name) else literal_value(value)
    return literal_value(node)

"""Values of settings: from expressions to plain data, and back to text in the style of the file."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from cgmigrate.documents.python.names import MODULE_CLASS, SCOPE_CLASS, Names
from cgmigrate.documents.python.source import dotted
from cgmigrate.settings import ENABLE, EXTERNAL, Undecided

INFERENCE_CLASS = "InferenceCudaGraphScope"
_ENUMS = (SCOPE_CLASS, MODULE_CLASS, INFERENCE_CLASS)


def value_of(name: str, node: ast.expr, names: Names) -> object:
    """The value that a setting gets: text, boolean, None, a list of names, a tuple, or ``Undecided``."""
    match node:
        case ast.Constant(value=bool() | str() | None as plain):
            if name in (ENABLE, EXTERNAL):
                return _boolean(plain)
            return plain
        case ast.Attribute() if member := enum_member(node, names):
            return member
        case ast.List(elts=items) | ast.Tuple(elts=items):
            members = [_item(item, names) for item in items]
            if any(member is None for member in members):
                return Undecided(ast.unparse(node), "a list with an item that is computed when the code runs")
            if {isinstance(item, ast.Constant) for item in items} == {True, False}:
                return Undecided(ast.unparse(node), "a list of text and enum members mixed, which 0.16 and 0.17 refuse")
            return members if isinstance(node, ast.List) else tuple(members)
    return Undecided(ast.unparse(node), "a value that is computed when the code runs")


def enum_member(node: ast.expr, names: Names) -> str:
    """``attn`` for ``CudaGraphScope.attn`` under whatever name the class is imported; empty for all else."""
    if not isinstance(node, ast.Attribute):
        return ""
    return node.attr if enum_class(node.value, names) else ""


def enum_class(node: ast.expr, names: Names) -> str:
    """The class (``CudaGraphScope``) that an expression names, empty when it names none of megatron-core's."""
    written = dotted(node)
    local = written.partition(".")[0]
    if not written or local in names.shadowed or local in names.classes:
        return ""
    full = names.resolve(written)
    last = full.rpartition(".")[2]
    # megatron.core.transformer.enums, or a module that passes its names on.
    return last if last in _ENUMS and full.startswith("megatron.") else ""


def _item(node: ast.expr, names: Names) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return enum_member(node, names) or None


def _boolean(value: object) -> object:
    if isinstance(value, str):
        return Undecided(repr(value), "not a boolean (in Python any text that is not empty counts as true)")
    return bool(value)


def rendered(value: object, quote: str) -> str:
    """A value as Python text."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(rendered(item, quote) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    return repr(value)


def settings_text(settings: Mapping[str, object]) -> str:
    """Settings in one line, for comparing."""
    return ", ".join(f"{name}={value!r}" for name, value in sorted(settings.items()))

"""Values of settings: from expressions to plain data, and back to text in the style of the file."""

from __future__ import annotations

import ast
import re

from cgmigrate.documents.python.name_resolution import MODULE_CLASS, SCOPE_CLASS, Names
from cgmigrate.documents.python.places import guard_of
from cgmigrate.documents.python.source import dotted
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, Choice, Undecided

INFERENCE_CLASS = "InferenceCudaGraphScope"
_ENUMS = (SCOPE_CLASS, MODULE_CLASS, INFERENCE_CLASS)
_NAMES = re.compile(rf"(?<!\w)(?:{'|'.join((*FIELDS, *_ENUMS))})(?!\w)")


def value_of(name: str, node: ast.expr, names: Names) -> object:
    """The value that a setting gets: text, boolean, None, a list of names, a tuple, a ``Choice``, or ``Undecided``."""
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
        case ast.IfExp():
            return _choice(name, node, names)
    return Undecided(ast.unparse(node), "a value that is computed when the code runs")


def branches_of(node: ast.expr) -> list[ast.expr]:
    """The expressions between which a conditional one chooses, in the order of the text."""
    if isinstance(node, ast.IfExp):
        return [*branches_of(node.body), *branches_of(node.orelse)]
    return [node]


def _choice(name: str, node: ast.IfExp, names: Names) -> Choice | Undecided:
    """A conditional expression, where its conditions have nothing to do with the settings."""
    tests = [inner.test for inner in ast.walk(node) if isinstance(inner, ast.IfExp)]
    for test in tests:
        text = ast.unparse(test)
        if guard_of(test):
            return Undecided(ast.unparse(node), f"a value for each of several releases (`{text[:60]}`)")
        uses_enum = any(isinstance(part, ast.expr) and enum_class(part, names) for part in ast.walk(test))
        if uses_enum or _NAMES.search(text):
            return Undecided(ast.unparse(node), f"a condition that reads these settings itself (`{text[:60]}`)")
    branches = branches_of(node)
    values = [value_of(name, branch, names) for branch in branches]
    for branch, value in zip(branches, values, strict=True):
        if isinstance(value, Undecided):
            told = f"a conditional value whose branch `{ast.unparse(branch)[:60]}` is {value.reason}"
            return Undecided(ast.unparse(node), told)
    return Choice(tuple(_texts(node)), tuple(values))


def _texts(node: ast.expr) -> list[str]:
    """What stands before, between and behind the branches."""
    if not isinstance(node, ast.IfExp):
        return ["", ""]
    left, right = _texts(node.body), _texts(node.orelse)
    if isinstance(node.body, ast.IfExp):
        left[0], left[-1] = "(" + left[0], left[-1] + ")"
    return [*left[:-1], f"{left[-1]} if {ast.unparse(node.test)} else {right[0]}", *right[1:]]


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

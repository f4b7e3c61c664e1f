"""Values of settings, from expressions to plain data; members of megatron-core's enum classes."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from cgmigrate.documents.python.name_resolution import MODULE_CLASS, SCOPE_CLASS, Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.release_checks import release_check_in
from cgmigrate.documents.python.source import dotted
from cgmigrate.megatron.catalogue import Catalogue, Setting
from cgmigrate.megatron.settings import Choice, Undecided

INFERENCE_CLASS = "InferenceCudaGraphScope"
COMPUTED = "a value computed at run time"
_ENUMS = (SCOPE_CLASS, MODULE_CLASS, INFERENCE_CLASS)


def plain_value(node: ast.expr, names: Names) -> object:
    """Return the value of any setting as plain data: a constant, a member of an enum class, a list of these."""
    match node:
        case ast.Constant(value=plain):
            return plain
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Attribute() if member := enum_member(node, names):
            return member
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            values = [plain_value(element, names) for element in elements]
            if not any(isinstance(value, Undecided) for value in values):
                return values
    return Undecided(ast.unparse(node), COMPUTED)


@lru_cache(maxsize=8)
def _names_pattern(catalogue: Catalogue) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{catalogue.alternatives()}|{'|'.join(_ENUMS)})(?!\w)")


def value_of(setting: Setting, node: ast.expr, names: Names) -> object:
    """Return the value of a setting: text, boolean, None, a list of names, a tuple, a ``Choice``, or ``Undecided``."""
    match node:
        case ast.Constant(value=bool() | str() | None as plain):
            is_truth = setting.is_flag and (plain is not None or setting.captures)
            return _boolean(plain) if is_truth else plain
        case ast.Attribute() if member := enum_member(node, names):
            return member
        case ast.List() | ast.Tuple():
            return _list_value(node, names)
        case ast.IfExp():
            return _choice(setting, node, names)
    if not setting.captures and not setting.is_flag:
        return plain_value(node, names)
    choice = _truth_of(node, names) if setting.captures and setting.is_flag else None
    return choice or Undecided(ast.unparse(node), COMPUTED)


def _list_value(node: ast.List | ast.Tuple, names: Names) -> object:
    members = [_item(item, names) for item in node.elts]
    if any(member is None for member in members):
        return Undecided(ast.unparse(node), "a list with an item computed at run time")
    if {isinstance(item, ast.Constant) for item in node.elts} == {True, False}:
        return Undecided(ast.unparse(node), "a list that mixes strings and enum members, which 0.16 and 0.17 reject")
    return members if isinstance(node, ast.List) else tuple(members)


def branches_of(node: ast.expr) -> list[ast.expr]:
    """Return the expressions between which a conditional one chooses, in the order of the text."""
    if isinstance(node, ast.IfExp):
        return [*branches_of(node.body), *branches_of(node.orelse)]
    return [node]


def _choice(setting: Setting, node: ast.IfExp, names: Names) -> Choice | Undecided:
    """Return the value of a conditional expression; undecided if its conditions concern the settings."""
    tests = [inner.test for inner in walk(node) if isinstance(inner, ast.IfExp)]
    for test in tests:
        text = ast.unparse(test)
        if release_check_in(test, names.catalogue):
            return Undecided(ast.unparse(node), f"a value for each of several releases (`{text[:60]}`)")
        uses_enum = any(isinstance(part, ast.expr) and enum_class(part, names) for part in walk(test))
        if uses_enum or _asks_settings(test, names):
            return Undecided(ast.unparse(node), f"a condition that reads these settings itself (`{text[:60]}`)")
    branches = branches_of(node)
    values = [value_of(setting, branch, names) for branch in branches]
    for branch, value in zip(branches, values, strict=True):
        if isinstance(value, (Undecided, Choice)):
            why = value.reason if isinstance(value, Undecided) else COMPUTED
            reason = f"a conditional value whose branch `{ast.unparse(branch)[:60]}` is {why}"
            return Undecided(ast.unparse(node), reason)
    return Choice(tuple(_texts(node)), tuple(values))


def _truth_of(node: ast.expr, names: Names) -> Choice | None:
    """Return the value of a flag that code computes: on where the expression is true; None if this asks a setting."""
    text = ast.unparse(node)
    if isinstance(node, (ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Starred)) or "\n" in text:
        return None
    if release_check_in(node, names.catalogue) or _asks_settings(node, names):
        return None
    return Choice(("", f" if {text} else ", ""), (True, False))


def _asks_settings(node: ast.expr, names: Names) -> bool:
    """Return whether an expression names a setting of an object. A parameter or variable of this name is none."""
    pattern = _names_pattern(names.catalogue)
    for part in walk(node):
        match part:
            case ast.Attribute(attr=word) | ast.Constant(value=str() as word) | ast.keyword(arg=str() as word):
                if pattern.search(word):
                    return True
    return False


def _texts(node: ast.expr) -> list[str]:
    """Return the text before, between and behind the branches."""
    if not isinstance(node, ast.IfExp):
        return ["", ""]
    left, right = _texts(node.body), _texts(node.orelse)
    if isinstance(node.body, ast.IfExp):
        left[0], left[-1] = "(" + left[0], left[-1] + ")"
    return [*left[:-1], f"{left[-1]} if {ast.unparse(node.test)} else {right[0]}", *right[1:]]


def enum_member(node: ast.expr, names: Names) -> str:
    """Return ``attn`` for ``CudaGraphScope.attn``, by whatever name the class is imported; empty for all else."""
    if not isinstance(node, ast.Attribute):
        return ""
    return node.attr if enum_class(node.value, names) else ""


def enum_class(node: ast.expr, names: Names) -> str:
    """Return the enum class of megatron-core (``CudaGraphScope``) that an expression names, empty if none."""
    written = dotted(node)
    local = written.partition(".")[0]
    if not written or local in names.shadowed or local in names.classes:
        return ""
    full = names.resolve(written)
    last = full.rpartition(".")[2]
    # megatron.core.transformer.enums, or a module that exports its names.
    return last if last in _ENUMS and full.startswith("megatron.") else ""


def _item(node: ast.expr, names: Names) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return enum_member(node, names) or None


def _boolean(value: object) -> object:
    if isinstance(value, str):
        return Undecided(repr(value), "not a boolean (Python treats any non-empty string as true)")
    return bool(value)

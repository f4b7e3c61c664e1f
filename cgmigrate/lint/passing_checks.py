"""Checks of code that passes settings on: a value that is refused because a list of the project's own lacks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.release_checks import release_check_around
from cgmigrate.documents.python.source import dotted
from cgmigrate.lint.kinds import PassingKind
from cgmigrate.lint.passing_findings import (
    Finding,
    Function,
    functions_of,
    key_read,
    lacking,
    quoted,
    values_assigned,
    values_of,
)
from cgmigrate.lint.passing_types import admitted_by, words_in
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import IMPL, INFERENCE, MODULES, SCOPE

if TYPE_CHECKING:
    from cgmigrate.documents.python import PythonDocument

_CHECKED = (IMPL, INFERENCE, MODULES, SCOPE)
_MAX_STEPS = 4
_UNKNOWN: frozenset[str] = frozenset()


def check_findings(document: PythonDocument, target: Release) -> Iterator[Finding]:
    """Yield the checks in a file that refuse values which a release takes."""
    source = document.source
    assert source is not None
    seen = set[int]()
    for function in functions_of(document):
        for test in _refusing(function):
            if id(test) in seen or release_check_around(test, source):
                continue
            seen.add(id(test))
            if message := _refused(test, function, document, target):
                yield Finding(PassingKind.OWN_LIST, test, message)


def _refused(test: ast.Compare, function: Function, document: PythonDocument, target: Release) -> str:
    """Return what a test refuses and a release takes, empty if it refuses nothing of the kind."""
    name = _setting_of(test.left, _values_read(function))
    if not name:
        return ""
    missing = lacking(_words(test.comparators[0], function, document), values_of(name, target, document.catalogue))
    if not missing:
        return ""
    return f"a list of the project's own refuses {quoted(missing)} as `{name}`, which megatron-core {target} takes"


def _refusing(function: Function) -> Iterator[ast.Compare]:
    """Yield the memberships without which a function raises."""
    for node in walk(function):
        match node:
            case ast.If(test=test, body=body) if any(isinstance(statement, ast.Raise) for statement in body):
                membership = _membership(test, refused=True)
            case ast.Assert(test=test):
                membership = _membership(test, refused=False)
            case _:
                continue
        if membership is not None:
            yield membership


def _membership(test: ast.expr, refused: bool) -> ast.Compare | None:
    """Return the membership on which a test depends: what is no member makes it ``refused``. None for other tests."""
    match test:
        case ast.Compare(ops=[ast.NotIn() | ast.In() as operator]) if isinstance(operator, ast.NotIn) is refused:
            return test
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _membership(inner, not refused)
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp(elt=inner, generators=[_])]) if name == (
            "any" if refused else "all"
        ):
            return _membership(inner, refused)
    return None


def _values_read(function: Function) -> dict[str, str]:
    """Return the variables that hold a setting or one of its values.

    They are parameters of its name, what is read from a mapping, and items of these.
    """
    arguments = function.args
    local = {one.arg: one.arg for one in (*arguments.args, *arguments.kwonlyargs) if one.arg in _CHECKED}
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (key := key_read(value)) in _CHECKED:
                local[name] = key
    return local | _items_read(function, local)


def _items_read(function: Function, local: dict[str, str]) -> dict[str, str]:
    """Return the variables of loops over the values of a setting; one that is that of other loops is not known."""
    loops: dict[str, set[str]] = {}
    for node in walk(function):
        match node:
            case (
                ast.For(target=ast.Name(id=name), iter=items) | ast.comprehension(target=ast.Name(id=name), iter=items)
            ):
                loops.setdefault(name, set()).add(_setting_of(items, local))
    return {name: next(iter(settings)) for name, settings in loops.items() if len(settings) == 1}


def _setting_of(node: ast.expr, local: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return local.get(node.id, "")
    key = key_read(node)
    return key if key in _CHECKED else ""


def _words(node: ast.expr, function: Function, document: PythonDocument, steps: int = _MAX_STEPS) -> frozenset[str]:
    """Return the texts of a list in code, by its name as well; none if they are not known."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            words = words_in(elements)
            return words if len(words) == len(elements) else _UNKNOWN
        case ast.Call(func=func, args=[argument]) if dotted(func).rpartition(".")[2] == "get_args":
            admitted = admitted_by(argument, document)
            return _UNKNOWN if admitted.is_open else admitted.single
        case ast.Call(func=ast.Name(id="frozenset" | "set" | "tuple" | "list"), args=[inner]) if steps:
            return _words(inner, function, document, steps - 1)
        case ast.Name(id=name) if steps:
            values: list[ast.expr | None] = [*values_assigned(function, name)] or [document.definitions.value_of(name)]
            return _words(values[0], function, document, steps - 1) if len(values) == 1 and values[0] else _UNKNOWN
    return _UNKNOWN

"""What code that passes settings on sets: booleans that turn nothing off, warnings that are not so, no tracker."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cgmigrate.documents.python.definitions import DEFINITIONS
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.release_checks import release_check_around
from cgmigrate.documents.python.source import dotted
from cgmigrate.documents.python.statement_order import bodies_of
from cgmigrate.documents.python.use_owners import UseOwners
from cgmigrate.lint.kinds import PassingKind
from cgmigrate.lint.passing_findings import (
    Finding,
    Function,
    functions_of,
    key_read,
    values_assigned,
    works_with_megatron,
)
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, INFERENCE, MODULES, SCOPE

if TYPE_CHECKING:
    from cgmigrate.documents.python import PythonDocument

_BOOLEANS = (ENABLE, EXTERNAL)
_WITHOUT_EFFECT = ("no effect", "be ignored", "is ignored", "are ignored")
_TRACKER = "rng_tracker"


def assignment_findings(document: PythonDocument) -> Iterator[Finding]:
    """Yield what the functions of a file set or say wrongly; of a file without Megatron nothing."""
    source = document.source
    assert source is not None
    if not works_with_megatron(document):
        return
    owners = UseOwners(source, document.names, megatron=True)
    for function in functions_of(document):
        yield from _warnings(function.body, frozenset())
        for assign, target in _own_assignments(function, document):
            if release_check_around(assign, source) or not owners.is_config(target.value):
                continue
            if target.attr in _BOOLEANS and _may_leave_graphs_on(assign.value, target, function):
                text = f"`{target.attr}` turns no graphs off that `{IMPL}` turns on, and `{IMPL}` may be set elsewhere"
                yield Finding(PassingKind.OFF_BY_BOOLEAN, assign, text)
            elif target.attr == IMPL and _is_passed(assign.value, function) and _TRACKER not in document.text:
                text = f"`{IMPL}` is passed on, and nothing in this file turns on the tracker that graphs need"
                yield Finding(PassingKind.WITHOUT_TRACKER, assign, text)


def _own_assignments(function: Function, document: PythonDocument) -> Iterator[tuple[ast.Assign, ast.Attribute]]:
    """Yield the assignments to one attribute in a function, without those of functions inside it."""
    source = document.source
    assert source is not None
    for node in source.walk(function):
        match node:
            case ast.Assign(targets=[ast.Attribute() as target]) if source.function_of(node) is function:
                yield node, target


def _is_passed(value: ast.expr, function: Function) -> bool:
    """Whether a value is read from a mapping by the name of a setting, directly or through a variable."""
    names = (IMPL, *_BOOLEANS)
    values = values_assigned(function, value.id) if isinstance(value, ast.Name) else [value]
    return any(key_read(one) in names for one in values)


def _may_leave_graphs_on(value: ast.expr, target: ast.Attribute, function: Function) -> bool:
    """Whether a boolean may be false for an object whose implementation the function does not set."""
    is_false = isinstance(value, ast.Constant) and value.value is False
    if not (is_false or _is_passed(value, function)):
        return False
    return not any(
        isinstance(node, ast.Attribute) and node.attr == IMPL and not isinstance(node.ctx, ast.Load)
        for node in walk(function)
    ) and not _is_made_in(function, dotted(target.value).partition(".")[0])


def _is_made_in(function: Function, name: str) -> bool:
    """Whether a function makes an object by calling a class."""
    made = (one.func for one in values_assigned(function, name) if isinstance(one, ast.Call))
    return any(dotted(func).rpartition(".")[2][:1].isupper() for func in made)


# --- warnings -----------------------------------------------------------------------------------


def _warnings(block: Sequence[ast.stmt], assigned: frozenset[str]) -> Iterator[Finding]:
    """Yield the warnings of a block that a setting has no effect; ``assigned`` are the fields set before the block."""
    for number, statement in enumerate(block):
        if isinstance(statement, ast.If) and _tests_only_boolean(statement.test):
            later = _fields_set(block[number + 1 :]) if _goes_on(statement.body) else frozenset()
            yield from _untrue_warnings(statement.body, assigned | later)
        # The body of a definition runs at another time.
        for inner in () if isinstance(statement, DEFINITIONS) else bodies_of(statement):
            yield from _warnings(inner, assigned)
        assigned |= _fields_set([statement])


def _fields_set(block: Sequence[ast.stmt]) -> frozenset[str]:
    """Return the fields that statements of one block set, those of blocks inside it aside; a reset sets none."""
    names = set()
    for statement in block:
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=value) if name in (SCOPE, MODULES, INFERENCE):
                is_reset = isinstance(value, ast.List) and not value.elts
                if not is_reset and not (isinstance(value, ast.Constant) and value.value is None):
                    names.add(name)
    return frozenset(names)


def _goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements after a block run after it."""
    return not isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _tests_only_boolean(test: ast.expr) -> bool:
    """Whether a condition asks for a deprecated boolean, and not for the implementation."""
    words = {node.attr for node in walk(test) if isinstance(node, ast.Attribute)}
    words |= {key_read(node) for node in walk(test)} | {node.id for node in walk(test) if isinstance(node, ast.Name)}
    return bool(words & set(_BOOLEANS)) and IMPL not in words


def _untrue_warnings(body: Sequence[ast.stmt], assigned: frozenset[str]) -> Iterator[Finding]:
    """Yield the warnings of a block about fields that stay set."""
    nodes = [node for statement in body for node in walk(statement)]
    if any(isinstance(node, ast.Raise) for node in nodes):
        return
    reset = {node.attr for node in nodes if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)}
    calls = (one.value for one in body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))
    for call in calls:
        text = _text_of(call)
        for name in sorted(assigned - reset) if any(words in text for words in _WITHOUT_EFFECT) else ():
            if name in text:
                said = f"the warning says that `{name}` has no effect, but it is set, and `{IMPL}` may turn graphs on"
                yield Finding(PassingKind.SET_DESPITE_WARNING, call, said)


def _text_of(call: ast.Call) -> str:
    nodes = (node.value for node in walk(call) if isinstance(node, ast.Constant))
    return " ".join(value for value in nodes if isinstance(value, str)).lower()

"""What is found in code that passes settings on, and what all searches for it share."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.python.name_resolution import MEGATRON
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.lint.kinds import PassingKind
from cgmigrate.megatron.acceptance import refusal_of_setting
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import IMPL, INFERENCE, INFERENCE_SCOPES, LAYER_MODULES, MODULES, SCOPE
from cgmigrate.megatron.types import Reader, Rejected

if TYPE_CHECKING:
    from cgmigrate.documents.python import PythonDocument

Function = ast.FunctionDef | ast.AsyncFunctionDef

WRAPPERS = frozenset(("NotRequired", "Required", "ReadOnly", "Annotated", "Optional", "Final", "ClassVar"))
"""Types around a type, which say more about the key or field than about its values."""
_WHOLE = ("full_iteration", "full_iteration_inference")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to report at a node."""

    kind: PassingKind
    node: ast.AST
    message: str


def functions_of(document: PythonDocument) -> Iterator[Function]:
    """Yield the functions of a file, the outer ones first."""
    source = document.source
    assert source is not None
    for node in source.walk():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def works_with_megatron(document: PythonDocument) -> bool:
    """Whether a file imports Megatron."""
    return any(module.partition(".")[0] in MEGATRON for module in document.top_level)


def key_read(node: ast.AST) -> str:
    """Return the key that an expression reads from a mapping, empty if it reads none that is written there."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as key)):
            return key
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as key), *_]):
            return key
    return ""


def values_assigned(function: Function, name: str) -> list[ast.expr]:
    """Return the values that a function assigns to a name or to an attribute with dots."""
    return [
        node.value
        for node in walk(function)
        if isinstance(node, ast.Assign) and [dotted(one) for one in node.targets] == [name]
    ]


def values_of(name: str, release: Release, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the values that a release takes, without those that turn graphs off; none if it lacks the setting."""
    if name in (MODULES, SCOPE):
        words = LAYER_MODULES if name == MODULES else (*LAYER_MODULES, *_WHOLE)
        return tuple(word for word in words if _takes(name, word, release))
    choices = INFERENCE_SCOPES if name == INFERENCE else catalogue[name].choices if name == IMPL else ()
    setting = catalogue[name]
    known = (str(one) for one in choices if one != "none")
    return tuple(one for one in known if not refusal_of_setting(setting, one, release, as_flag=False))


def _takes(name: str, word: str, release: Release) -> bool:
    return not isinstance(capture_of({IMPL: "none", name: [word]}, release, Reader.CONFIG), Rejected)


def lacking(words: frozenset[str], expected: tuple[str, ...]) -> list[str]:
    """Return the values that a list lacks. One with less than half of them is no copy of Megatron's list."""
    missing = [one for one in expected if one not in words]
    return missing if 2 * len(missing) <= len(expected) else []


def quoted(words: list[str]) -> str:
    """Return words for a message."""
    return ", ".join(f"`{word}`" for word in words)

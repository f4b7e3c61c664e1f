"""What code of a test reads that cannot be followed: a deprecated setting, or all attributes of an object."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from cgmigrate.documents.python.source import dotted
from cgmigrate.megatron.settings import DEPRECATED, IMPL

_READS_ALL = frozenset(("asdict", "astuple", "vars", "fields", "getmembers"))
"""Functions that read all attributes of an object."""


def reads_settings(nodes: Iterable[ast.AST], function: ast.AST | None) -> bool:
    """Return whether code of a function reads a deprecated setting, or all attributes of an object, or sets one itself.

    A test with such code that cannot be followed stays as it is, so that what it reads has to stay, too. What stands in
    for an object may be used by all code of the test.
    """
    parts = [part for node in nodes for part in ast.walk(node)]
    around = parts if function is None else list(ast.walk(function))
    modules = frozenset(name for part in around for name in _names_of_modules(part))
    return any(map(_is_stand_in, around)) or any(_reads(part) or _reads_all(part, modules) for part in parts)


def _is_stand_in(node: ast.AST) -> bool:
    """Return whether code gives a setting to something: `SimpleNamespace(cuda_graph_scope=[])`."""
    return isinstance(node, ast.keyword) and node.arg in DEPRECATED


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.Call(args=[_, ast.Constant(value=str() as name), *_]):
            return name in DEPRECATED or name == "__dict__"
        case ast.Compare(left=ast.Attribute(attr=name), comparators=[ast.Constant(value="local")]):
            return name == IMPL
        case ast.Constant(value=str() as text):
            # An override: `model.cuda_graph_scope=[]`.
            return any(f"{name}=" in text for name in DEPRECATED)
    return False


def _reads_all(node: ast.AST, modules: frozenset[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in _READS_ALL:
            return not (arguments and dotted(arguments[0]) in modules)
    return False


def _names_of_modules(node: ast.AST) -> Iterator[str]:
    """Yield the names that code gives to modules: their attributes are functions and classes."""
    match node:
        case ast.arg(arg=name, annotation=ast.expr() as annotation) if _is_module_type(annotation):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if _is_module_type(annotation):
            yield name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
            if dotted(function).rpartition(".")[2] == "import_module":
                yield name


def _is_module_type(annotation: ast.expr) -> bool:
    return dotted(annotation).rpartition(".")[2] == "ModuleType"

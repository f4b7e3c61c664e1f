"""Lines of code that set attributes by names that code makes: of its own variables and attributes, or of parts.

A name that a function gets, or that is a key of what it gets, is written elsewhere: in another text, or by a person.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cgmigrate.documents.python.nodes import walk
from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow.modules import Module

DYNAMIC = "setattr()"
"""Stands for such a line among the words of a module."""
WORDS = ("setattr", "delattr", "__setattr__", "__dict__", "vars", "exec", "eval")
"""Words of which one is in each file with such code."""
_ANY = re.compile(rf"\b({'|'.join(WORDS)})\b")
_LISTING = frozenset(
    ("vars", "locals", "globals", "dir", "fields", "__dict__", "__annotations__", "__dataclass_fields__")
)
"""What lists the names of variables or attributes."""
_CUTTING = frozenset(
    ("partition", "rpartition", "split", "rsplit", "removeprefix", "removesuffix", "format", "join", "replace", "strip")
)
"""Methods that make a name of parts, or cut one from a longer one."""
_MAKING = _LISTING | _CUTTING
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def dynamic_lines(module: Module) -> list[int]:
    """Return the lines of a module that set attributes by names that code makes."""
    if not _ANY.search(module.text):
        return []
    texts = module.text.split("\n")
    functions = [one for one in walk(module.tree) if isinstance(one, _FUNCTIONS)]
    functions = [one for one in functions if _ANY.search("\n".join(texts[one.lineno - 1 : one.end_lineno]))]
    return sorted({line for one in (*functions, module.tree) for line in _lines_in(one, of_test=is_test(module.path))})


def _lines_in(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, *, of_test: bool) -> Iterator[int]:
    bound = dict(_bindings(function))
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Name(id="exec" | "eval")):
                yield node.lineno
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[_, name, *_]) if _is_made(name, bound):
                yield node.lineno
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Name(), _]) if of_test:
                # The keys that a helper of tests sets are in their tables.
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="update", value=owner), args=[_]) if _is_table(owner):
                yield node.lineno
            case ast.Subscript(value=owner, slice=name, ctx=ast.Store()) if _is_table(owner) and _is_made(name, bound):
                yield node.lineno


def _bindings(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variables of a function with what they are bound to: a value, or what a loop goes over."""
    for node in walk(function):
        match node:
            case ast.Assign(targets=[target], value=value) | ast.For(target=target, iter=value):
                yield from ((one.id, value) for one in walk(target) if isinstance(one, ast.Name))
            case ast.comprehension(target=target, iter=value):
                yield from ((one.id, value) for one in walk(target) if isinstance(one, ast.Name))


def _is_made(name: ast.expr, bound: dict[str, ast.expr], depth: int = 4) -> bool:
    """Return whether code makes a name of parts, or has it from a list or table of names."""
    match name:
        case ast.JoinedStr() | ast.BinOp() | ast.List() | ast.Tuple() | ast.Dict():
            return True
        case ast.Name(id=variable):
            return depth > 0 and variable in bound and _is_made(bound[variable], bound, depth - 1)
        case ast.Call(func=ast.Name(id=word) | ast.Attribute(attr=word)) | ast.Attribute(attr=word) if word in _MAKING:
            return True
        case (
            ast.Call(func=ast.Name(), args=[first, *_])
            | ast.Call(func=ast.Attribute(value=first))
            | ast.Attribute(value=first)
            | ast.Subscript(value=first)
        ):
            return _is_made(first, bound, depth)
    return False


def _is_table(owner: ast.expr) -> bool:
    match owner:
        case ast.Attribute(attr="__dict__") | ast.Call(func=ast.Name(id="vars")):
            return True
    return False

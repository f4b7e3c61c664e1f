"""Texts that name settings, in whole or in part, and the names of settings that code defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.proof.flow.world import SETTINGS

_SHORTEST = 4
"""The length of a text that counts as a part of the name of a setting."""
_COMMON = frozenset(("cuda", "full", "graph", "model", "enable", "external", "inference", "module", "modules"))
"""Words that are in such names, and in much other code."""
ACCESSES = frozenset(("getattr", "hasattr", "setattr", "delattr"))
_NAME_READERS = frozenset(
    ("vars", "__dict__", "dir", "fields", "asdict", "_asdict", "_fields", "getmembers", "__annotations__", "__name__")
) | frozenset(("get_type_hints", "__slots__", "signature", "locals", "globals", "__members__", "model_dump"))
"""What gives code the names of attributes, fields, members or functions."""
SHOWS = frozenset(("debug", "info", "warning", "warn", "error", "exception", "log", "print", "skip", "fail"))
"""Functions that show what they get."""
HELP = ("help", "description", "epilog")
"""Arguments that are shown to people."""
_CUT = re.compile(r"(?<![\w-])_\w+|\w+_(?![\w-])")
"""A word in a text that begins or ends with an underscore: a pattern or a template goes on there."""


def is_part(text: object) -> bool:
    """Return whether a text is a part of the name of a setting, and no whole one."""
    if not isinstance(text, str) or len(text) < _SHORTEST or text in SETTINGS:
        return False
    spelled = _as_name(text)
    return spelled.strip("_") not in _COMMON and any(spelled in name for name in SETTINGS)


def names_setting(text: object) -> bool:
    """Return whether a text is the name of a setting, a path, list or override with one, or a part of such a name.

    A pattern has a part: ``cuda_graph_(\\w+)``.
    """
    if not isinstance(text, str):
        return False
    return is_part(text) or any(name in _as_name(text) for name in SETTINGS) or any(map(is_part, _CUT.findall(text)))


def _as_name(text: str) -> str:
    """Return a text as code may make a name of it: ``CUDA_GRAPH_SCOPE`` and ``cuda-graph-scope`` may become one."""
    return text.lower().replace("-", "_")


@lru_cache(maxsize=65536)
def texts_of(node: ast.AST) -> frozenset[str]:
    """Return the texts that name settings, as far as code may use them as values.

    The name in ``getattr(model, "cuda_graph_scope")`` is none: code reads it where it is used. Messages are none.
    """
    return frozenset(text for _, text in texts_in(node))


@lru_cache(maxsize=65536)
def reads_names(node: ast.AST) -> bool:
    """Return whether code may use the names of what it has as texts: ``vars(other)``, ``field.name``."""
    return any(
        last_name(part) in _NAME_READERS or (isinstance(part, ast.Attribute) and part.attr == "name")
        for part in walk(node)
    )


def attributes_read(node: ast.AST) -> frozenset[str]:
    """Return the attributes of whose values code uses the names of attributes: ``preset`` of ``vars(self.preset)``."""
    calls = (one for one in walk(node) if isinstance(one, ast.Call) and last_name(one.func) in _NAME_READERS)
    return frozenset(one.attr for call in calls for one in call.args if isinstance(one, ast.Attribute))


@lru_cache(maxsize=65536)
def names_defined_in(node: ast.AST) -> frozenset[str]:
    """Return the names of settings that code defines: fields, attributes, variables, functions and keywords.

    Those of a class are no variables of its methods, and no attributes of other objects.
    """
    parts = [*_of_class(node)] if isinstance(node, ast.ClassDef) else walk(node)
    return frozenset(name for part in parts if (name := _defined(part)) and names_setting(name))


def _of_class(node: ast.ClassDef) -> Iterator[ast.AST]:
    for statement in node.body:
        is_method = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from (one for one in walk(statement) if not is_method or isinstance(one, ast.Attribute))


def _defined(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name
        case ast.Attribute(value=ast.Name(), attr=name, ctx=ast.Store()):
            return name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.keyword(arg=name):
            return name
        case ast.Call(func=ast.Attribute(attr="add_argument"), args=[*_, ast.Constant(value=str() as name)]):
            return name
    return None


def texts_in(node: ast.AST) -> Iterator[tuple[ast.expr | ast.keyword, str]]:
    """Yield what `texts_of` returns, each with its node."""
    names = set[int]()
    for part in walk(node):
        names.update(map(id, _messages(part)))
        match part:
            case ast.Call(func=ast.Name(id=function), args=[_, name, *_]) if function in ACCESSES:
                names.add(id(name))
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=args):
                # These name attributes of what the program gets.
                names.update(map(id, args))
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                yield from ((one, one.arg) for one in keywords if one.arg and names_setting(one.arg))
            case ast.Expr(value=ast.Constant() as text):
                # A docstring.
                names.add(id(text))
            case ast.Constant(value=str() as text) if id(part) not in names and names_setting(text):
                yield part, text


def _messages(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the sentences in what code shows to people: errors, lines of a log, the help of a program."""
    match node:
        case ast.Call(func=function):
            shows = last_name(function) in SHOWS
        case ast.keyword(arg=name):
            shows = name in HELP
        case _:
            shows = isinstance(node, (ast.Raise, ast.Assert))
    yield from (one for one in walk(node) if shows and _is_sentence(one))


def _is_sentence(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return any(map(str.isspace, text.strip()))
    return False


def last_name(node: ast.AST) -> str:
    """Return the last name of what code names: ``names`` for ``self.names``. Empty for other code."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""

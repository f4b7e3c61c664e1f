"""Nodes of Python code that read a key by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from cgmigrate.documents.python.source import PythonSource
from cgmigrate.megatron.catalogue import Catalogue

SPLITS = ("split", "splitlines")
SEARCHES = ("replace", "search", "match", "fullmatch", "sub", "findall", "finditer", "compile", "find", "index")
"""Methods that read the names in a text."""
OPTION_METHOD = "add_argument"
_SETTERS = frozenset(("setattr", "delattr"))
_WORD = re.compile(r"\w+")
_TYPES = frozenset(("bool", "str", "int", "list", "object", "Any"))


def names_read(node: ast.AST, source: PythonSource) -> Iterator[str]:
    """Yield the keys that a node reads, without the path before each."""
    above = source.parent(node)
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) if isinstance(above, ast.ClassDef):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.arg(arg=name):
            yield name
        case ast.Constant(value=str() as text) if above is not None:
            yield from _names_in_string(node, text, above, source)


def _names_in_string(node: ast.Constant, text: str, above: ast.AST, source: PythonSource) -> Iterator[str]:
    name = text.rpartition(".")[2]
    if is_read(node, above, source.catalogue):
        yield name
    if name not in source.catalogue.names:
        if _is_read_as_text(above):
            yield from dict.fromkeys(_WORD.findall(text))
        if "-" in text and _is_option(above):
            yield text.lstrip("-").replace("-", "_")


def is_read(node: ast.Constant, above: ast.AST, catalogue: Catalogue) -> bool:
    """Return whether code reads the key that a string names."""
    match above:
        case ast.Call(func=func):
            return not (isinstance(func, ast.Name) and func.id in _SETTERS)
        case ast.Dict(keys=keys, values=values):
            own = next((value for key, value in zip(keys, values, strict=True) if key is node), None)
            return own is None or _is_no_value(own, node, catalogue)
        case ast.List(elts=members) | ast.Tuple(elts=members) | ast.Set(elts=members):
            # A pair of a name and a value sets the name; a list of names is for code that copies or accepts them.
            return all(isinstance(member, ast.Constant) and isinstance(member.value, str) for member in members)
    # A statement of its own is a docstring.
    return not isinstance(above, (ast.Expr, ast.JoinedStr))


def _is_no_value(value: ast.expr, key: ast.Constant, catalogue: Catalogue) -> bool:
    """Return whether a value of a dict is none of the setting: a type, a schema, or another name for it."""
    match value:
        case ast.Dict() | ast.Lambda():
            return True
        case ast.Name(id=name):
            return name in _TYPES
        case ast.Constant(value=str()):
            setting = catalogue.get(str(key.value).rpartition(".")[2])
            return setting is not None and setting.is_flag
    return False


def _is_read_as_text(above: ast.AST) -> bool:
    """Return whether code looks for a text, or divides it into words."""
    match above:
        case ast.Attribute(attr=method):
            return method in SPLITS
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in SEARCHES
        case ast.Call(func=ast.Name(id="namedtuple")) | ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return True
    return False


def _is_option(above: ast.AST) -> bool:
    """Return whether a string with dashes is an option that code defines."""
    return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == OPTION_METHOD


def option_words(catalogue: Catalogue) -> Collection[str]:
    """Return the deprecated settings as options of a command line, without the dashes before them."""
    return {name.replace("_", "-"): None for name in sorted(catalogue.deprecated)}.keys()

"""Code that looks for a flag among arguments, and options of an own parser: both know the flag by its name."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterator

from cgmigrate.documents.python.source import PythonSource
from cgmigrate.text.remembered import remembered

_FLAG = re.compile(r"--[\w-]+")
_SEARCHES = frozenset(("index", "count", "remove", "find", "startswith", "endswith", "replace", "partition"))
_COMPARISONS = (ast.In, ast.NotIn, ast.Eq, ast.NotEq)
_PARSES = frozenset(("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"))


def search_for_flag(settings: Collection[str], source: PythonSource) -> str:
    """Return which line looks for the flag of one of some settings, or for one that a fix may write instead.

    Empty if no line of the file does.
    """
    for name, node, is_option in _flags(source):
        if not is_option and _concerns(name, settings, source):
            return f"line {node.lineno} looks for `{_shown(node)}`"
    return ""


def _concerns(name: str, settings: Collection[str], source: PythonSource) -> bool:
    return name in settings or not set(settings).isdisjoint(source.catalogue.older_names(name))


def own_option(settings: Collection[str], source: PythonSource) -> str:
    """Return which option of a parser of the file has the flag of one of some settings, empty if none has."""
    for name, node, is_option in _flags(source):
        if name in settings and is_option:
            return f"line {node.lineno} defines `{_shown(node)}` as an option of its own"
    return ""


def _is_searched(above: ast.AST | None) -> bool:
    match above:
        case ast.Compare(ops=ops):
            return any(isinstance(one, _COMPARISONS) for one in ops)
        case ast.Call(func=ast.Attribute(attr=word)):
            return word in _SEARCHES or word.startswith("assert")
    return False


def is_defined(above: ast.AST | None) -> bool:
    """Return whether what is around a string defines an option of a parser."""
    match above:
        case ast.Call(func=ast.Attribute(attr="add_argument" | "add_option")):
            return True
    return False


def goes_to_parser(node: ast.AST, source: PythonSource) -> bool:
    """Return whether a list of arguments is given to a parser at once: `parser.parse_args([...])`."""
    above = source.parent(node)
    call = source.parent(above) if isinstance(above, ast.keyword) else above
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _PARSES


@remembered
def _flags(source: PythonSource) -> list[tuple[str, ast.Constant, bool]]:
    """Return the strings with flags of settings that code looks for or defines: the setting, and whether it defines
    an option.
    """
    return list(_flags_in(source))


def _flags_in(source: PythonSource) -> Iterator[tuple[str, ast.Constant, bool]]:
    for node in source.walk():
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or "--" not in node.value:
            continue
        above = _above(node, source)
        is_option = is_defined(above)
        if is_option or _is_searched(above):
            flags = dict.fromkeys(_FLAG.findall(node.value))
            yield from ((name, node, is_option) for flag in flags if (name := source.catalogue.by_key.get(flag, "")))


def _above(node: ast.AST, source: PythonSource) -> ast.AST | None:
    """Return what is around a string, or around the list that has it."""
    above = source.parent(node)
    while isinstance(above, (ast.List, ast.Tuple, ast.Set)):
        above = source.parent(above)
    return above


def _shown(node: ast.Constant) -> str:
    """Return a text that has a flag as a message shows it."""
    return textwrap.shorten(str(node.value), 60, placeholder="...")

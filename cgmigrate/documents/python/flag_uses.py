"""Code that looks for a flag among arguments, and options of an own parser: both know the flag by its name."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from cgmigrate.documents.python.source import Source

_SEARCHES = frozenset(("index", "count", "remove", "find", "startswith", "endswith", "replace", "partition"))
_COMPARISONS = (ast.In, ast.NotIn, ast.Eq, ast.NotEq)
_PARSES = frozenset(("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"))


def search_for_flag(settings: Collection[str], source: Source) -> str:
    """Return which line looks for the flag of one of some settings, or for one that a fix may write instead.

    Empty if no line of the file does.
    """
    for name, flag, node in _flags(source):
        if name not in settings and set(settings).isdisjoint(source.catalogue.older_names(name)):
            continue
        match source.parent(node):
            case ast.Compare(ops=ops) if any(isinstance(one, _COMPARISONS) for one in ops):
                return f"line {node.lineno} looks for `{flag}`"
            case ast.Call(func=ast.Attribute(attr=word)) if word in _SEARCHES or word.startswith("assert"):
                return f"line {node.lineno} looks for `{flag}`"
    return ""


def own_option(settings: Collection[str], source: Source) -> str:
    """Return which option of a parser of the file has the flag of one of some settings, empty if none has."""
    for name, flag, node in _flags(source):
        match source.parent(node):
            case ast.Call(func=ast.Attribute(attr="add_argument" | "add_option")) if name in settings:
                return f"line {node.lineno} defines `{flag}` as an option of its own"
    return ""


def goes_to_parser(node: ast.AST, source: Source) -> bool:
    """Return whether a list of arguments is given to a parser at once: `parser.parse_args([...])`."""
    above = source.parent(node)
    call = source.parent(above) if isinstance(above, ast.keyword) else above
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _PARSES


def _flags(source: Source) -> list[tuple[str, str, ast.Constant]]:
    """Return the strings that are flags of settings: the setting, the flag, and the node."""
    if source.flags is None:
        source.flags = list(_flags_in(source))
    return source.flags


def _flags_in(source: Source) -> Iterator[tuple[str, str, ast.Constant]]:
    for node in source.walk():
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Constant) and isinstance(text, str) and text.startswith("-"):
            name = source.catalogue.by_key.get(text, "")
            if name:
                yield name, text, node

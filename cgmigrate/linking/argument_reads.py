"""Code that may use settings of parsed arguments: ``args.enable_cuda_graph``, ``getattr(args, name)``, ``vars(args)``.

A flag that is written under its new name leaves the old attribute at its default. Code that still reads it takes
another branch then, without an error.

Code gives parsed arguments many names and copies them. So in code of a program that gets the flag, each name of a
setting counts, but for attributes of configurations and of objects of the project's own (``config.enable_cuda_graph``,
``self.enable_cuda_graph``), and for what code writes into a configuration. In other code only what is named like parsed
arguments does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.documents.python.source import last_name
from cgmigrate.documents.python.use_owners import OTHER_SYSTEMS
from cgmigrate.megatron.settings import SCOPE
from cgmigrate.text.files import text_if_readable

_MOST_BYTES = 1024 * 1024
_ARGUMENTS = re.compile(r"(.*_)?m?args|arguments|namespace|opts?|options|flags", re.IGNORECASE)
"""The name of parsed arguments."""
_PARSES = re.compile(r"(get|parse)_(\w+_)?args")
"""The name of a function that returns them."""
_CONFIGURATION = re.compile(r"self|cls|.*(model|config|cfg|conf|provider)", re.IGNORECASE)
"""The name of an object that is no parsed arguments."""
_MAKES_CONFIGURATION = re.compile(r"[A-Z]\w*(Config|Provider|ModelConfiguration)|replace|override")
_OTHERS = re.compile(rf"^\s*(?:from|import)\s+({'|'.join(sorted(OTHER_SYSTEMS))}|onnxruntime\w*)\b", re.MULTILINE)
"""Imports of systems that have settings of these names, too."""


def arguments_in(path: str, names: Collection[str], *, by_name: bool) -> Mapping[str, int]:
    """Return the settings that a file may use of parsed arguments, each with its first line.

    ``by_name`` are only those of an object that has the name of parsed arguments, or is parsed. Of the scope, which
    arguments lack since 0.18, only what sets it counts. A file that cannot be read as code uses what it names.
    """
    text = text_if_readable(path, _MOST_BYTES)
    if text is None or (_OTHERS.search(text) and "megatron" not in text):
        return {}
    tree = parsed(text)
    if tree is not None:
        return first_lines(_uses_by_name(tree) if by_name else _uses(tree), names)
    words = ((one[0], text.count("\n", 0, one.start()) + 1) for one in re.finditer(r"\w+", text) if one[0] in names)
    return first_lines(words, names)


def first_lines(uses: Iterable[tuple[str, int]], names: Collection[str]) -> dict[str, int]:
    """Return the first line of each of some names."""
    lines: dict[str, int] = {}
    for name, line in uses:
        if name in names:
            lines[name] = min(line, lines.get(name, line))
    return lines


def _uses(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names of settings that code may use of parsed arguments, each with its line."""
    of_configurations = {id(part) for node in walk(tree) for part in _of_configuration(node)}
    for node in walk(tree):
        if id(node) in of_configurations:
            continue
        name, sets = _named(node)
        if name and (sets or name != SCOPE):
            yield name, getattr(node, "lineno", 1)


def _uses_by_name(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names of settings that code uses of what is named like parsed arguments, each with its line."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=owner, attr=name, ctx=context) if _is_arguments(owner):
                if name != SCOPE or not isinstance(context, ast.Load):
                    yield name, node.lineno
            case (
                ast.Call(func=ast.Name(), args=[owner, ast.Constant(value=str() as name), *_])
                | ast.Subscript(value=owner, slice=ast.Constant(value=str() as name))
                | ast.Call(func=ast.Attribute(value=owner), args=[ast.Constant(value=str() as name), *_])
                | ast.Compare(left=ast.Constant(value=str() as name), comparators=[owner])
            ) if name != SCOPE and _is_arguments(owner):
                yield name, node.lineno


def _is_arguments(node: ast.expr) -> bool:
    """Return whether an expression is parsed arguments, or a dict of them, as far as names show."""
    match node:
        case ast.Call(func=ast.Name(id="vars"), args=[inner]) | ast.Attribute(value=inner, attr="__dict__"):
            return _is_arguments(inner)
        case ast.Call(func=func):
            return _PARSES.fullmatch(last_name(func)) is not None
    return _ARGUMENTS.fullmatch(last_name(node)) is not None


def _named(node: ast.AST) -> tuple[str, bool]:
    """Return the name that a node has, empty if it has none, and whether it may set the attribute of that name."""
    match node:
        case ast.Attribute(attr=name, ctx=context):
            return name, not isinstance(context, ast.Load)
        case ast.Constant(value=str() as name) | ast.arg(arg=name):
            return name, False
        case ast.keyword(arg=str() as name):
            return name, True
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name, False
    return "", False


def _of_configuration(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what sets settings of configurations: keywords of what makes one, and attributes.

    What reads one may get the value of a flag: Megatron-LM makes its configurations from the arguments.
    """
    match node:
        case ast.Call(func=func, keywords=keywords) if _MAKES_CONFIGURATION.fullmatch(last_name(func)):
            yield from keywords
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant() as key, *_]) if _CONFIGURATION.fullmatch(
            last_name(owner)
        ):
            yield key
        case ast.Attribute(value=owner, ctx=ast.Store()) if _CONFIGURATION.fullmatch(last_name(owner)):
            yield node
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            yield node

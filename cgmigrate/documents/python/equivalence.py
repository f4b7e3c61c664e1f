"""Equality of a file before and after: everything but the settings of sites must be the same.

Statements without one of the names on their lines are compared as text. Of the others the tree is
compared, without the settings, the words of flag lists, and the imports of the enum classes.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from cgmigrate.documents.python.source import PythonSource
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import LAYER_MODULES

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_ENUMS = ("CudaGraphScope", "CudaGraphModule")
_VALUES = (*LAYER_MODULES, "full", "full_iteration", "full_iteration_inference", "layer", "block")


@lru_cache(maxsize=8)
def _words(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of flags of settings, their values, and overrides."""
    known = [catalogue[name] for name in catalogue.names]
    mapped = [str(new) for setting in known for pair in setting.values for new in pair]
    values = dict.fromkeys((*_VALUES, *(choice for setting in known for choice in setting.choices), *mapped))
    return re.compile(
        rf"(?:{catalogue.alternatives(flags=True)})|[+~]{{0,2}}(?:[\w-]+\.)*(?:{catalogue.alternatives()})=.*|"
        + "|".join(map(re.escape, values)),
        re.DOTALL,
    )


def same_apart_from_settings(before: PythonSource, after: PythonSource) -> bool:
    """Whether two files are the same apart from what edits of sites may change."""
    return _same_body(before.tree.body, before, after.tree.body, after)


def _same_body(left: list[ast.stmt], before: PythonSource, right: list[ast.stmt], after: PythonSource) -> bool:
    ours, theirs = _without_settings(left, before), _without_settings(right, after)
    return len(ours) == len(theirs) and all(
        _same(one, before, other, after) for one, other in zip(ours, theirs, strict=True)
    )


def _without_settings(body: list[ast.stmt], source: PythonSource) -> list[ast.stmt]:
    kept = [node for node in body if not isinstance(node, ast.Pass)]
    return [node for node in kept if not (source.names_setting(node) and _is_setting(node, source.catalogue))]


def _same(one: ast.stmt, before: PythonSource, other: ast.stmt, after: PythonSource) -> bool:
    if not before.names_setting(one) and not after.names_setting(other):
        return before.lines(one) == after.lines(other)
    if not any(getattr(one, name, None) for name in _BLOCKS):
        return _shape(one, before.catalogue) == _shape(other, before.catalogue)
    return _same_compound(one, before, other, after)


def _same_compound(one: ast.stmt, before: PythonSource, other: ast.stmt, after: PythonSource) -> bool:
    """Compare the head of a statement as a tree, its blocks, handlers and cases one by one."""
    if _shape(one, before.catalogue, head=True) != _shape(other, before.catalogue, head=True):
        return False
    return all(_same_body(getattr(one, name, []), before, getattr(other, name, []), after) for name in _BLOCKS)


def _is_setting(node: ast.stmt, catalogue: Catalogue) -> bool:
    """Whether a rewrite may add or delete a statement as a whole."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=attr)]):
            return attr in catalogue.name_set or any(attr in inside for inside in catalogue.in_sections.values())
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), *_])):
            return name in catalogue.name_set
        case ast.ImportFrom(names=names):
            return all(alias.name in _ENUMS for alias in names)
    return False


def _shape(node: object, catalogue: Catalogue, head: bool = False) -> object:
    """Return a tree as plain data without the settings; with ``head`` also without the blocks of a statement."""
    if isinstance(node, list):
        return [_shape(item, catalogue) for item in node]
    if not isinstance(node, ast.AST):
        return (type(node).__name__, repr(node))
    fields: dict[str, object] = {name: getattr(node, name, None) for name in node._fields}
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            fields["elts"] = _without_words(elements, catalogue)
        case ast.Call(args=arguments, keywords=keywords):
            fields["args"] = _without_words(arguments, catalogue)
            fields["keywords"] = [keyword for keyword in keywords if keyword.arg not in catalogue.name_set]
        case ast.Dict(keys=keys, values=values):
            pairs = [
                (key, value)
                for key, value in zip(keys, values, strict=True)
                if not (isinstance(key, ast.Constant) and key.value in catalogue.name_set)
            ]
            fields["keys"], fields["values"] = [key for key, _ in pairs], [value for _, value in pairs]
        case ast.ImportFrom(names=names):
            fields["names"] = [alias for alias in names if alias.name not in _ENUMS]
    kept = [name for name in fields if not (head and name in _BLOCKS)]
    return (type(node).__name__, [(name, _shape(fields[name], catalogue)) for name in kept])


def _without_words(elements: list[ast.expr], catalogue: Catalogue) -> list[ast.expr]:
    """The elements of a list, tuple or call that cannot be flags of settings, their values, or overrides."""
    return [element for element in elements if not _is_word(element, catalogue)]


def _is_word(node: ast.expr, catalogue: Catalogue) -> bool:
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and bool(_words(catalogue).fullmatch(text))

"""Equality of a file before and after: everything but the settings of sites must be the same.

Statements without one of the names on their lines are compared as text. Of the others the tree is
compared, without the settings, the words of flag lists, and the imports of the enum classes.
"""

from __future__ import annotations

import ast
import re

from cgmigrate.documents.python.places import FIELD_SET
from cgmigrate.documents.python.source import Source

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_ENUMS = ("CudaGraphScope", "CudaGraphModule")
_WORDS = re.compile(
    r"--(?:(?:enable|external)-cuda-graph|cuda-graph-(?:scope|impl|modules)|inference-cuda-graph-scope)|"
    r"[+~]{0,2}(?:[\w-]+\.)*(?:(?:enable|external)_cuda_graph|cuda_graph_(?:scope|impl|modules)|"
    r"inference_cuda_graph_scope)=.*|attn|mlp|moe|moe_router|moe_preprocess|mamba|full|full_iteration|"
    r"full_iteration_inference|none|local|transformer_engine|layer|block",
    re.DOTALL,
)


def same_apart_from_settings(before: Source, after: Source) -> bool:
    """Whether two files are the same apart from what edits of sites may change."""
    return _same_body(before.tree.body, before, after.tree.body, after)


def _same_body(left: list[ast.stmt], before: Source, right: list[ast.stmt], after: Source) -> bool:
    ours, theirs = _without_settings(left, before), _without_settings(right, after)
    return len(ours) == len(theirs) and all(
        _same(one, before, other, after) for one, other in zip(ours, theirs, strict=True)
    )


def _without_settings(body: list[ast.stmt], source: Source) -> list[ast.stmt]:
    kept = [node for node in body if not isinstance(node, ast.Pass)]
    return [node for node in kept if not (source.names_setting(node) and _is_setting(node))]


def _same(one: ast.stmt, before: Source, other: ast.stmt, after: Source) -> bool:
    if not before.names_setting(one) and not after.names_setting(other):
        return before.lines(one) == after.lines(other)
    if not any(getattr(one, name, None) for name in _BLOCKS):
        return _shape(one) == _shape(other)
    return _same_compound(one, before, other, after)


def _same_compound(one: ast.AST, before: Source, other: ast.AST, after: Source) -> bool:
    """Compare the head of a statement as a tree, its blocks statement by statement."""
    if _shape(one, head=True) != _shape(other, head=True):
        return False
    for name in _BLOCKS:
        ours, theirs = getattr(one, name, []), getattr(other, name, [])
        if name in ("handlers", "cases"):
            if len(ours) != len(theirs):
                return False
            if not all(_same_compound(a, before, b, after) for a, b in zip(ours, theirs, strict=True)):
                return False
        elif isinstance(ours, list) and not _same_body(ours, before, theirs, after):
            return False
    return True


def _is_setting(node: ast.stmt) -> bool:
    """Whether a rewrite may add or delete a statement as a whole."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=attr)]):
            return attr in FIELD_SET
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), *_])):
            return name in FIELD_SET
        case ast.ImportFrom(names=names):
            return all(alias.name in _ENUMS for alias in names)
    return False


def _shape(node: object, head: bool = False) -> object:
    """Return a tree as plain data without the settings; with ``head`` also without the blocks of a statement."""
    if isinstance(node, list):
        return [_shape(item) for item in node]
    if not isinstance(node, ast.AST):
        return (type(node).__name__, repr(node))
    fields: dict[str, object] = {name: getattr(node, name, None) for name in node._fields}
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            fields["elts"] = _without_words(elements)
        case ast.Call(args=arguments, keywords=keywords):
            fields["args"] = _without_words(arguments)
            fields["keywords"] = [keyword for keyword in keywords if keyword.arg not in FIELD_SET]
        case ast.Dict(keys=keys, values=values):
            pairs = [
                (key, value)
                for key, value in zip(keys, values, strict=True)
                if not (isinstance(key, ast.Constant) and key.value in FIELD_SET)
            ]
            fields["keys"], fields["values"] = [key for key, _ in pairs], [value for _, value in pairs]
        case ast.ImportFrom(names=names):
            fields["names"] = [alias for alias in names if alias.name not in _ENUMS]
    kept = [name for name in fields if not (head and name in _BLOCKS)]
    return (type(node).__name__, [(name, _shape(fields[name])) for name in kept])


def _without_words(elements: list[ast.expr]) -> list[ast.expr]:
    """The elements of a list, tuple or call that cannot be flags of settings, their values, or overrides."""
    return [element for element in elements if not _is_word(element)]


def _is_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_WORDS.fullmatch(node.value))

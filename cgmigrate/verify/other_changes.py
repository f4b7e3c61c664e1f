"""What differs between two files beside the CUDA-graph settings: a form made by hand may change more than these."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cgmigrate.documents.syntax import Syntax
from cgmigrate.megatron.settings import FIELDS

MOST = 5
"""How many changes are named."""
_ABSENT = "not there"


def other_changes(before: str, after: str, syntax: Syntax) -> tuple[str, ...]:
    """Return what differs beside the settings, each as ``name (old, then new)``; empty where nothing does.

    Comments and formatting do not count. Both texts have been read before, so they parse.
    """
    changes = list(_in_python(before, after) if syntax is Syntax.PYTHON else _in_yaml(before, after))
    more = (f"{len(changes) - MOST} more",) if len(changes) > MOST else ()
    return (*changes[:MOST], *more)


def _is_setting(name: str) -> bool:
    return name.partition("=")[0].strip().rpartition(".")[2].lstrip("-+~").replace("-", "_") in FIELDS


def _change(name: str, old: str, new: str) -> str:
    return f"`{name}` ({old}, then {new})"


# --- YAML -------------------------------------------------------------------------------------------------


def _in_yaml(before: str, after: str) -> Iterator[str]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    left, right = list(yaml.compose_all(before, loader)), list(yaml.compose_all(after, loader))
    if len(left) != len(right):
        yield f"the number of documents ({len(left)}, then {len(right)})"
        return
    # Anchors share nodes; a pair of nodes that was compared once says nothing new at its other names.
    seen: set[tuple[int, int]] = set()
    pending: list[tuple[str, Any, Any]] = [("", *pair) for pair in reversed(list(zip(left, right, strict=True)))]
    while pending:
        path, one, other = pending.pop()
        if (id(one), id(other)) in seen:
            continue
        seen.add((id(one), id(other)))
        mine, theirs = _children(one), _children(other)
        if mine is None or theirs is None:
            if not _same_leaf(one, other):
                yield _change(path, _shown(one), _shown(other))
            continue
        names = list(dict.fromkeys([*mine, *theirs]))
        pending += [(f"{path}.{name}".lstrip("."), mine.get(name), theirs.get(name)) for name in reversed(names)]


def _children(node: Any) -> dict[str, Any] | None:
    """What a mapping or a list holds beside settings, by name; None for anything else."""
    if node is None or node.id == "scalar":
        # A mapping that only holds settings is as good as none.
        return {} if node is None else None
    if node.id == "mapping":
        pairs = ((str(key.value), value) for key, value in node.value)
        return {key: value for key, value in pairs if not _is_setting(key)}
    items = [item for item in node.value if not (item.id == "scalar" and _is_setting(item.value))]
    return {str(number): item for number, item in enumerate(items)}


def _same_leaf(one: Any, other: Any) -> bool:
    if one is None or other is None or one.id != other.id:
        return False
    named = [any(name in node.value.replace("-", "_") for name in FIELDS) for node in (one, other)]
    # A command line or an override in a text: its settings are compared as settings.
    return (one.tag, one.value) == (other.tag, other.value) or all(named)


def _shown(node: Any) -> str:
    if node is None:
        return _ABSENT
    if node.id != "scalar":
        return f"a {node.id}"
    return f'"{node.value}"' if node.style in ("'", '"') else str(node.value)


# --- Python -----------------------------------------------------------------------------------------------


def _in_python(before: str, after: str) -> Iterator[str]:
    from cgmigrate.documents.python.equivalence import same_apart_from_settings
    from cgmigrate.documents.python.source import PythonSource

    # Written anew from its tree, a text has neither comments nor a format of its own.
    trees = [ast.parse(before), ast.parse(after)]
    if same_apart_from_settings(*(PythonSource(ast.unparse(tree)) for tree in trees)):
        return
    left, right = (Counter(_named_values(tree)) for tree in trees)
    gone, new = list((left - right).elements()), list((right - left).elements())
    for name in dict.fromkeys(name for name, _ in (*gone, *new)):
        old_values = [value for other, value in gone if other == name] or [_ABSENT]
        new_values = [value for other, value in new if other == name] or [_ABSENT]
        yield _change(name, ", ".join(old_values), ", ".join(new_values))
    if not gone and not new:
        yield "code beside the settings"


def _named_values(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The plain values that have a name: keyword arguments, assignments, entries of dictionaries."""
    for node in ast.walk(tree):
        pairs: list[tuple[str, ast.expr]] = []
        match node:
            case ast.keyword(arg=str(name), value=value):
                pairs = [(name, value)]
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
                pairs = [(ast.unparse(target), value)]
            case ast.Dict(keys=keys, values=values):
                entries = zip(keys, values, strict=True)
                pairs = [(str(key.value), value) for key, value in entries if isinstance(key, ast.Constant)]
        for name, value in pairs:
            if not _is_setting(name) and not any(isinstance(part, (ast.Call, ast.Dict)) for part in ast.walk(value)):
                yield name, ast.unparse(value)

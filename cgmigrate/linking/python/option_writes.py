"""Options of a program that set a recipe under an old name: ``cfg.model.cuda_graph_scope = args.cuda_graph_scope``.

A proof takes options as nobody gives them. A person who gives one would set an object under both names after a fix.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from cgmigrate.documents.python.nodes import walk
from cgmigrate.proof.flow.modules import Module, Modules, is_test
from cgmigrate.proof.flow.world import SETTINGS
from cgmigrate.megatron.settings import DEPRECATED

_OPTIONS = ("args", "options", "opts", "flags", "namespace")
"""How the names of parsed options end."""


def option_write(paths: Iterable[str], modules: Modules, changed: Collection[tuple[str, int]]) -> str:
    """Return the file and line that sets a deprecated setting to an option and stays as it is; empty if none does."""
    for path in paths:
        module = modules.read(path)
        for line in _writes(module) if module is not None and not is_test(path) else ():
            if (path, line) not in changed:
                return f"{path}:{line}"
    return ""


def _writes(module: Module) -> Iterator[int]:
    for node in walk(module.tree):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=value) if name in DEPRECATED:
                if any(map(_is_option, walk(value))):
                    yield node.lineno


def _is_option(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in SETTINGS:
            return name.endswith(_OPTIONS)
    return False

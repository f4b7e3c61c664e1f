"""Programs of Megatron that a file starts: their names show whose the flags beside them are."""

from __future__ import annotations

import ast
import re

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.text.remembered import remembered

PROGRAM = re.compile(r"(?:.*/)?(?:pretrain_\w+|train_rl)\.py|megatron(?:\.\w+)*")
"""Programs that parse their arguments with Megatron-LM's parser; a module follows ``-m``."""
_SCRIPT = re.compile(r"(?:pretrain_\w+|train_rl)\.py(?![\w.])")


@remembered
def names_program(source: PythonSource) -> bool:
    """Return whether a string of a file, other than a docstring, names a script of Megatron."""
    return _SCRIPT.search(source.text) is not None and any(_SCRIPT.search(text) for text in _strings(source.tree))


def _strings(tree: ast.Module) -> list[str]:
    nodes = list(walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in constants if isinstance(node.value, str)]

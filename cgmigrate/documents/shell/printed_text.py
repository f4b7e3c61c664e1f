"""Text that a command prints: for people, or for another command that gets it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.fragments import PRINTERS, SEARCHERS, SUBSHELLS
from cgmigrate.documents.shell.tree import ShellTree

if TYPE_CHECKING:
    from tree_sitter import Node


def is_output_used(node: Node | None, tree: ShellTree) -> bool:
    """Return whether a command gets what the command around a node prints."""
    child, parent = node, node.parent if node is not None else None
    while child is not None and parent is not None:
        if parent.type in SUBSHELLS[1:]:
            return True
        if parent.type == "pipeline" and any(_reads(one, tree) for one in _behind(child, parent)):
            return True
        if parent.type == "function_definition" and _is_substituted(parent, tree):
            return True
        child, parent = parent, parent.parent
    return False


def _behind(child: Node, pipeline: Node) -> list[Node]:
    """Return the commands of a pipeline behind one of them."""
    return [one for one in pipeline.named_children if one.start_byte >= child.end_byte]


def _reads(command: Node, tree: ShellTree) -> bool:
    """Return whether a command does something else with its input than to print or search it."""
    name = command.child_by_field_name("name")
    return name is None or tree.written(name).rpartition("/")[2] not in PRINTERS | SEARCHERS


def _is_substituted(function: Node, tree: ShellTree) -> bool:
    """Return whether the script expands what a function prints: ``$(graphs)``."""
    name = function.child_by_field_name("name")
    written = re.escape(tree.written(name)) if name is not None else "(?!)"
    return re.search(rf"(?:\$\(|`)\s*{written}(?![\w-])", tree.text) is not None

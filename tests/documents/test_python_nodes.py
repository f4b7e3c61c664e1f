"""Nodes of Python code are those of `ast.walk`, in its order, however often they are walked."""

from __future__ import annotations

import ast
import gc
import weakref
from pathlib import Path

import pytest

from cgmigrate.documents.python.nodes import walk
from tests.support.paths import ROOT


@pytest.mark.parametrize("path", sorted((ROOT / "cgmigrate/documents/python").glob("*.py")), ids=lambda path: path.stem)
def test_nodes_are_those_of_ast_in_its_order(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for root in (tree, *tree.body, *(node for one in tree.body for node in ast.iter_child_nodes(one))):
        assert list(walk(root)) == list(walk(root)) == list(ast.walk(root))


def test_what_was_walked_is_forgotten_with_its_tree() -> None:
    tree = ast.parse("def recipe():\n    return 1\n")
    assert len(list(walk(tree))) == len(list(ast.walk(tree)))
    known = weakref.ref(tree)
    del tree
    gc.collect()
    assert known() is None

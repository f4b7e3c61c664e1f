"""Assertions of a package's source, executed alone: whether it accepts a configuration."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace


def assertion_of(path: Path, name: str, names: dict[str, object]) -> Callable[[SimpleNamespace], bool]:
    """Return the only assertion in a file about a name, as a function of ``self``; ``names`` are those that it uses."""
    (node,) = (
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.If) and isinstance(node.body[0], ast.Assert) and name in ast.unparse(node.body[0].test)
    )
    code = compile(ast.Module([node], []), path.name, "exec")

    def accepts(configuration: SimpleNamespace) -> bool:
        try:
            exec(code, names | {"self": configuration})
        except AssertionError:
            return False
        return True

    return accepts


def refuses(path: Path, test: str, text: str, names: dict[str, object], *, without_else: bool = False) -> bool:
    """Return whether the only `if` or `assert` of a file with a test and a text ends with an error.

    ``names`` are those that it uses. ``without_else`` omits what else the `if` does.
    """
    (node,) = (
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.If | ast.Assert) and test in ast.unparse(node.test) and text in ast.unparse(node)
    )
    if isinstance(node, ast.If) and without_else:
        node.orelse = []
    try:
        exec(compile(ast.Module([node], []), path.name, "exec"), dict(names))
    except (AssertionError, ValueError):
        return True
    return False

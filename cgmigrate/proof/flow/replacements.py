"""Functions of the checkout that tests replace by their own: `monkeypatch.setattr(recipes, "base", fake)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.proof.flow.modules import Import
from cgmigrate.proof.flow.names import imported
from cgmigrate.proof.flow.run import FlowRun
from cgmigrate.proof.flow.values import Class, External, Object, PackageModule

PATCHES = ("unittest.mock.patch", "unittest.mock.patch.object")
"""What replaces an attribute as a context manager."""
_WORDS = ("setattr", "patch", "object")
_QUOTED = re.compile(r"[\"']([\w.]+)[\"']")
_MISSING = object()


@dataclass(eq=False, slots=True)
class Replacement:
    """An attribute of a module or a class that a test replaces."""

    owner: PackageModule | Class
    name: str
    value: object
    _before: object = field(default=_MISSING)

    def enter(self, run: FlowRun) -> object:
        """Replace the attribute, and return what it is then."""
        run.is_patched = True
        table, key = self._table(run)
        self._before = table.get(key, _MISSING)
        table[key] = self.value
        return self.value

    def leave(self, run: FlowRun) -> None:
        """Take back what it replaces."""
        table, key = self._table(run)
        table[key] = self._before
        if self._before is _MISSING:
            del table[key]

    def _table(self, run: FlowRun) -> tuple[dict[object, object], object]:
        if isinstance(self.owner, Class):
            return self.owner.made, self.name  # type: ignore[return-value]
        return run.globals, (self.owner.module.path, self.name)  # type: ignore[return-value]


def replacement(run: FlowRun, positional: list[object], named: dict[str, object]) -> Replacement | None:
    """Return what a call of a test replaces, None for what has nothing to do with settings."""
    values = list(positional)
    if values and isinstance(values[0], str):
        module, _, name = values[0].rpartition(".")
        values[:1] = [imported(run, run.module, Import(module)), name]
    match values:
        case [PackageModule() | Class() as owner, str() as name, *rest] if name in run.side.slice.defined:
            value = rest[0] if rest else named.get("new", named.get("side_effect", _MISSING))
            return Replacement(owner, name, _mock(run, name) if value is _MISSING else value)
    return None


def _mock(run: FlowRun, name: str) -> Object:
    made = run.make(run.number(f"stand-in of {name}"))
    made.of = External("unittest.mock.MagicMock")
    return made


def may_replace(text: str, functions: Collection[str]) -> bool:
    """Return whether a text has the name of one of some functions in quotes, as what replaces it has."""
    return any(one.rpartition(".")[2] in functions for one in _QUOTED.findall(text))


def replaces(tree: ast.AST, functions: Collection[str]) -> bool:
    """Return whether code of a test replaces one of some functions."""
    return any(_replaces(node, functions) for node in walk(tree))


def _replaces(node: ast.AST, functions: Collection[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=word) | ast.Name(id=word), args=arguments) if word in _WORDS:
            texts = [one.value for one in arguments[:2] if isinstance(one, ast.Constant)]
            return any(isinstance(one, str) and one.rpartition(".")[2] in functions for one in texts)
    return False

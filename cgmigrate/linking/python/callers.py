"""Which code calls a function, by its name: functions that need no evaluation of their own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.layers import is_layer
from cgmigrate.proof.flow.modules import Module, Modules, is_test
from cgmigrate.linking.python.pieces import AnyFunction, functions_of

FilesWith = Callable[[Collection[str]], Iterable[str]]
"""Returns the files of the project that contain one of some words."""


@dataclass(slots=True)
class _Uses:
    """How code uses a name: in layers only, and only to call it in code that is evaluated."""

    only_in_layers: bool = True
    only_called: bool = True
    count: int = 0


@dataclass(slots=True)
class Callers:
    """The uses of the functions of some files. ``seeds`` are the files whose code is evaluated."""

    modules: Modules
    seeds: Collection[str]
    files_with: FilesWith
    _uses: dict[str, _Uses] = field(default_factory=dict)

    def find(self, names: Collection[str]) -> None:
        """Find the uses of functions with some names."""
        self._uses = {name: _Uses() for name in names}
        if not names:
            return
        for path in dict.fromkeys((*self.seeds, *self.files_with(sorted(names)))):
            module = self.modules.read(path)
            if module is None:
                # What is in it is not known.
                self._uses = {}
                return
            for name, is_layers, is_called in _uses_in(module, self.modules, names):
                uses = self._uses[name]
                uses.count += 1
                uses.only_in_layers = uses.only_in_layers and is_layers
                uses.only_called = uses.only_called and is_called and path in self.seeds

    def only_called(self, name: str) -> bool:
        """Return whether a function is only called, by code that is evaluated."""
        uses = self._uses.get(name)
        return uses is not None and uses.only_called and uses.count > 0

    def is_unused(self, name: str) -> bool:
        """Return whether no code of the project names a function but its own definition."""
        uses = self._uses.get(name)
        return uses is not None and uses.count == 0

    def only_in_layers(self, name: str) -> bool:
        """Return whether only layers use a function. Their configurations were validated."""
        uses = self._uses.get(name)
        return uses is not None and uses.only_in_layers and uses.count > 0


def _uses_in(module: Module, modules: Modules, names: Collection[str]) -> Iterator[tuple[str, bool, bool]]:
    """Yield the uses of names: whether each is in a layer, and whether it is a call."""
    inside: dict[int, bool] = {}
    for _, function, owner in functions_of(module):
        if owner is not None and is_layer(owner, module, modules):
            inside.update((id(part), True) for part in walk(function))
    of_tests = is_test(module.path)
    called = {id(node.func) for node in walk(module.tree) if isinstance(node, ast.Call)}
    for node in walk(module.tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
                yield name, id(node) in inside, id(node) in called
            case ast.Constant(value=str() as name) if name in names and not (of_tests or _is_export(node, module)):
                yield name, False, False
            case ast.alias(name=full, asname=other) if full in names and other not in (None, full):
                yield full, False, False


def _is_export(node: ast.Constant, module: Module) -> bool:
    exports = module.bindings.get("__all__")
    return isinstance(exports, (ast.List, ast.Tuple)) and any(one is node for one in exports.elts)


def is_private(name: str) -> bool:
    """Return whether only the project itself should use a name. Python uses those with two underscores."""
    return name.startswith("_") and not name.startswith("__")


def takes_values(node: AnyFunction) -> bool:
    """Return whether a function has parameters other than ``**keywords``.

    One with these alone is evaluated by itself: code that finds it by a name that it computes, or by its name in a
    file of another language, may give it settings under the old names, which override what it has.
    """
    arguments = node.args
    return bool(arguments.args or arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg)

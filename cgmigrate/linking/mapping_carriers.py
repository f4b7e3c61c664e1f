"""What in the code of a project may carry a mapping of a configuration: variables, parameters, attributes, functions.

A configuration comes from a loader of files, and a mapping in it is reached by the keys that lead to it:
``cfg["model"]``, ``cfg.model``, ``for name, part in cfg.items()``. What gets such a value may carry it, and so may a
parameter to which it is passed, and what a function returns. Attributes and keys are distinguished by name only.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from cgmigrate.documents.python.nodes import parsed
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.value_passing import (
    EVERYWHERE,
    FUNCTIONS,
    LOADED,
    LOADERS,
    RETURNED,
    Argument,
    Carrier,
    Definition,
    FileCode,
    Function,
    parameters,
)
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.remembered import remembered

_DEFINED = re.compile(r"^[ \t]*(?:async def|def|class)[ \t]+(\w+)", re.MULTILINE)


@dataclass
class _Seen:
    """The files that have been looked at, and what they pass on from each carrier: its value, or any value in it."""

    values: defaultdict[Carrier | Argument, set[Carrier | Argument]] = field(default_factory=lambda: defaultdict(set))
    parts: defaultdict[Carrier, set[Carrier | Argument]] = field(default_factory=lambda: defaultdict(set))
    paths: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    """All files that have one of these are in ``paths``."""


@dataclass
class MappingCarriers:
    """The carriers in a project, by the key of the mapping."""

    texts: ProjectTexts

    def names_at(self, keys: tuple[str, ...], path: str, line: int, *, objects: bool) -> frozenset[str]:
        """Return the names that may carry the mapping under some keys, at a line of a file.

        With ``objects``, these are also the names of objects that get its values.
        """
        code = self._code_of(path)
        around = [node for node in code.functions if _is_in(line, node)]
        scopes = {EVERYWHERE, RETURNED, path, *map(code.scope_of, around)}
        names = self._names_by_scope(keys, objects=objects)
        return frozenset(chain.from_iterable(names.get(scope, ()) for scope in scopes))

    @remembered
    def _names_by_scope(self, keys: tuple[str, ...], *, objects: bool) -> dict[str, set[str]]:
        names: dict[str, set[str]] = {}
        for one in self._carriers(keys, objects=objects):
            names.setdefault(one.scope, set()).add(one.name)
        return names

    @remembered
    def _carriers(self, keys: tuple[str, ...], *, objects: bool) -> frozenset[Carrier]:
        """Return what carries the mapping under some keys; without keys, what a loader returns."""
        if not keys:
            return self._spread(frozenset(), {LOADED}, objects=objects)
        named = {*self._parameters_named(keys[-1]), Carrier(EVERYWHERE, keys[-1])}
        return self._spread(self._of_parts(keys[:-1], objects=objects), named, objects=objects)

    @remembered
    def _of_parts(self, keys: tuple[str, ...], *, objects: bool) -> frozenset[Carrier]:
        """Return what carries any value of the mapping under some keys; it is the same for each further key."""
        parts = self._seen(objects=False).parts
        every = {one for whole in self._carriers(keys, objects=False) for one in parts.get(whole, ())}
        return self._spread(frozenset(), every, objects=objects)

    def _spread(
        self, known: Collection[Carrier], new: Collection[Carrier | Argument], *, objects: bool
    ) -> frozenset[Carrier]:
        """Return what is known, and what gets a value from new carriers."""
        seen, every = self._seen(objects=objects), {*known}
        while new := {*self._resolved(new)} - every:
            every |= new
            self._look_at(new, seen, objects=objects)
            new = {one for source in new for one in seen.values.get(source, ())}
        return frozenset(every)

    def _resolved(self, every: Collection[Carrier | Argument]) -> Iterator[Carrier]:
        """Yield carriers, with what stands for the same objects, and the parameters that arguments are."""
        for one in every:
            if isinstance(one, Argument):
                yield from self._parameters(one)
            elif one.name == "self":
                yield from (one, *self._code_of(one.scope.partition(":")[0]).same_object(one.scope))
            else:
                yield one

    @remembered
    def _seen(self, *, objects: bool) -> _Seen:  # noqa: ARG002 (one for each)
        return _Seen()

    def _look_at(self, new: Collection[Carrier], seen: _Seen, *, objects: bool) -> None:
        """Look at the files that may have a carrier."""
        paths = {path for one in new if (path := one.scope.partition(":")[0]).endswith(".py")}
        words = {one.name for one in new if one.scope in (EVERYWHERE, RETURNED)} - {LOADED.name} - seen.words
        words |= {*LOADERS, "hydra"} if LOADED in new else set()
        paths |= {path for path in self.texts.holding(words) if path.endswith(".py")} if words else set()
        seen.words |= words
        for path in paths - seen.paths:
            seen.paths.add(path)
            for one in self._code_of(path).passing(self._own_functions(path) if objects else None):
                (seen.parts if one.is_part else seen.values)[one.source].add(one.target)

    def _parameters_named(self, key: str) -> Iterator[Carrier]:
        """Yield the parameters with the name of a key: `f(**mapping)` gives them its values."""
        for path in self.texts.holding([key]):
            code = self._code_of(path)
            for function in code.functions:
                arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
                yield from (Carrier(code.scope_of(function), key) for one in arguments if one.arg == key)

    @remembered
    def _parameters(self, argument: Argument) -> frozenset[Carrier]:
        """Return the parameters, or fields of a dataclass, to which a call gives an argument."""
        return frozenset(self._parameters_of(argument))

    def _parameters_of(self, argument: Argument) -> Iterator[Carrier]:
        for path, node in self._called(argument.path, argument.callee):
            if (function := _made_by(node)) is not None:
                own = self._code_of(path).scope_of(function)
                yield from (Carrier(own, name) for name in parameters(function, argument.place))
            elif isinstance(node, ast.ClassDef):
                fields = [dotted(one.target) for one in node.body if isinstance(one, ast.AnnAssign)]
                place = argument.place
                taken = [place] if isinstance(place, str) else fields[place : place + 1]
                yield from (Carrier(EVERYWHERE, name) for name in taken)

    def _called(self, path: str, callee: str) -> Iterator[tuple[str, Definition]]:
        """Yield the functions that a name in a file may be: its own, what it imports, and methods of any object."""
        owner, _, name = callee.rpartition(".")
        module = self._code_of(path).imports.get(owner or name, "")
        every = self._defining.get(name, [])
        if not owner and not module:
            every = [path] if path in every else []
        elif module:
            # A package may import it from another of its modules.
            every = [one for one in every if _is_module(one, module)] or (every if self._is_own(module) else [])
        for where in every:
            yield from ((where, node) for node in self._code_of(where).definitions if node.name == name)

    @cached_property
    def _defining(self) -> dict[str, list[str]]:
        """Each name of a function or class → the files that define one."""
        paths: dict[str, list[str]] = {}
        for path in self.texts.holding(("def ", "class ")):
            if path.endswith(".py") and not is_part_of_megatron(path):
                for name in set(_DEFINED.findall(self.texts.text(path))):
                    paths.setdefault(name, []).append(path)
        return paths

    @remembered
    def _own_functions(self, path: str) -> frozenset[str]:
        """Return the functions that a file defines or imports from the project."""
        code = self._code_of(path)
        imported = {name for name, module in code.imports.items() if name[:1].islower() and self._is_own(module)}
        return frozenset(imported.union(node.name for node in code.functions))

    @remembered
    def _is_own(self, module: str) -> bool:
        """Return whether the project has a module, or the package in which it is."""
        ends = (f"{os.sep}{os.path.join(*module.split('.')[:2])}{end}" for end in (".py", os.sep))
        return any(end in path for end in ends for path in self._code)

    @cached_property
    def _code(self) -> frozenset[str]:
        return frozenset(path for paths in self._defining.values() for path in paths)

    @remembered
    def _code_of(self, path: str) -> FileCode:
        is_code = path.endswith(".py") and not is_part_of_megatron(path)
        return FileCode(path, (parsed(self.texts.text(path)) if is_code else None) or ast.Module([], []))


def _is_in(line: int, node: ast.AST) -> bool:
    return bool(getattr(node, "lineno", 0) <= line <= getattr(node, "end_lineno", 0))


def _is_module(path: str, module: str) -> bool:
    """Return whether a file may be a module: the last two parts of its name are those of the path."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return parts[-2:] == module.split(".")[-2:] or ("." not in module and parts[-1:] == [module])


def _made_by(node: Definition) -> Function | None:
    """Return the function that is called: for a class the one that makes its objects."""
    if not isinstance(node, ast.ClassDef):
        return node
    return next((one for one in node.body if isinstance(one, FUNCTIONS) and one.name == "__init__"), None)

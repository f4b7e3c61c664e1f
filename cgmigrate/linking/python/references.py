"""What code uses: the code of the project that its names lead to, and names of which only the text is known."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.proof.flow.modules import IMPORTS_BY_NAME, LOOKUPS, Import, Module, Modules, is_test

_MOST_IMPORTS = 8
_MOST_FOLDERS = 8
"""How far above a test a ``conftest.py`` is looked for."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Code = tuple[ast.AST, Module]
"""Code and its module."""


@dataclass(slots=True)
class Uses:
    """What one piece of code uses itself: code of the project, and names of which only the text is known."""

    code: list[Code] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Those of methods begin with a dot, those of attributes that may be properties with an ``@``, and imported ones
    with ``=``."""
    computes: bool = False
    """Whether it uses code by names that it computes."""


@dataclass(slots=True)
class References:
    """Reads what code uses; each piece is read once."""

    modules: Modules
    _uses: dict[ast.AST, Uses] = field(default_factory=dict)
    _conftests: dict[str, tuple[Module, ...]] = field(default_factory=dict)
    """By the path of the module: each name in a text of a test is looked for in all of them."""

    def of(self, node: ast.AST, module: Module) -> Uses:
        """Return what code of a module uses itself."""
        known = self._uses.get(node)
        if known is None:
            known = self._uses[node] = self._read(node, module)
        return known

    def module_named(self, name: str, module: Module) -> Module | None:
        """Return the module of the checkout that a name at the top of a module is, None if it is none."""
        return self._module(name, module, {})

    def is_module(self, name: str, node: ast.AST, module: Module) -> bool:
        """Return whether a name in some code is a module, also one that code imports by a name that it computes."""
        for part in walk(node):
            match part:
                case ast.Import() | ast.ImportFrom():
                    if any(name in (one.asname, one.name.partition(".")[0]) for one in part.names):
                        return True
                case ast.Assign(targets=[ast.Name(id=local)], value=ast.Call(func=function)) if local == name:
                    return dotted(function).rpartition(".")[2] in IMPORTS_BY_NAME
        match module.bindings.get(name):
            case Import():
                return True
            case ast.Call(func=function):
                return dotted(function).rpartition(".")[2] in IMPORTS_BY_NAME
        return False

    def looks_up(self, node: ast.AST, module: Module) -> bool:
        """Return whether code gets what a module of the checkout has by a name that it computes."""
        parts = list(walk(node))
        local = dict(_imported_in(parts))
        for part in parts:
            match part:
                case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), key, *_]):
                    is_lookup = not isinstance(key, ast.Constant)
                case ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id=name)]):
                    is_lookup = True
                case ast.Attribute(value=ast.Name(id=name), attr="__dict__"):
                    is_lookup = True
                case _:
                    continue
            if is_lookup and self._module(name, module, local) is not None:
                return True
        return False

    def _read(self, node: ast.AST, module: Module) -> Uses:
        uses = Uses()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_test(module.path):
            self._add_fixtures([one.arg for one in walk(node.args) if isinstance(one, ast.arg)], module, uses)
        parts = list(walk(node))
        uses.computes = any(map(_computes, parts))
        local = dict(_imported_in(parts))
        libraries = {name for name, one in {**module.bindings, **local}.items() if self._is_of_library(one, module)}
        libraries.difference_update(_bound_in(parts))
        for part in parts:
            if not (isinstance(part, ast.Call) and _root_of(part.func) in libraries):
                self._add_part(part, module, local, uses)
        if is_test(module.path):
            self._add_members(parts, module, local, uses)
        uses.names = list(dict.fromkeys(uses.names))
        return uses

    def _add_members(self, parts: Sequence[ast.AST], module: Module, local: dict[str, Import], uses: Uses) -> None:
        """Add the functions of the modules that code has as values: `vars(recipes)`, `inspect.getmembers(recipes)`."""
        named = {id(part.value) for part in parts if isinstance(part, ast.Attribute)}
        named |= {id(one) for part in parts if isinstance(part, ast.Call) and _replaces(part) for one in part.args}
        loads = (part for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))
        for name in dict.fromkeys(part.id for part in loads if id(part) not in named):
            if (inner := self._module(name, module, local)) is not None:
                uses.code += [(one, inner) for one in inner.tree.body if isinstance(one, _DEFINITIONS)]

    def _add_part(self, part: ast.AST, module: Module, local: dict[str, Import], uses: Uses) -> None:
        match part:
            case ast.Name(id=name) | ast.arg(arg=name):
                if name in local:
                    self._add_import(local[name], module, 0, uses)
                else:
                    self._add_bound(name, module, 0, uses)
            case (
                ast.Attribute(value=ast.Name(id=owner), attr=name)
                | ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name))
            ) if (inner := self._module(owner, module, local)) is not None:
                self._add_bound(name, inner, 0, uses)
            case ast.Call(func=ast.Attribute(attr=name)):
                uses.names += (name, f".{name}")
            case ast.Attribute(attr=name):
                uses.names.append(f"@{name}")
            case ast.Constant(value=str() as text) if is_test(module.path):
                for word in filter(str.isidentifier, text.split(".")):
                    uses.names += (word, f".{word}")
                    for conftest in self.conftests(module):
                        # The name of a fixture: `usefixtures("model")`.
                        self._add_bound(word, conftest, 0, uses)

    def _add_fixtures(self, names: Sequence[str], module: Module, uses: Uses) -> None:
        """Add the fixtures with some names in the ``conftest.py`` of the folder, and of those above."""
        uses.names += [spelled for name in names for spelled in (name, f".{name}")]
        for conftest in self.conftests(module):
            for name in names:
                self._add_bound(name, conftest, 0, uses)

    def conftests(self, module: Module) -> Sequence[Module]:
        """Return the `conftest.py` of the folder of a module, and of those above."""
        if module.path not in self._conftests:
            self._conftests[module.path] = tuple(self._conftests_around(module))
        return self._conftests[module.path]

    def _conftests_around(self, module: Module) -> Iterator[Module]:
        folder = os.path.dirname(module.path)
        for _ in range(_MOST_FOLDERS):
            conftest = self.modules.read(os.path.join(folder, "conftest.py"))
            if conftest is not None and conftest is not module:
                yield conftest
            folder = os.path.dirname(folder)

    def _module(self, name: str, module: Module, local: dict[str, Import]) -> Module | None:
        """Return the module of the checkout that a name is, None if it is none."""
        match local.get(name, module.bindings.get(name)):
            case Import(module=source, name=""):
                return self.modules.imported(source, module)
            case Import(module=source, name=inner):
                return self.modules.imported(f"{source}.{inner}" if source.strip(".") else f"{source}{inner}", module)
            case ast.Call(func=function, args=[ast.Constant(value=str() as source)]):
                if dotted(function).rpartition(".")[2] in IMPORTS_BY_NAME:
                    return self.modules.imported(source, module)
        return None

    def _is_of_library(self, binding: object, module: Module) -> bool:
        """Return whether a name is imported from the standard library: no method of the project is called on it."""
        if not isinstance(binding, Import) or binding.module.partition(".")[0] not in sys.stdlib_module_names:
            return False
        return self.modules.imported(binding.module, module) is None

    def _add_import(self, imported: Import, module: Module, depth: int, uses: Uses) -> None:
        inner = self.modules.imported(imported.module, module)
        if inner is not None and imported.name:
            self._add_bound(imported.name, inner, depth + 1, uses)
        elif inner is None:
            # It may be a module of the project that is imported by another name.
            uses.names.append(f"={imported.name}")

    def _add_bound(self, name: str, module: Module, depth: int, uses: Uses) -> None:
        """Add what a name is at the top of a module, and of those whose names it imports."""
        if depth > _MOST_IMPORTS:
            uses.computes = True
            return
        match module.bindings.get(name):
            case Import() as imported:
                self._add_import(imported, module, depth, uses)
            case ast.FunctionDef() | ast.ClassDef() | ast.expr() as node:
                uses.code.append((node, module))
            case None if name in module.bindings:
                # It is bound in a way that is not followed, such as by a condition.
                uses.names += (name, f".{name}")
            case None if not hasattr(builtins, name):
                for star in module.stars:
                    if (inner := self.modules.imported(star, module)) is not None:
                        self._add_bound(name, inner, depth + 1, uses)
                if depth:
                    # The module makes it in a way that is not followed.
                    uses.names.append(f"={name}")


def _replaces(call: ast.Call) -> bool:
    """Return whether a call replaces a part of a module, or loads it again: none of its functions is called."""
    return dotted(call.func).rpartition(".")[2] in ("setattr", "delattr", "object", "reload")


def _imported_in(parts: Iterable[ast.AST]) -> Iterator[tuple[str, Import]]:
    """Yield the names that imports among some nodes bind."""
    for part in parts:
        match part:
            case ast.Import(names=names):
                for alias in names:
                    local = alias.asname or alias.name.partition(".")[0]
                    yield local, Import(alias.name if alias.asname else local)
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    yield alias.asname or alias.name, Import("." * level + (module or ""), alias.name)
            case ast.Assign(
                targets=[ast.Name(id=local)],
                value=ast.Call(func=function, args=[ast.Constant(value=str() as name)]),
            ) if dotted(function).rpartition(".")[2] in IMPORTS_BY_NAME:
                yield local, Import(name)


def _bound_in(parts: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that some nodes bind, apart from imports."""
    for part in parts:
        match part:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                yield name


def _root_of(node: ast.expr) -> str:
    """Return the name of which code calls an attribute: ``os`` for ``os.path.join``. Empty if it is no such call."""
    is_attribute = isinstance(node, ast.Attribute)
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if is_attribute and isinstance(node, ast.Name) else ""


def _computes(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]):
            return not isinstance(name, ast.Constant)
        case ast.Call(func=function, args=[ast.Constant(), *_]) if dotted(function).rpartition(".")[2] in LOOKUPS:
            return False
        case ast.Call(func=function):
            return dotted(function).rpartition(".")[2] in LOOKUPS
    return False

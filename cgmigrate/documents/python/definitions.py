"""Definitions of functions and classes in the checkout: what a name leads to, and which settings its body names.

Files are looked up as in ``class_origins``, and read once. The body of any other definition (of an installed
package, behind a computed name) is not read.
"""

from __future__ import annotations

import ast
import os
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from cgmigrate.documents.python.class_origins import MAX_BYTES, MAX_STEPS, module_file
from cgmigrate.documents.python.name_resolution import MEGATRON, Names, names_of, package_of
from cgmigrate.documents.python.nodes import parse, walk, words_of
from cgmigrate.documents.python.source import dotted, line_starts, positions
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.files import read_bytes

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAX_BASES = 4
"""Classes that are followed to their bases."""


@dataclass(frozen=True, slots=True)
class DefinedModule:
    """One file of the checkout: its names, its statements, and the lines that may name a setting."""

    path: str
    names: Names
    lines: tuple[int, ...]
    body: Sequence[ast.stmt] = ()
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    """Those at the top of the file."""

    def value_of(self, name: str) -> ast.expr | None:
        """Return the value of a name that the top of the file assigns once."""
        values = [value for statement in self.body if (value := _value_for(statement, name)) is not None]
        return values[0] if len(values) == 1 else None


class OwnClass(NamedTuple):
    """A class of the checkout: its name, where it is, and whether its fields are reported there."""

    name: str
    place: str
    is_reported: bool


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class of a module; ``examined`` says that it is in the file under examination."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    module: DefinedModule
    examined: bool = False

    def names_setting(self) -> str:
        """Return which setting the body names and where, empty when it names none."""
        lines, catalogue = self.module.lines, self.module.names.catalogue
        at = bisect_left(lines, self.node.lineno)
        if at == len(lines) or lines[at] > (self.node.end_lineno or self.node.lineno):
            return ""
        for node in walk(self.node):
            for word in words_of(node):
                is_text = " " in word.strip()
                if not is_text and catalogue.is_in(word) and any(setting in word for setting in catalogue.names):
                    return f"uses `{word[:60]}` ({self._place(getattr(node, 'lineno', self.node.lineno))})"
        return ""

    def own_class(self, fields: Collection[str]) -> OwnClass | None:
        """Return a class that defines some fields itself, None for any other: it gets them under these names only."""
        if not isinstance(self.node, ast.ClassDef):
            return None
        is_reported = any(module.partition(".")[0] in MEGATRON for module in self.module.names.modules)
        place = self._place(self.node.lineno)
        return OwnClass(self.node.name, place, is_reported) if self.fields.issuperset(fields) else None

    @property
    def fields(self) -> frozenset[str]:
        """The fields and arguments that a class defines itself; none for a function."""
        parts = self.node.body if isinstance(self.node, ast.ClassDef) else []
        names = {ast.unparse(part.target) for part in parts if isinstance(part, ast.AnnAssign)}
        for part in parts:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                names |= {one.arg for one in (*part.args.args, *part.args.kwonlyargs)}
        return frozenset(names)

    def _place(self, line: int) -> str:
        if self.examined:
            return f"line {line}"
        shown = os.path.relpath(self.module.path)
        return f"{os.path.basename(shown) if shown.startswith('..') else shown}:{line}"


@dataclass(slots=True)
class Definitions:
    """The definitions that names of one module lead to."""

    module: DefinedModule
    examined: bool = True
    """Whether the module is the file under examination."""
    _settings: dict[int, str] = field(default_factory=dict)

    def of(self, name: str) -> Definition | None:
        """Return the definition behind a name; None when it is Megatron's or not read."""
        if not name or _is_core(name, self.module):
            return None
        return _definition_of(name, self.module, self.examined)

    def made_by(self, call: ast.Call) -> Definition | None:
        """Return the definition of what a call makes, or copies with ``replace``; None if it is not read."""
        at = self
        for _ in range(MAX_STEPS):
            name = dotted(call.func)
            if at.module.names.resolve(name) != "dataclasses.replace" or not call.args:
                return at.of(name)
            copied = [
                (value, Definitions(module, examined))
                for inner, module, examined in _followed(dotted(call.args[0]), at.module, at.examined)
                if isinstance(value := module.value_of(inner), ast.Call)
            ]
            if not copied:
                break
            call, at = copied[0]
        return None

    def declared_by(self, name: str) -> frozenset[str]:
        """Return the fields that a class and its bases of the checkout define themselves."""
        at, fields = self, frozenset[str]()
        for _ in range(_MAX_BASES):
            definition = at.of(name)
            if definition is None or not isinstance(definition.node, ast.ClassDef):
                break
            fields |= definition.fields
            at = Definitions(definition.module, definition.examined)
            name = next(filter(None, map(dotted, definition.node.bases)), "")
        return fields

    def setting_in(self, definition: Definition) -> str:
        """Return which setting a definition names and where, empty when it names none."""
        key = id(definition.node)
        if key not in self._settings:
            self._settings[key] = definition.names_setting()
        return self._settings[key]

    def why_not_megatrons(self, name: str) -> str:
        """Return why objects of a class may differ from what Megatron's class makes, empty when they do not."""
        module, examined = self.module, self.examined
        for _ in range(_MAX_BASES):
            definition = None if _is_core(name, module) else _definition_of(name, module, examined)
            if definition is None:
                break
            if not isinstance(definition.node, ast.ClassDef):
                return f"`{name}` is a function, and cgmigrate does not follow its result"
            if setting := self.setting_in(definition):
                return f"the class `{definition.node.name}` {setting}, and what it sets from that may change"
            bases = [base for base in map(dotted, definition.node.bases) if base]
            if not bases:
                return f"the class `{definition.node.name}` is not Megatron's"
            module, examined, name = definition.module, definition.examined, bases[0]
        known = module.names.resolve(name).partition(".")[0] in MEGATRON
        known = known and name.partition(".")[0] not in module.names.shadowed
        return "" if known else f"`{name}` is not known as a Megatron class"


def fields_of_class(path: str, folder: str, catalogue: Catalogue) -> frozenset[str]:
    """Return the fields that a class of the checkout, by its full name, and its bases define themselves."""
    holder, _, name = path.rpartition(".")
    file = module_file(holder, folder) if holder else ""
    module = _read(file, catalogue) if file else None
    return Definitions(module, examined=False).declared_by(name) if module is not None else frozenset()


def _is_core(name: str, module: DefinedModule) -> bool:
    """Whether a name is imported from Megatron's own packages, which read the settings by their release's rules."""
    return module.names.imported(name).startswith(("megatron.core.", "megatron.training."))


def module_of(tree: ast.Module, names: Names, path: str, text: str) -> DefinedModule:
    """Return a module with the definitions at the top of its file."""
    lines = _lines_with_settings(text, names.catalogue)
    definitions: dict[str, ast.stmt] = {node.name: node for node in tree.body if isinstance(node, DEFINITIONS)}
    return DefinedModule(path, names, lines, tree.body, definitions)


def _lines_with_settings(text: str, catalogue: Catalogue) -> tuple[int, ...]:
    offsets = sorted({at for core in catalogue.cores for at in positions(text, core)})
    starts = line_starts(text) if offsets else []
    return tuple(sorted({bisect_right(starts, at) for at in offsets}))


def _value_for(statement: ast.stmt, name: str) -> ast.expr | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            return value
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
            return value
    return None


def _definition_of(name: str, module: DefinedModule, examined: bool) -> Definition | None:
    """Return the definition that a name leads to, through imports of the checkout; None when it is not read."""
    for inner, holder, is_examined in _followed(name, module, examined):
        node = holder.definitions.get(inner)
        if isinstance(node, DEFINITIONS):
            return Definition(node, holder, is_examined)
    return None


def _followed(name: str, module: DefinedModule, examined: bool) -> Iterator[tuple[str, DefinedModule, bool]]:
    """Yield a name in its module, and in those of the checkout that it is imported from."""
    for _ in range(MAX_STEPS):
        yield name, module, examined
        full = module.names.imported(name)
        if not full or not module.path:
            return
        holder, _, name = full.rpartition(".")
        file = module_file(holder, os.path.dirname(os.path.abspath(module.path))) if holder else ""
        following = _read(file, module.names.catalogue) if file else None
        if following is None:
            return
        module, examined = following, False


@lru_cache(maxsize=1024)
def _read(file: str, catalogue: Catalogue) -> DefinedModule | None:
    try:
        data = read_bytes(file, MAX_BYTES)
        tree = parse(data)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = names_of(tree, package_of(file))
    names.catalogue = catalogue
    return module_of(tree, names, file, data.decode("utf-8", "replace"))

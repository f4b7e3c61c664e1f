"""Resolution of the names in a file through its imports and classes."""

from __future__ import annotations

import ast
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from cgmigrate.documents.python.source import PARTS_WITH_STATEMENTS, PythonSource, dotted
from cgmigrate.megatron.catalogue import Catalogue, load

MEGATRON = ("megatron", "nemo", "nemo_rl", "megatron_bridge", "mcore", "megatron_fsdp")
"""Packages whose classes are known by name."""
SCOPE_CLASS, MODULE_CLASS = "CudaGraphScope", "CudaGraphModule"


@dataclass(slots=True, eq=False)
class Names:
    """The names of a file.

    ``full`` maps a local name to the full name that it was imported as, ``classes`` a class of the file to
    the names of its bases; ``modules`` are all modules that the file imports. ``shadowed`` are imported names
    that the file also defines, assigns, or imports from elsewhere. ``path`` is the file's, empty when unknown.
    ``catalogue`` has the settings that the names may be.
    """

    full: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    shadowed: set[str] = field(default_factory=set)
    path: str = ""
    catalogue: Catalogue = field(default_factory=load)

    def imported(self, name: str) -> str:
        """Return the full name of ``a.b.c`` if it is imported and the file does not define it, too; else empty."""
        first, dot, rest = name.partition(".")
        return self.full[first] + dot + rest if first in self.full and first not in self.shadowed else ""

    def resolve(self, name: str) -> str:
        """Return the full name of ``a.b.c``; a class of the file counts as its nearest imported base."""
        seen: set[str] = set()
        while True:
            first, dot, rest = name.partition(".")
            if first in self.full:
                return self.full[first] + dot + rest
            bases = self.classes.get(name, [])
            if name in seen or not bases:
                return name
            seen.add(name)
            name = next((base for base in bases if self._is_imported(base, seen)), bases[0])

    def _is_imported(self, base: str, seen: set[str]) -> bool:
        return base.partition(".")[0] in self.full or (base in self.classes and base not in seen)


def names_of(tree: ast.Module, package: str) -> Names:
    """Read the imports and classes of a file of a ``package`` (``a.b``, empty when unknown)."""
    names = Names()
    assigned: set[str] = set()
    for node in _statements(tree):
        assigned |= _stored(node)
        match node:
            case ast.Import():
                for alias in node.names:
                    names.modules.append(alias.name)
                    first = alias.name.partition(".")[0]
                    _bind(names, alias.asname or first, alias.name if alias.asname else first)
            case ast.ImportFrom():
                module = _absolute(node, package)
                names.modules.append(module)
                for alias in node.names:
                    _bind(names, alias.asname or alias.name, f"{module}.{alias.name}")
            case ast.ClassDef():
                names.classes[node.name] = [
                    path
                    for base in node.bases
                    if (path := dotted(base.value if isinstance(base, ast.Subscript) else base))
                ]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                assigned.add(name)
    names.shadowed |= (set(names.classes) | assigned) & set(names.full)
    return names


def _stored(node: ast.stmt) -> set[str]:
    """Return the names to which a statement itself binds something that it does not import or define."""
    match node:
        case ast.Assign(targets=targets):
            pass
        case ast.AnnAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            targets = [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            targets = [one.optional_vars for one in items if one.optional_vars is not None]
        case _:
            return set()
    parts = (part for target in targets for part in ast.walk(target))
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def package_of(path: str) -> str:
    """Return the package of megatron or nemo that a file belongs to, as far as its path shows."""
    parts = PurePath(path).parts
    for at, part in enumerate(parts[:-1]):
        # A project's own `backends/megatron` is a package of `backends`.
        if part in ("megatron", "nemo", "nemo_rl") and not os.path.exists(os.path.join(*parts[:at], "__init__.py")):
            return ".".join(parts[at:-1])
    return ""


def _bind(names: Names, local: str, full: str) -> None:
    if names.full.get(local, full) != full:
        names.shadowed.add(local)
    names.full[local] = full


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    above = parts[: len(parts) - node.level + 1] if node.level <= len(parts) else []
    return ".".join([*above, *([node.module] if node.module else [])]) or "."


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield every statement of the file, at any depth, without looking into expressions."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in PARTS_WITH_STATEMENTS[type(node)]:
            stack += reversed(getattr(node, name))


# --- qualified names ------------------------------------------------------------------------------

_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Definition:
    """A class or function. ``around`` is the position of the one around it, -1 at the top of the file."""

    name: str
    last_line: int
    around: int


class QualifiedNames:
    """The classes and functions of a file that contain one of the names; read when they are first needed.

    Without a source, which a file that cannot be parsed lacks, there are none.
    """

    def __init__(self, source: PythonSource | None = None) -> None:
        self._source = source
        self._first_lines: list[int] = []
        self._definitions: list[_Definition] = []
        self._is_read = False

    def at(self, offset: int) -> str:
        """Return the qualified name of the innermost definition around an offset; empty at the top of the file."""
        if self._source is None:
            return ""
        if not self._is_read:
            self._is_read = True
            for node in self._source.walk():
                if isinstance(node, _Named):
                    self._add(node)
        at = self._around(self._source.line_of(offset))
        return self._definitions[at].name if at >= 0 else ""

    def _add(self, node: _Named) -> None:
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        around = self._around(first)
        outer = self._definitions[around].name + "." if around >= 0 else ""
        self._first_lines.append(first)
        self._definitions.append(_Definition(outer + node.name, node.end_lineno or first, around))

    def _around(self, line: int) -> int:
        """Return the position of the innermost definition around a line, -1 at the top of the file."""
        at = bisect_right(self._first_lines, line) - 1
        while at >= 0 and self._definitions[at].last_line < line:
            at = self._definitions[at].around
        return at

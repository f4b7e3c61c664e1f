"""Functions and classes of the checkout, by their full names: what their bodies say about the settings.

Files are found as ``elsewhere`` finds them, and read once. A definition that is not found there (an installed
package, a computed name) was not read.
"""

from __future__ import annotations

import ast
import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.class_origins import MAX_BYTES, MAX_STEPS, module_file
from cgmigrate.documents.python.name_resolution import Names, names_of, package_of
from cgmigrate.megatron.settings import FIELDS

_CORE = "cuda_graph"
_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the checkout: its names, the definitions at its top, and the lines that may name a setting."""

    path: str
    names: Names
    lines: tuple[int, ...]
    definitions: dict[str, ast.stmt] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class, and the module it belongs to. ``here`` says that it is in the file under examination."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    module: Module
    here: bool = False

    def names_setting(self) -> str:
        """Which setting its body names and where, empty when it names none."""
        lines = self.module.lines
        at = bisect_left(lines, self.node.lineno)
        if at == len(lines) or lines[at] > (self.node.end_lineno or self.node.lineno):
            return ""
        for node in ast.walk(self.node):
            for word in _words(node):
                if _CORE in word and any(setting in word for setting in FIELDS):
                    return f"names `{word[:60]}` ({self._place(getattr(node, 'lineno', self.node.lineno))})"
        return ""

    def _place(self, line: int) -> str:
        if self.here:
            return f"line {line}"
        shown = os.path.relpath(self.module.path)
        return f"{os.path.basename(shown) if shown.startswith('..') else shown}:{line}"


def module_of(tree: ast.Module, names: Names, path: str, text: str) -> Module:
    """The definitions at the top of a file."""
    lines = tuple(at for at, line in enumerate(_BREAK.split(text), 1) if _CORE in line) if _CORE in text else ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return Module(path, names, lines, {node.name: node for node in tree.body if isinstance(node, kinds)})


def definition_of(name: str, module: Module, here: bool = True) -> Definition | None:
    """The definition that a name of a file leads to, through imports of the checkout; None when it is not read."""
    for _ in range(MAX_STEPS):
        node = module.definitions.get(name)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return Definition(node, module, here)
        first, dot, rest = name.partition(".")
        if first not in module.names.full or first in module.names.shadowed or not module.path:
            return None
        full = module.names.full[first] + dot + rest
        holder, _, name = full.rpartition(".")
        file = module_file(holder, os.path.dirname(os.path.abspath(module.path))) if holder else ""
        following = _read(file) if file else None
        if following is None:
            return None
        module, here = following, False
    return None


@lru_cache(maxsize=1024)
def _read(file: str) -> Module | None:
    try:
        if os.path.getsize(file) > MAX_BYTES:
            return None
        with open(file, "rb") as opened:
            data = opened.read()
        tree = ast.parse(data)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return module_of(tree, names_of(tree, package_of(file)), file, data.decode("utf-8", "replace"))


def _words(node: ast.AST) -> Iterator[str]:
    """What a node names: in code, or as text that may be a key."""
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.alias(name=word):
            yield word
        case ast.keyword(arg=str() as word) | ast.FunctionDef(name=word):
            yield word
        case ast.Constant(value=str() as word) if " " not in word.strip():
            yield word

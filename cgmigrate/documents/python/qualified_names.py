"""The qualified names of classes and functions: which one an offset belongs to."""

from __future__ import annotations

import ast
from bisect import bisect_right
from dataclasses import dataclass

from cgmigrate.documents.python.source import PythonSource

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

"""A Python file: its text, its tree, and offsets that edits can use.

``ast`` counts columns in UTF-8 bytes and lines by its own line breaks; this module counts code points of
the text. Only the parts of the tree on lines with one of the names are ever walked: most of a file says
nothing about CUDA graphs.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate

from cgmigrate.documents.python.nodes import parse, walk
from cgmigrate.megatron.catalogue import Catalogue, load
from cgmigrate.megatron.setting_names import CLASSES
from cgmigrate.text.remembered import remembered
from cgmigrate.text.spans import Span

EXACT_STRINGS = sys.version_info >= (3, 12)
"""Whether the parts of an f-string have their own places in the text; before, they have that of the whole string."""
_BREAK = re.compile(r"\r\n|\r|\n")
_AROUND = 8
"""Characters before and behind a name that a pattern may look at: its dashes, quotes and what ends it."""

PARTS_WITH_STATEMENTS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in ("body", "handlers", "orelse", "finalbody", "cases") if name in kind._fields)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, (ast.mod, ast.stmt, ast.excepthandler, ast.match_case))
}
"""Class of nodes → its fields that hold statements, handlers or cases, in the order of the text."""

_DECORATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class PythonSource:
    """The text and tree of one file. Raises SyntaxError or ValueError if the text is not valid Python.

    Without a catalogue, the settings are those that ship. ``tree`` is that of the text if it is parsed already.
    """

    def __init__(self, text: str, catalogue: Catalogue | None = None, tree: ast.Module | None = None) -> None:
        self.text = text
        self.catalogue = catalogue or load()
        self.tree = parse(text) if tree is None else tree
        self.starts = line_starts(text)
        self._lines = sorted({self.line_of(match.start()) for match in self.matches(_names(self.catalogue))})
        """The lines with one of the names."""
        self._line_set = frozenset(self._lines)
        self._parents: dict[int, ast.AST] = {}

    def matches(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Yield the matches of a pattern for names of settings in the text."""
        return matches_near_names(pattern, self.text, self.catalogue)

    def line_of(self, offset: int) -> int:
        """Return the line of an offset, from 1."""
        return bisect_left(self.starts, offset + 1)

    def offset(self, line: int, column: int) -> int:
        """Return the offset in code points of a line (from 1) and a column in UTF-8 bytes, as ``ast`` counts."""
        start = self.starts[line - 1]
        piece = self.text[start : start + column]
        if piece.isascii():
            return start + column
        raw = self.text[start : start + column].encode("utf-8", "surrogatepass")[:column]
        return start + len(raw.decode("utf-8", "surrogatepass"))

    def span(self, node: ast.AST) -> Span:
        """Return the span of a node."""
        place: ast.expr = node  # type: ignore[assignment]
        assert place.end_lineno is not None and place.end_col_offset is not None
        span = Span(self.offset(place.lineno, place.col_offset), self.offset(place.end_lineno, place.end_col_offset))
        if not EXACT_STRINGS and isinstance(node, ast.Constant) and isinstance(self.parent(node), ast.JoinedStr):
            return self._part_of_string(str(node.value), span)
        return span

    def _part_of_string(self, part: str, string: Span) -> Span:
        """Return where a part of an f-string is, if that can be seen, or else the whole string."""
        at = self.text.find(part, string.start, string.end)
        is_one = at >= 0 and self.text.find(part, at + 1, string.end) < 0
        return Span(at, at + len(part)) if is_one else string

    def of(self, node: ast.AST) -> str:
        """Return the text of a node."""
        span = self.span(node)
        return self.text[span.start : span.end]

    def names_setting(self, node: ast.AST) -> bool:
        """Whether one of the names is on a line of the node."""
        first = getattr(node, "lineno", 0)
        if not first:
            return True
        last = node.end_lineno or first  # type: ignore[attr-defined]
        if first == last:
            return first in self._line_set
        if isinstance(node, _DECORATED) and node.decorator_list:
            first = min(first, *(item.lineno for item in node.decorator_list))
        at = bisect_left(self._lines, first)
        return at < len(self._lines) and self._lines[at] <= last

    def walk(self, root: ast.AST | None = None) -> Iterator[ast.AST]:
        """Yield the nodes on lines with one of the names, in the order of the text, outer ones first."""
        return iter(self._nodes) if root is None else self._walk(root)

    @cached_property
    def _nodes(self) -> tuple[ast.AST, ...]:
        return tuple(self._walk(self.tree))

    def _walk(self, root: ast.AST) -> Iterator[ast.AST]:
        stack = [root]
        while stack:
            node = stack.pop()
            yield node
            children = [child for child in ast.iter_child_nodes(node) if self.names_setting(child)]
            for child in children:
                self._parents[id(child)] = node
            stack += reversed(children)

    def lines(self, node: ast.stmt) -> str:
        """Return the lines of a statement with its decorators."""
        first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
        last = node.end_lineno or first
        end = self.starts[last] if last < len(self.starts) else len(self.text)
        return self.text[self.starts[first - 1] : end].rstrip("\r\n")

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the parent of a node, None if ``walk`` has not yielded the node."""
        return self._parents.get(id(node))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the parent of a node, its parent, and so on."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """Return the nearest statement around a node."""
        return next((above for above in self.ancestors(node) if isinstance(above, ast.stmt)), None)

    def function_of(self, node: ast.AST) -> ast.AST | None:
        """Return the nearest function or lambda around a node; None at the top of the file."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        return next((above for above in self.ancestors(node) if isinstance(above, kinds)), None)


@dataclass(slots=True)
class Spread:
    """How often a name is assigned and read in a file, and the functions that it is spread into (``f(**name)``)."""

    stores: int = 0
    loads: int = 0
    functions: list[str] = field(default_factory=list)


@remembered
def spreads_in(source: PythonSource) -> dict[str, Spread]:
    """Return how each name of a file is used; one walk serves all dicts of the file."""
    spreads: defaultdict[str, Spread] = defaultdict(Spread)
    for node in walk(source.tree):
        match node:
            case ast.Name():
                spreads[node.id].stores += isinstance(node.ctx, ast.Store)
                spreads[node.id].loads += isinstance(node.ctx, ast.Load)
            case ast.arg():
                spreads[node.arg].stores += 1
            case ast.Call():
                for keyword in node.keywords:
                    if keyword.arg is None and isinstance(keyword.value, ast.Name):
                        spreads[keyword.value.id].functions.append(dotted(node.func))
    return spreads


@lru_cache(maxsize=8)
def _names(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of all names, flags and classes of values."""
    names, flags = catalogue.alternatives(), catalogue.alternatives(flags=True)
    words = "|".join((*CLASSES, *(key for inside in catalogue.in_sections.values() for key in inside)))
    # A string that is a flag without its dashes.
    alone = catalogue.alternatives(deprecated=True, flags=True).replace(r"\-\-", "")
    return re.compile(
        rf"(?<![A-Za-z0-9_])(?:{names}|{words})(?![A-Za-z0-9_])|(?:{flags})(?![\w-])|(?<=[\"'])(?:{alone})(?=[\"'])"
    )


def matches_near_names(pattern: re.Pattern[str], text: str, catalogue: Catalogue) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern for names of settings, looking only where such a name can be.

    A search for the cores of the names is fifty times cheaper than a pattern over the text.
    """
    reach = catalogue.longest_name + _AROUND
    cores = sorted({at for core in catalogue.cores for at in positions(text, core)})
    end = 0
    for at in cores:
        for match in pattern.finditer(text, max(end, at - reach), at + reach):
            end = max(end, match.end())
            yield match


def positions(text: str, word: str) -> Iterator[int]:
    """Yield the offsets of a word in a text."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def lines_with(text: str, words: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that contain one of some words, each with its offset; a pattern takes a hundred times as long."""
    for start in sorted({text.rfind("\n", 0, at) + 1 for word in words for at in positions(text, word)}):
        end = text.find("\n", start)
        yield start, text[start : end if end >= 0 else len(text)]


def line_starts(text: str) -> list[int]:
    """Return the offsets at which lines begin, as Python's parser counts lines."""
    if "\r" in text:
        return [0, *(match.end() for match in _BREAK.finditer(text))]
    return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]


NOT_LITERAL = object()
"""What ``literal_value`` returns for code that computes a value."""


def literal_value(node: ast.expr) -> object:
    """Return the value of a literal, ``NOT_LITERAL`` for other code and for what is no value (``{[]: 1}``)."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NOT_LITERAL


def last_name(node: ast.expr) -> str:
    """Return the last name of an expression: ``model`` for ``cfg.model`` and ``recipe().model``; empty for others."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for names and attributes of names, empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])

"""The syntax tree of a shell script, with offsets in code points."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query

_PARENTHESES = re.compile(r"\(\s*\)")
_DEEPEST = 100
"""Nodes inside one another that are read. Scripts that people write have 30 at most; each walk to the root takes as
many steps as there are nodes around a place, and each of these steps as many again."""


@dataclass(eq=False)
class ShellTree:
    """The tree of a text, and its nodes of some kinds in the order of the text."""

    text: str
    root: Node
    _ends: Sequence[int] = field(default=())
    """The end of each character in bytes; empty if all are ASCII."""

    @cached_property
    def commands(self) -> Sequence[Node]:
        """The commands."""
        return self._nodes("command")

    @cached_property
    def assignments(self) -> Sequence[Node]:
        """The assignments of variables."""
        return self._nodes("variable_assignment")

    @cached_property
    def comments(self) -> Sequence[Node]:
        """The comments."""
        return self._nodes("comment")

    @cached_property
    def functions(self) -> Sequence[Node]:
        """The definitions of functions."""
        has_some = "function" in self.text or _PARENTHESES.search(self.text)
        return self._nodes("function_definition") if has_some else ()

    @cached_property
    def errors(self) -> Sequence[Node]:
        """Where the text is no shell code, as far as the grammar shows."""
        if self.is_too_deep:
            return [self.root]
        # A part of the code that is missing is no node of its own.
        return (self._nodes("ERROR") or [self.root]) if self.root.has_error else ()

    @cached_property
    def is_too_deep(self) -> bool:
        """Whether nodes are nested too deeply to be read.

        No node is deeper than the one before it by more than one level. So it is enough to look at some: where these
        are not too deep, the others are at most twice as deep.
        """
        cursor = self.root.walk()
        for number in range(0, self.root.descendant_count, _DEEPEST):
            cursor.goto_descendant(number)
            if cursor.depth > _DEEPEST:
                return True
        return False

    def _nodes(self, kind: str) -> list[Node]:
        from tree_sitter import QueryCursor

        nodes = QueryCursor(_query(kind)).captures(self.root).get("node", [])
        return sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte))

    @property
    def has_offsets(self) -> bool:
        """Whether code points are at other places than bytes."""
        return bool(self._ends)

    def offset(self, byte: int) -> int:
        """Return the code point at a byte."""
        return bisect_right(self._ends, byte) if self._ends else byte

    def byte(self, offset: int) -> int:
        """Return the first byte of a code point."""
        if not self._ends:
            return offset
        return self._ends[offset - 1] if offset else 0

    def span(self, node: Node) -> Span:
        """Return where a node is."""
        if not self._ends:
            return Span(node.start_byte, node.end_byte)
        return Span(self.offset(node.start_byte), self.offset(node.end_byte))

    def written(self, node: Node) -> str:
        """Return the text of a node."""
        if not self._ends:
            return self.text[node.start_byte : node.end_byte]
        return self.text[self.offset(node.start_byte) : self.offset(node.end_byte)]

    def at(self, span: Span) -> Node | None:
        """Return the smallest node around a span."""
        return self.root.descendant_for_byte_range(self.byte(span.start), self.byte(span.end))


def nodes_around(node: Node | None) -> Iterator[Node]:
    """Yield a node and those around it, nearest first."""
    while node is not None:
        yield node
        node = node.parent


def parse(text: str) -> ShellTree:
    """Return the syntax tree of a script. Text that is no shell code has nodes that say so."""
    root = _parser().parse(text.encode("utf-8", "surrogatepass")).root_node
    lengths = () if text.isascii() else (len(char.encode("utf-8", "surrogatepass")) for char in text)
    return ShellTree(text, root, tuple(accumulate(lengths)))


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


@cache
def _parser() -> Parser:
    from tree_sitter import Parser

    return Parser(_language())


@cache
def _query(kind: str) -> Query:
    from tree_sitter import Query

    query: Query = Query(_language(), f"({kind}) @node")
    return query

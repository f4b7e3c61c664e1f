"""The syntax tree of a shell script, with offsets in code points."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

_NODES = """
(command) @command
(variable_assignment) @assignment
(comment) @comment
(function_definition) @function
(ERROR) @error
"""


@dataclass(slots=True)
class ShellTree:
    """The tree of a text, and its nodes of some kinds in the order of the text."""

    text: str
    root: Node
    commands: Sequence[Node]
    assignments: Sequence[Node]
    comments: Sequence[Node]
    functions: Sequence[Node]
    errors: Sequence[Node]
    """Where the text is no shell code, as far as the grammar shows."""
    _ends: Sequence[int] = field(default=())
    """The end of each character in bytes; empty if all are ASCII."""

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
        return self.text[self.offset(node.start_byte) : self.offset(node.end_byte)]

    def at(self, span: Span) -> Node | None:
        """Return the smallest node around a span."""
        return self.root.descendant_for_byte_range(self.byte(span.start), self.byte(span.end))


def parse(text: str) -> ShellTree:
    """Return the syntax tree of a script. Text that is no shell code has nodes that say so."""
    from tree_sitter import QueryCursor

    parser, query = _grammar()
    root = parser.parse(text.encode("utf-8", "surrogatepass")).root_node
    captures = QueryCursor(query).captures(root)

    def of(kind: str) -> list[Node]:
        return sorted(captures.get(kind, ()), key=lambda node: (node.start_byte, -node.end_byte))

    errors = of("error") if root.has_error else []
    if root.has_error and not errors:
        # A part of the code that is missing is no node of its own.
        errors = [root]
    lengths = () if text.isascii() else (len(char.encode("utf-8", "surrogatepass")) for char in text)
    return ShellTree(
        text, root, of("command"), of("assignment"), of("comment"), of("function"), errors, tuple(accumulate(lengths))
    )


@cache
def _grammar() -> tuple[Parser, Query]:
    import tree_sitter_bash
    from tree_sitter import Language, Parser, Query

    language = Language(tree_sitter_bash.language())
    return Parser(language), Query(language, _NODES)

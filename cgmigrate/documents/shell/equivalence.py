"""Equality of a script before and after: everything but the flags of settings and comments must be the same."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.tree import ShellTree
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node

_START = attrgetter("start")
_BLANKS = re.compile(r"(?:\\\r?\n|\s)+")
_BLANKS_OF_STRING = re.compile(r"(?:\\{1,2}(?:\r?\n|\Z)|\s)+")
"""The same in a line of a string: of two backslashes, the shell that runs its text gets one."""
_CONTINUED = re.compile(r"\\\r?\n")
_EMPTY = re.compile(r"[ \t]*[\r\n]\s*")
_SPACES = re.compile(r"[ \t]+")


def same_apart_from_flags(before: ShellTree, flags: Sequence[Span], after: ShellTree, rest: Sequence[Span]) -> bool:
    """Return whether two scripts are the same without some spans of each, those of their flags."""
    one, other = ([node for node in tree.root.children if node.type != "comment"] for tree in (before, after))
    if len(one) != len(other):
        return False
    limit = before.byte(_length_of_same(before.text, after.text))
    for left, right in zip(one, other, strict=True):
        end = left.end_byte
        if end < limit and end == right.end_byte and left.start_byte == right.start_byte:
            # It is before the first change.
            continue
        if before.written(left) == after.written(right):
            continue
        if _lines(left, before, flags) == _lines(right, after, rest):
            continue
        if list(_leaves(left, before, flags)) != list(_leaves(right, after, rest)):
            return False
    return True


def _length_of_same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one.startswith(other[:middle]) else (low, middle - 1)
    return low


def _lines(node: Node, tree: ShellTree, flags: Sequence[Span]) -> str:
    """Return the text of a node without flags, continued lines as one line, and without empty lines."""
    text = _CONTINUED.sub(" ", _without(tree.text, tree.span(node), flags))
    return _SPACES.sub(" ", _EMPTY.sub("\n", text))


def _leaves(node: Node, tree: ShellTree, flags: Sequence[Span]) -> Iterator[tuple[str, str]]:
    """Yield the type and text of each leaf below a node; strings are compared word by word."""
    stack = [node]
    while stack:
        node = stack.pop()
        span = tree.span(node)
        if node.type == "comment" or _is_inside(span, flags):
            continue
        if node.type in ("raw_string", "string_content") or not node.child_count:
            blanks = _BLANKS_OF_STRING if node.type == "string_content" else _BLANKS
            if text := blanks.sub(" ", _without(tree.text, span, flags)).strip():
                yield node.type, text
        else:
            stack += reversed(node.children)


def _is_inside(span: Span, flags: Sequence[Span]) -> bool:
    at = bisect_right(flags, span.start, key=_START) - 1
    return at >= 0 and span.end <= flags[at].end


def _without(text: str, span: Span, flags: Sequence[Span]) -> str:
    pieces, start = [], span.start
    # A script has many nodes and many flags, so only the flags in a node are looked at.
    first, last = (bisect_left(flags, span.start, key=_START), bisect_left(flags, span.end, key=_START))
    for flag in flags[first:last]:
        if start <= flag.start:
            pieces.append(text[start : flag.start])
            start = flag.end
    pieces.append(text[start : max(start, span.end)])
    return " ".join(pieces)

"""JSON with the place of each value, and the text of strings with the way back to the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.code import Code

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{\]}]|[^\s,:\[\]{}"]+')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")


@dataclass(eq=False, slots=True)
class Node:
    """A value: an object or array with ``items``, a string, or another scalar.

    The items of an object are its keys, each with the value behind it.
    """

    text: str
    start: int
    end: int = -1
    items: list[Node] = field(default_factory=list)

    @property
    def is_object(self) -> bool:
        """Whether it is an object."""
        return self.text[self.start] == "{"

    @property
    def is_array(self) -> bool:
        """Whether it is an array."""
        return self.text[self.start] == "["

    @property
    def is_string(self) -> bool:
        """Whether it is a string."""
        return self.text[self.start] == '"'

    @property
    def value(self) -> object:
        """The value of a string or another scalar."""
        return json.loads(self.text[self.start : self.end])

    def under(self, *keys: str) -> Node | None:
        """Return the value below some keys, None if there is none."""
        node: Node | None = self
        for key in keys:
            pairs = zip(node.items[::2], node.items[1::2], strict=True) if node and node.is_object else ()
            # The last of two equal keys counts.
            node = next((value for name, value in reversed(list(pairs)) if name.value == key), None)
        return node


def json_tree(text: str) -> Node | None:
    """Return the value that a text is, None if it is not valid JSON, or nested too deeply."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    top = Node(text, 0)
    stack = [top]
    for match in _TOKEN.finditer(text):
        node = Node(text, match.start(), match.end())
        if match.group() in "]}":
            stack.pop().end = match.end()
            continue
        stack[-1].items.append(node)
        if match.group() in "[{":
            stack.append(node)
    return top.items[0]


def string_code(node: Node) -> Code:
    """Return the text of a string with the way from each character back to the file."""
    return Code.joined(list(_characters(node)))


def _characters(node: Node) -> Iterator[Code]:
    start, end = node.start + 1, node.end - 1
    for match in _ESCAPE.finditer(node.text, start, end):
        yield Code.of(node.text, start, match.start())
        yield Code.written_as(json.loads(f'"{match.group()}"'), *match.span())
        start = match.end()
    yield Code.of(node.text, start, end)

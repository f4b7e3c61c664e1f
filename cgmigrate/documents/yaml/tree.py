"""The tree of spans over PyYAML's events.

PyYAML's marks differ from spans: they count code points and skip a byte order mark (BOM); a scalar's mark
is at its anchor or tag; block collections and block scalars end at the next token, and an empty value is
there as well. All of this was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from yaml.composer import ComposerError

from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.text.spans import Span

CORE = "tag:yaml.org,2002:"


STR, SEQ, MERGE = CORE + "str", CORE + "seq", CORE + "merge"


GAP = re.compile(r"(?:[ \t\n\r\x85\u2028\u2029]+|#[^\n\r\x85\u2028\u2029]*)*")
"""White space, line breaks and comments, which may occur between two tokens."""


_PROPERTY = re.compile(r"!<[^>]*>|[&!][^ \t\n\r\x85\u2028\u2029,\[\]{}]*")


MAX_DEPTH = 900
"""Below the 1,000 levels of libyaml 0.2.6 (PyYAML 6.0.4), so that a file is read alike with older ones.

Those have no limit, and take time quadratic in the depth of flow collections.
"""


class DepthError(yaml.MarkedYAMLError):
    """The file is nested too deeply."""


class Node:
    """One node of the file.

    ``outer`` is where it begins, ``start`` where its content begins behind anchor and tag, ``end``
    is behind its last character. ``implicit`` says whether the text of a scalar decides its type.
    ``brackets`` says whether a collection is written in brackets or braces, ``key`` is the key of a value.
    """

    __slots__ = (
        "alias_of",
        "anchor",
        "brackets",
        "end",
        "flow",
        "implicit",
        "items",
        "key",
        "kind",
        "outer",
        "start",
        "style",
        "tag",
        "value",
    )

    def __init__(self, kind: str, outer: int, start: int, end: int) -> None:
        self.kind = kind
        self.outer, self.start, self.end = outer, start, end
        self.value = ""
        self.style: str | None = None
        self.tag: str | None = None
        self.anchor: str | None = None
        self.flow = self.brackets = False
        self.implicit = False
        self.items: list[Node] = []
        self.alias_of: Node | None = None
        self.key: Node | None = None

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Return key and value of each pair of a mapping."""
        return zip(self.items[::2], self.items[1::2], strict=True)

    @property
    def target(self) -> Node:
        """The node itself, or the one that an alias names."""
        return self.alias_of or self


def parse_tree(text: str) -> tuple[list[Node], list[tuple[int, str]]]:
    """Return the roots of the file's documents, and all anchors. Raises yaml.YAMLError; nesting costs no stack."""
    tree = _Tree(text)
    for event in yaml.parse(text[tree.shift :], getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        match event:
            case yaml.NodeEvent():
                tree.add(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                _close(tree.open_nodes.pop(), event.end_mark.index + tree.shift)  # type: ignore[union-attr]
            case yaml.DocumentStartEvent():
                tree.anchors = {}
    return tree.roots, tree.all_anchors


class _Tree:
    """The tree while it grows: ``anchors`` are those of the document, ``open_nodes`` the collections around."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.shift = bom_length(text)
        self.roots: list[Node] = []
        self.open_nodes: list[Node] = []
        self.anchors: dict[str, Node] = {}
        self.all_anchors: list[tuple[int, str]] = []

    def add(self, event: Any) -> None:
        """Add the node that an event begins."""
        node = _node(self.text, event, self.shift)
        if node.kind == "alias":
            node.alias_of = self.anchors.get(node.value)
            if node.alias_of is None:
                raise ComposerError(None, None, f"found undefined alias {node.value!r}", event.start_mark)
        elif event.anchor:
            node.anchor = str(event.anchor)
            self.anchors[node.anchor] = node
            self.all_anchors.append((len(self.roots) - bool(self.open_nodes), node.anchor))
        if self.open_nodes:
            _append(self.text, self.open_nodes[-1], node)
        else:
            self.roots.append(node)
        if node.kind in ("map", "seq"):
            self.open_nodes.append(node)
            if len(self.open_nodes) > MAX_DEPTH:
                raise DepthError(problem_mark=event.start_mark)


def bom_length(text: str) -> int:
    """Return the number of byte order marks (BOM) at the start, which PyYAML does not count."""
    return len(text) - len(text.lstrip("\ufeff"))


def _node(text: str, event: Any, shift: int) -> Node:
    """Return the node that an event begins."""
    outer, end = event.start_mark.index + shift, event.end_mark.index + shift
    match event:
        case yaml.AliasEvent():
            node = Node("alias", outer, outer, end)
            node.value = str(event.anchor)
        case yaml.ScalarEvent():
            node = Node("scalar", outer, _behind_properties(text, outer, end), end)
            node.value, node.style, node.tag = event.value, event.style or None, event.tag
            node.implicit = event.implicit[0]
            if node.style in ("|", ">"):
                node.end = node.start + len(text[node.start : end].rstrip(" \t\n\r\x85\u2028\u2029"))
        case _:
            kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
            node = Node(kind, outer, outer, end)
            node.tag = event.tag
            node.flow = bool(event.flow_style)
            # A pair in a flow list (`[a: b]`) is a mapping without braces.
            node.brackets = node.flow and text[end - 1] == ("{" if kind == "map" else "[")
            if node.brackets:
                node.start = end - 1
            else:
                node.start = end if kind == "map" else _behind_properties(text, outer, end)
    return node


def _behind_properties(text: str, start: int, end: int) -> int:
    """Return where the content of a node begins, behind anchor and tag; ``end`` when it has none."""
    while start < end and text[start] in "&!":
        anchor_or_tag = _PROPERTY.match(text, start)
        start = GAP.match(text, anchor_or_tag.end()).end()  # type: ignore[union-attr]
    return min(start, end)


def _append(text: str, parent: Node, node: Node) -> None:
    """Add an item, key or value to the collection that is open."""
    if parent.kind == "map" and len(parent.items) % 2:
        node.key = parent.items[-1]
        if node.kind == "scalar" and node.outer == node.end:
            # The mark of an empty value is at the next token, maybe lines below.
            node.outer = node.start = node.end = colon_of(text, node.key) or node.key.end
    parent.items.append(node)


def colon_of(text: str, key: Node) -> int | None:
    """Return the offset behind the colon of a key; None if it has none (`{a, b}`)."""
    at = GAP.match(text, key.end).end()  # type: ignore[union-attr]
    return at + 1 if text[at : at + 1] == ":" else None


def _close(node: Node, end: int) -> None:
    """End a collection at its bracket, else behind its last item, since the mark is at the next token."""
    if node.brackets:
        node.end = end
    elif node.items:
        node.end = node.items[-1].end


def nodes_in(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes and everything inside them."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        stack += node.items


def closing_order(roots: Sequence[Node]) -> list[Node]:
    """Return every collection but those in keys, each behind those inside it, and so behind those it can merge."""
    order: list[Node] = []
    stack = [root for root in roots if root.kind in ("map", "seq")]
    while stack:
        node = stack.pop()
        order.append(node)
        children = node.items[1::2] if node.kind == "map" else node.items
        stack += [child for child in children if child.kind in ("map", "seq")]
    order.reverse()
    return order


def contains(outer: Node, inner: Node) -> bool:
    """Whether one node is inside another, or the same."""
    return outer.outer <= inner.outer and inner.end <= outer.end


def plain_node(text: str) -> Node:
    """Return a scalar without quotes and without a position, to read a text as YAML does."""
    node = Node("scalar", 0, 0, 0)
    node.value, node.implicit = text, True
    return node


# --- errors ---------------------------------------------------------------------------------------

_TOO_DEEP = f"the nesting depth of this YAML is more than {MAX_DEPTH} levels, so it is not examined"
_LIBYAML_LIMIT = "exceeded maximum nesting depth"
"""What libyaml says since 0.2.6; it may say so before the tree has reached its own limit, since it reads ahead."""
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\{#")


def parse_error(text: str, error: Exception) -> Problem:
    """Return the problem of a file that is not valid YAML: where the parser stopped, and why."""
    template = _TEMPLATE.search(text)
    at = _position_of(text, error)
    reason = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    context = getattr(error, "context", None)
    if context:
        reason = f"{reason} ({context})"
    if template:
        sign = template.group()
        return Problem(
            ProblemKind.TEMPLATE,
            Span(template.start(), template.start() + len(sign)),
            f"the file holds template markup (`{sign}`) and is not YAML until it is rendered: {reason}",
        )
    end = text.find("\n", at)
    span = Span(at, max(at + 1, len(text) if end < 0 else end))
    if isinstance(error, DepthError) or _LIBYAML_LIMIT in reason:
        return Problem(ProblemKind.TOO_COMPLEX, span, _TOO_DEEP)
    return Problem(ProblemKind.INVALID_YAML, span, f"this is not valid YAML: {reason}")


def _position_of(text: str, error: Exception) -> int:
    """Return where in the text a parser's error is; libyaml counts bytes where it refuses a character."""
    character, mark = getattr(error, "character", None), getattr(error, "problem_mark", None)
    if isinstance(character, int):
        return max(0, text.find(chr(character)))
    if isinstance(error, UnicodeEncodeError):
        return error.start
    return min(mark.index + bom_length(text), len(text)) if mark else 0


# --- merge keys -----------------------------------------------------------------------------------


def is_merge(key: Node) -> bool:
    """Whether a key is a merge key; a quoted ``<<`` is a name like any other."""
    if key.kind != "scalar":
        return False
    return key.tag == MERGE or (key.value == "<<" and key.implicit and key.tag in (None, "!"))


def merge_sources(mapping: Node) -> list[Node]:
    """Return what ``<<`` names, nearest first for PyYAML up to 6.0.3; see ``documents.merging`` for newer ones.

    In one list the first takes precedence, of several ``<<`` the last.
    """
    result: list[Node] = []
    for key, value in mapping.pairs():
        if is_merge(key):
            result = (list(value.target.items) if value.target.kind == "seq" else [value]) + result
    return result


def merges_in(closing: Sequence[Node]) -> dict[int, list[Node]]:
    """Return for each mapping (by id) with ``<<`` the mappings merged into it, nearest first, but none around it."""
    merged: dict[int, list[Node]] = {}
    for mapping in closing:
        if mapping.kind == "map" and any(is_merge(key) for key, _ in mapping.pairs()):
            sources = [source.target for source in merge_sources(mapping)]
            merged[id(mapping)] = [node for node in sources if node.kind == "map" and not contains(node, mapping)]
    return merged


def merge_error(mapping: Node) -> str:
    """Return why YAML readers refuse what the mapping merges, empty when they do not."""
    for source in merge_sources(mapping):
        if source.target.kind != "map":
            return "`<<` names something that is not a mapping"
        if contains(source.target, mapping):
            return "it merges a mapping that holds it"
    return ""

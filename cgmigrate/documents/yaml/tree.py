"""The tree of spans over PyYAML's events.

Traps of the marks (found by measuring): they count code points and leave out a byte order mark; a
scalar's mark stands on its anchor or tag; the end of block collections and block scalars runs on to
the next token, and so does the place of a value that is not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from yaml.composer import ComposerError

CORE = "tag:yaml.org,2002:"


STR, SEQ, _MERGE = CORE + "str", CORE + "seq", CORE + "merge"


GAP = re.compile(r"(?:[ \t\n\r\x85\u2028\u2029]+|#[^\n\r\x85\u2028\u2029]*)*")
"""White space, line breaks and comments: what may stand between two tokens."""


_PROPERTY = re.compile(r"!<[^>]*>|[&!][^ \t\n\r\x85\u2028\u2029,\[\]{}]*")


_MAX_DEPTH = 5_000
"""libyaml takes time quadratic in the depth of flow collections; no loader reads a tenth of this."""


_MAX_USES = 1_000
"""Aliases of aliases multiply; who owns a text that is used at more places is not asked."""


_MAX_PATHS = 100_000
"""Paths that aliases add in one file: what holds many mappings and is named by many aliases multiplies them."""


class Node:
    """One node of the file.

    ``outer`` is where it begins, ``start`` where its content begins behind anchor and tag, ``end``
    is behind its last character. ``implicit`` says whether the text of a scalar decides its type.
    ``brackets`` says whether a collection is written with them, ``key`` is the key of a value.
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
        """Key and value of each pair of a mapping."""
        return zip(self.items[::2], self.items[1::2], strict=True)

    @property
    def target(self) -> Node:
        """The node itself, or the one that an alias stands for."""
        return self.alias_of or self


def parse_tree(text: str) -> tuple[list[Node], list[tuple[int, str]]]:
    """The roots of the file's documents, and all anchors. Raises yaml.YAMLError; nesting costs no stack."""
    shift = marks_of_order(text)
    roots: list[Node] = []
    open_nodes: list[Node] = []
    anchors: dict[str, Node] = {}
    all_anchors: list[tuple[int, str]] = []
    for event in yaml.parse(text[shift:], getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        match event:
            case yaml.NodeEvent():
                node = _node(text, event, shift)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                _close(open_nodes.pop(), event.end_mark.index + shift)  # type: ignore[union-attr]
                continue
            case yaml.DocumentStartEvent():
                anchors = {}
                continue
            case _:
                continue
        if node.kind == "alias":
            node.alias_of = anchors.get(node.value)
            if node.alias_of is None:
                raise ComposerError(None, None, f"found undefined alias {node.value!r}", _mark(event))
        elif event.anchor:
            node.anchor = str(event.anchor)
            anchors[node.anchor] = node
            all_anchors.append((len(roots) - bool(open_nodes), node.anchor))
        if open_nodes:
            _append(text, open_nodes[-1], node)
        else:
            roots.append(node)
        if node.kind in ("map", "seq"):
            open_nodes.append(node)
            if len(open_nodes) > _MAX_DEPTH:
                raise ComposerError(None, None, f"more than {_MAX_DEPTH:,} levels of nesting", _mark(event))
    return roots, all_anchors


def _mark(event: Any) -> Any:
    return event.start_mark


def marks_of_order(text: str) -> int:
    """How many byte order marks the text begins with; PyYAML does not count them."""
    return len(text) - len(text.lstrip("\ufeff"))


def _node(text: str, event: Any, shift: int) -> Node:
    """The node that an event begins."""
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
    """Where the content begins of a node whose mark may stand on an anchor or tag; ``end`` when it has none."""
    while start < end and text[start] in "&!":
        found = _PROPERTY.match(text, start)
        start = GAP.match(text, found.end()).end()  # type: ignore[union-attr]
    return min(start, end)


def _append(text: str, parent: Node, node: Node) -> None:
    """Add an item, key or value to the collection that is open."""
    if parent.kind == "map" and len(parent.items) % 2:
        node.key = parent.items[-1]
        if node.kind == "scalar" and node.outer == node.end:
            # What is not written has its mark on the next token, maybe lines below.
            node.outer = node.start = node.end = colon_of(text, node.key) or node.key.end
    parent.items.append(node)


def colon_of(text: str, key: Node) -> int | None:
    """Behind the colon of a key; None where there is none (`{a, b}`)."""
    at = GAP.match(text, key.end).end()  # type: ignore[union-attr]
    return at + 1 if text[at : at + 1] == ":" else None


def _close(node: Node, end: int) -> None:
    """End a collection: at its bracket, else behind its last item, since the mark runs on to the next token."""
    if node.brackets:
        node.end = end
    elif node.items:
        node.end = node.items[-1].end


def closing_order(roots: Sequence[Node]) -> list[Node]:
    """Every collection but those in keys, behind what it holds, and so behind what it can merge."""
    order: list[Node] = []
    stack = [root for root in roots if root.kind in ("map", "seq")]
    while stack:
        node = stack.pop()
        order.append(node)
        children = node.items[1::2] if node.kind == "map" else node.items
        stack += [child for child in children if child.kind in ("map", "seq")]
    order.reverse()
    return order


def is_merge(key: Node) -> bool:
    """Whether a key is ``<<``: not when quoted, then it is a name like any other."""
    if key.kind != "scalar":
        return False
    return key.tag == _MERGE or (key.value == "<<" and key.implicit and key.tag in (None, "!"))


def _merge_sources(mapping: Node) -> list[Node]:
    """What ``<<`` names, nearest first: in one list the first one wins, of several ``<<`` the last."""
    result: list[Node] = []
    for key, value in mapping.pairs():
        if is_merge(key):
            result = (list(value.target.items) if value.target.kind == "seq" else [value]) + result
    return result


def merges_in(closing: Sequence[Node]) -> dict[int, list[Node]]:
    """For each mapping (by id) with ``<<`` the mappings merged into it, nearest first, but none that holds it."""
    found: dict[int, list[Node]] = {}
    for mapping in closing:
        if mapping.kind == "map" and any(is_merge(key) for key, _ in mapping.pairs()):
            sources = [source.target for source in _merge_sources(mapping)]
            found[id(mapping)] = [node for node in sources if node.kind == "map" and not contains(node, mapping)]
    return found


def contains(outer: Node, inner: Node) -> bool:
    """Whether one node stands inside another (or is it)."""
    return outer.outer <= inner.outer and inner.end <= outer.end


def input_error_of_merge(mapping: Node) -> str:
    """Why readers would refuse what the mapping merges, empty when they would not."""
    for source in _merge_sources(mapping):
        if source.target.kind != "map":
            return "`<<` names something that is no mapping"
        if contains(source.target, mapping):
            return "it merges a mapping that holds it"
    return ""


class _Path:
    """A name and the path of what encloses it: deep files would need too much room for tuples of all names."""

    __slots__ = ("_names", "name", "outer")

    def __init__(self, outer: _Path | None, name: str) -> None:
        self.outer, self.name = outer, name
        self._names: tuple[str, ...] | None = None

    def names(self) -> tuple[str, ...]:
        """All names, the outermost first: one tuple, however many texts are used at the path."""
        if self._names is None:
            names, path = [self.name], self.outer
            while path is not None:
                names.append(path.name)
                path = path.outer
            self._names = tuple(reversed(names))
        return self._names


class Uses:
    """The paths at which each collection is read: its own, and through aliases of it or of what holds it."""

    def __init__(self, closing: Sequence[Node]) -> None:
        self._own: dict[int, _Path | None] = {}
        self._others: dict[int, list[_Path | None]] = {}
        self._crowded: set[int] = set()
        self._added = 0
        # Whoever holds or names a collection closes after it, so its paths are complete when it comes.
        for node in reversed(closing):
            path, others = self._own.get(id(node)), self._others.get(id(node), [])
            crowded = id(node) in self._crowded or len(others) > _MAX_USES
            if crowded:
                others = self._others[id(node)] = others[:_MAX_USES]
                self._crowded.add(id(node))
            for child in node.items[1::2] if node.kind == "map" else node.items:
                if child.target.kind in ("map", "seq"):
                    self._enter(child, path, others, crowded)

    def _enter(self, child: Node, path: _Path | None, others: Sequence[_Path | None], crowded: bool) -> None:
        if child.key is not None and not is_merge(child.key):
            name = child.key.target.value if child.key.target.kind == "scalar" else "?"
            self._added += len(others)
            if self._added > _MAX_PATHS:
                crowded, others = crowded or bool(others), ()
            path, others = _Path(path, name), [_Path(other, name) for other in others]
        target = child.target
        if child.kind != "alias":
            self._own[id(child)] = path
        elif not contains(target, child):
            others = [path, *others]
        else:
            return
        if others:
            known = self._others.setdefault(id(target), [])
            # One more than the most shows that there are too many.
            known += others[: _MAX_USES + 1 - len(known)]
        if crowded:
            self._crowded.add(id(target))

    def path(self, node: Node) -> tuple[str, ...]:
        """The keys that lead to a node where it is written."""
        path = self._own.get(id(node))
        return path.names() if path else ()

    def others(self, node: Node) -> tuple[tuple[str, ...], ...]:
        """The other paths at which a node is used."""
        return tuple(dict.fromkeys(path.names() if path else () for path in self._others.get(id(node), ())))

    def input_error(self, node: Node) -> str:
        """Why not all paths are known, empty when they are."""
        if id(node) not in self._crowded:
            return ""
        if self._added > _MAX_PATHS:
            return f"aliases use the texts of this file at more than {_MAX_PATHS:,} places"
        return f"its text is used at more than {_MAX_USES:,} places"


def plain_node(text: str) -> Node:
    """A scalar without quotes that stands nowhere, for reading a text as YAML would."""
    node = Node("scalar", 0, 0, 0)
    node.value, node.implicit = text, True
    return node

"""YAML files: sites are mappings that hold CUDA-graph settings.

PyYAML's C parser gives events with exact marks; a small tree of spans over them is all that is
needed, and nothing emits YAML: an edit replaces the characters of a key, a value or a line. Traps of
the marks (found by measuring): they count code points and leave out a byte order mark; a scalar's
mark stands on its anchor or tag; the end of block collections and block scalars runs on to the next
token, and so does the place of a value that is not written.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from cgmigrate.documents import (
    Add,
    CannotEditError,
    Change,
    Problem,
    Remove,
    Rename,
    Revalue,
    Site,
    Span,
    Written,
    changes,
    same,
)
from cgmigrate.edits import Edit
from cgmigrate.settings import ENABLE, EXTERNAL, FIELDS, Settings, Undecided

_FIELD_OF_KEY = {name: name for name in FIELDS} | {"--" + name.replace("_", "-"): name for name in FIELDS}
_INTERPOLATION = re.compile(r"\$\{|\$\(|\$[A-Za-z_]|\{\{|\{%|<%|<<[A-Z]")
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\{#")
_PREFIX = re.compile(r"[\w\-+/@.]+")

_CORE = "tag:yaml.org,2002:"
_STR, _SEQ, _MERGE = _CORE + "str", _CORE + "seq", _CORE + "merge"
_RESOLVER, _CONSTRUCTOR = Resolver(), SafeConstructor()
_CONSTRUCT = {
    _CORE + "null": _CONSTRUCTOR.construct_yaml_null,
    _CORE + "bool": _CONSTRUCTOR.construct_yaml_bool,
    _CORE + "int": _CONSTRUCTOR.construct_yaml_int,
    _CORE + "float": _CONSTRUCTOR.construct_yaml_float,
}

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line in YAML 1.1; editors and ``str.splitlines`` disagree about the rarer ones."""
_GAP = re.compile(r"(?:[ \t\n\r\x85\u2028\u2029]+|#[^\n\r\x85\u2028\u2029]*)*")
"""White space, line breaks and comments: what may stand between two tokens."""
_PROPERTY = re.compile(r"!<[^>]*>|[&!][^ \t\n\r\x85\u2028\u2029,\[\]{}]*")
_BEFORE_ITEM = re.compile(r"[ \t]*(?:-[ \t]+)+")

_MAX_DEPTH = 5_000
"""libyaml takes time quadratic in the depth of flow collections; no loader reads a tenth of this."""
_MAX_USES = 1_000
"""Aliases of aliases multiply; who owns a text that is used at more places is not asked."""


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


class _Place:
    """Where the settings of one site stand: their mapping and pairs."""

    __slots__ = ("mapping", "pairs", "prefix")

    def __init__(self, mapping: Node, prefix: str) -> None:
        self.mapping = mapping
        self.prefix = prefix
        self.pairs: dict[str, tuple[Node, Node]] = {}


class YamlDocument:
    """A YAML file (one document or several) as sites; see ``documents.Document``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sites: list[Site] = []
        self.problems: list[Problem] = []
        self.left_alone: Sequence[tuple[Written, str]] = ()
        self.top_level: list[str] = []
        self.builds_on = ""
        self._places: list[_Place] = []
        self.roots: list[Node] = []
        self.anchors: list[tuple[int, str]] = []
        """Every anchor in the order of the text, with the number of its document."""
        try:
            self.roots, self.anchors = _parse(text)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            self.problems.append(_unreadable(text, error))
            return
        self._read()

    # --- reading ----------------------------------------------------------------------------

    def _read(self) -> None:
        for root in self.roots:
            if root.kind == "map":
                self.top_level += [key.value for key, _ in root.pairs() if key.kind == "scalar"]
                self.builds_on = self.builds_on or _defaults_of(root, self.text)
        closing = _closing_order(self.roots)
        merged = _merges_in(closing)
        prefixes = _prefixes_of(closing, merged)
        neighbours = _neighbours_of(closing, prefixes, merged)
        uses = _Uses(closing)
        found: dict[tuple[int, str], int] = {}
        for mapping in sorted((node for node in closing if id(node) in prefixes), key=lambda node: node.outer):
            pairs = _settings_in(mapping)
            fixed = uses.trouble(mapping) or (_trouble_of_merge(mapping) if id(mapping) in merged else "")
            for prefix in prefixes[id(mapping)]:
                place, index = _Place(mapping, prefix), len(self._places)
                found[id(mapping), prefix] = index
                self._places.append(place)
                site = self._site(index, place, pairs.get(prefix, []), uses, fixed)
                self.sites.append(replace(site, neighbours=neighbours[id(mapping), prefix]))
        for index, place in enumerate(self._places):
            nodes = merged.get(id(place.mapping), ())
            sources = [found[key] for node in nodes if (key := (id(node), place.prefix)) in found]
            if sources:
                self.sites[index] = replace(self.sites[index], inherits=tuple(sources))

    def _site(
        self, index: int, place: _Place, pairs: Sequence[tuple[str, Node, Node]], uses: _Uses, fixed: str
    ) -> Site:
        mapping = place.mapping
        written: dict[str, Written] = {}
        for name, key, value in pairs:
            spelled = key.target.value
            span = Span(key.start, max(key.end, value.end))
            if name in place.pairs:
                self.problems.append(self._written_twice(spelled, span, place.pairs[name][0]))
                fixed = "a setting is written twice"
                del written[name]
            place.pairs[name] = (key, value)
            written[name] = Written(name, spelled, _value_of(name, value, spelled.startswith("--")), span)
        inner = tuple(filter(None, place.prefix.rstrip(".").split(".")))
        return Site(
            index,
            uses.path(mapping) + inner,
            Span(mapping.start, mapping.end),
            tuple(written.values()),
            flags=any(w.key.startswith("--") for w in written.values()),
            used_at=tuple(other + inner for other in uses.others(mapping)),
            fixed_in_place=fixed,
        )

    def _written_twice(self, spelled: str, span: Span, first: Node) -> Problem:
        line = self.text.count("\n", 0, first.start) + 1
        if first.target.value == spelled:
            return Problem("CG005", span, f"`{spelled}` is also written on line {line}; YAML keeps the last one")
        message = f"`{spelled}` is also written as `{first.target.value}` on line {line}; which one counts is not known"
        return Problem("CG005", span, message)

    # --- writing ----------------------------------------------------------------------------

    def edits(self, wanted: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that give each site the wanted own settings; see ``documents.Document``."""
        writer = _Writer(self.text)
        for index, after in sorted(wanted.items()):
            _SiteEditor(writer, self.sites[index], self._places[index]).write(after)
        result = sorted(writer.finish(), key=lambda edit: (edit.start, edit.end))
        if any(left.end > right.start for left, right in pairwise(result)):
            raise CannotEditError(min(wanted), "two changes concern the same text")
        return result

    def check(self, edited: str, wanted: Mapping[int, Settings]) -> str:
        """Read the edited text again; return what differs beyond ``wanted``, empty when nothing."""
        again = YamlDocument(edited)
        known = Counter(problem.rule for problem in self.problems)
        for problem in again.problems:
            known[problem.rule] -= 1
            if known[problem.rule] < 0:
                return f"it would no longer be read: {problem.message}"
        at = _Comparison(self, again, self._places, wanted).first_difference()
        if at is None:
            return ""
        return f"something else in the file would be read differently (line {self.text.count(chr(10), 0, at) + 1})"


# --- the tree -------------------------------------------------------------------------------------


def _parse(text: str) -> tuple[list[Node], list[tuple[int, str]]]:
    """The roots of the file's documents, and all anchors. Raises yaml.YAMLError; nesting costs no stack."""
    shift = _marks_of_order(text)
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


def _marks_of_order(text: str) -> int:
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
        start = _GAP.match(text, found.end()).end()  # type: ignore[union-attr]
    return min(start, end)


def _append(text: str, parent: Node, node: Node) -> None:
    """Add an item, key or value to the collection that is open."""
    if parent.kind == "map" and len(parent.items) % 2:
        node.key = parent.items[-1]
        if node.kind == "scalar" and node.outer == node.end:
            # What is not written has its mark on the next token, maybe lines below.
            node.outer = node.start = node.end = _colon(text, node.key) or node.key.end
    parent.items.append(node)


def _colon(text: str, key: Node) -> int | None:
    """Behind the colon of a key; None where there is none (`{a, b}`)."""
    at = _GAP.match(text, key.end).end()  # type: ignore[union-attr]
    return at + 1 if text[at : at + 1] == ":" else None


def _close(node: Node, end: int) -> None:
    """End a collection: at its bracket, else behind its last item, since the mark runs on to the next token."""
    if node.brackets:
        node.end = end
    elif node.items:
        node.end = node.items[-1].end


def _closing_order(roots: Sequence[Node]) -> list[Node]:
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


def _is_merge(key: Node) -> bool:
    """Whether a key is ``<<``: not when quoted, then it is a name like any other."""
    if key.kind != "scalar":
        return False
    return key.tag == _MERGE or (key.value == "<<" and key.implicit and key.tag in (None, "!"))


def _merge_sources(mapping: Node) -> list[Node]:
    """What ``<<`` names, nearest first: in one list the first one wins, of several ``<<`` the last."""
    result: list[Node] = []
    for key, value in mapping.pairs():
        if _is_merge(key):
            result = (list(value.target.items) if value.target.kind == "seq" else [value]) + result
    return result


def _merges_in(closing: Sequence[Node]) -> dict[int, list[Node]]:
    """For each mapping (by id) with ``<<`` the mappings merged into it, nearest first, but none that holds it."""
    found: dict[int, list[Node]] = {}
    for mapping in closing:
        if mapping.kind == "map" and any(_is_merge(key) for key, _ in mapping.pairs()):
            sources = [source.target for source in _merge_sources(mapping)]
            found[id(mapping)] = [node for node in sources if node.kind == "map" and not _holds(node, mapping)]
    return found


def _holds(outer: Node, inner: Node) -> bool:
    return outer.outer <= inner.outer and inner.end <= outer.end


def _trouble_of_merge(mapping: Node) -> str:
    for source in _merge_sources(mapping):
        if source.target.kind != "map":
            return "`<<` names something that is no mapping"
        if _holds(source.target, mapping):
            return "it merges a mapping that holds it"
    return ""


class _Uses:
    """The paths at which each collection is read: its own, and through aliases of it or of what holds it."""

    def __init__(self, closing: Sequence[Node]) -> None:
        # A path is a chain (path of what encloses it, name): deep files would need too much room for tuples.
        self._own: dict[int, Any] = {}
        self._others: dict[int, list[Any]] = {}
        self._crowded: set[int] = set()
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

    def _enter(self, child: Node, path: Any, others: Sequence[Any], crowded: bool) -> None:
        if child.key is not None and not _is_merge(child.key):
            name = child.key.target.value if child.key.target.kind == "scalar" else "?"
            path, others = (path, name), [(other, name) for other in others]
        target = child.target
        if child.kind != "alias":
            self._own[id(child)] = path
        elif not _holds(target, child):
            others = [path, *others]
        else:
            return
        if others:
            self._others.setdefault(id(target), []).extend(others)
        if crowded:
            self._crowded.add(id(target))

    def path(self, node: Node) -> tuple[str, ...]:
        """The keys that lead to a node where it is written."""
        return self._names(self._own.get(id(node)))

    def others(self, node: Node) -> tuple[tuple[str, ...], ...]:
        """The other paths at which a node is used."""
        return tuple(dict.fromkeys(self._names(path) for path in self._others.get(id(node), ())))

    def trouble(self, node: Node) -> str:
        """Why not all paths are known, empty when they are."""
        return f"its text is used at more than {_MAX_USES:,} places" if id(node) in self._crowded else ""

    @staticmethod
    def _names(path: Any) -> tuple[str, ...]:
        names: list[str] = []
        while path is not None:
            path, name = path
            names.append(name)
        return tuple(reversed(names))


# --- keys and values ------------------------------------------------------------------------------


def _split_key(key: Node) -> tuple[str, str] | None:
    """(prefix of a dotted key, field) when the key names a setting."""
    key = key.target
    if key.kind != "scalar" or key.style in ("|", ">"):
        return None
    prefix, dot, last = key.value.rpartition(".")
    name = _FIELD_OF_KEY.get(last)
    if name is None or (dot and (last.startswith("-") or not _PREFIX.fullmatch(prefix))):
        return None
    return prefix + dot, name


def _settings_in(mapping: Node) -> dict[str, list[tuple[str, Node, Node]]]:
    """Prefix of dotted keys → (field, key, value) of each setting, in the order of the text."""
    found: dict[str, list[tuple[str, Node, Node]]] = {}
    for key, value in mapping.pairs():
        if split := _split_key(key):
            found.setdefault(split[0], []).append((split[1], key, value))
    return found


def _prefixes_of(closing: Sequence[Node], merged: Mapping[int, Sequence[Node]]) -> dict[int, list[str]]:
    """The prefixes of settings that each mapping (by id) has, its own and those of what it merges.

    A mapping that only merges others is a place as well: what it merges must keep its meaning there.
    """
    found: dict[int, list[str]] = {}
    for mapping in closing:
        if mapping.kind == "map":
            prefixes = list(_settings_in(mapping))
            if id(mapping) in merged:
                prefixes.append("")
            for source in merged.get(id(mapping), ()):
                prefixes += found.get(id(source), ())
            if prefixes:
                found[id(mapping)] = list(dict.fromkeys(prefixes))
    return found


def _neighbours_of(
    closing: Sequence[Node], prefixes: Mapping[int, Sequence[str]], merged: Mapping[int, Sequence[Node]]
) -> dict[tuple[int, str], dict[str, object]]:
    """What stands beside the settings of each prefix of a mapping (by id), also through what it merges."""
    asked = {*prefixes, *(id(source) for sources in merged.values() for source in sources)}
    found: dict[tuple[int, str], dict[str, object]] = {}
    for mapping in closing:
        if id(mapping) not in asked:
            continue
        own = _plain_pairs(mapping)
        sources = merged.get(id(mapping), ())
        inherited = [prefix for source in sources for prefix in prefixes.get(id(source), ())]
        for prefix in dict.fromkeys((*prefixes.get(id(mapping), ()), "", *own, *inherited)):
            together: dict[str, object] = {}
            for source in reversed(sources):
                together.update(found.get((id(source), prefix), {}))
            found[id(mapping), prefix] = together | own.get(prefix, {})
    return found


def _plain_pairs(mapping: Node) -> dict[str, dict[str, object]]:
    """Prefix → the pairs of a mapping with that prefix that are no settings."""
    own: dict[str, dict[str, object]] = {}
    for key, value in mapping.pairs():
        if key.target.kind == "scalar" and not _is_merge(key) and _split_key(key) is None:
            prefix, dot, _ = key.target.value.rpartition(".")
            own.setdefault(prefix + dot, {})[key.target.value] = _neighbour_value(value.target)
    return own


def _neighbour_value(node: Node) -> object:
    match node.kind:
        case "map":
            return Undecided("{…}", "a mapping")
        case "seq":
            return Undecided("[…]", "a list")
    return _scalar_value(node)


def _scalar_value(node: Node) -> object:
    """A scalar as PyYAML's SafeLoader (YAML 1.1) reads it: None, bool, number or text; else Undecided."""
    tag = node.tag
    if tag in (None, "!"):
        if not node.implicit:
            return node.value
        tag = _RESOLVER.resolve(yaml.ScalarNode, node.value, (True, False))  # type: ignore[no-untyped-call]
    if tag == _STR:
        return node.value
    construct = _CONSTRUCT.get(str(tag))
    if construct is None:
        what = f"the tag {tag}" if node.tag else "a form that YAML reads as neither text, number nor boolean"
        return Undecided(node.value, f"a value with {what}")
    try:
        return construct(yaml.ScalarNode(str(tag), node.value))
    except (ArithmeticError, LookupError, ValueError, yaml.YAMLError):
        return Undecided(node.value, f"a value that cannot be read as {str(tag).removeprefix(_CORE)}")


def _value_of(name: str, node: Node, flag: bool) -> object:
    """A setting's value as its reader receives it."""
    if node.kind == "alias" and _holds(node.target, node):
        return Undecided(f"*{node.value}", "an alias of what holds it")
    node = node.target
    if node.kind == "map":
        template = node.items and node.items[0].kind == "map"
        return Undecided("{…}", "a template placeholder" if template else "a mapping where a value is expected")
    if node.kind == "seq":
        return _list_value(node)
    if _INTERPOLATION.search(node.value):
        return Undecided(node.value, "a value that is computed when the file is used")
    value = _scalar_value(node)
    if name in (ENABLE, EXTERNAL):
        return _boolean(value, flag)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Undecided(node.value, "a number where a name is expected")
    return value


def _list_value(node: Node) -> object:
    if node.tag not in (None, "!", _SEQ):
        return Undecided("[…]", f"a list with the tag {node.tag}")
    values = [_scalar_value(item.target) if item.target.kind == "scalar" else None for item in node.items]
    if not all(isinstance(value, str) for value in values):
        return Undecided("[…]", "a list of something other than names")
    if any(_INTERPOLATION.search(str(value)) for value in values):
        return Undecided("[…]", "a list with a value that is computed when the file is used")
    return values


def _boolean(value: object, flag: bool) -> object:
    """What a boolean setting's value comes to; a flag without value is a flag that is given."""
    match value:
        case bool() | Undecided():
            return value
        case None:
            return flag
        case int() if value in (0, 1) and not flag:
            return bool(value)
        case str() if flag:
            # On a command line there are no quotes: the text is what the reader sees.
            read = _scalar_value(_plain(value))
            if isinstance(read, bool):
                return read
    return Undecided(str(value), "not a boolean (in Python any text that is not empty counts as true)")


def _plain(text: str) -> Node:
    node = Node("scalar", 0, 0, 0)
    node.value, node.implicit = text, True
    return node


def _defaults_of(root: Node, text: str) -> str:
    """The files named by a Hydra or OmegaConf ``defaults:``, empty when there is none but ``_self_``."""
    for key, value in root.pairs():
        if key.kind == "scalar" and key.value == "defaults":
            value = value.target
            items = value.items if value.kind == "seq" else [value]
            named = [item for item in items if not (item.kind == "scalar" and item.value in ("_self_", ""))]
            if value.kind in ("scalar", "seq") and named:
                return ", ".join(" ".join(text[item.start : item.end].split()) for item in named)
    return ""


def _unreadable(text: str, error: Exception) -> Problem:
    template = _TEMPLATE.search(text)
    at = _position_of(text, error)
    reason = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    context = getattr(error, "context", None)
    if context:
        reason = f"{reason} ({context})"
    if template:
        sign = template.group()
        return Problem(
            "CG002",
            Span(template.start(), template.start() + len(sign)),
            f"the file holds template markup (`{sign}`) and is no YAML before it is rendered: {reason}",
        )
    end = text.find("\n", at)
    return Problem("CG001", Span(at, max(at + 1, len(text) if end < 0 else end)), f"this is not valid YAML: {reason}")


def _position_of(text: str, error: Exception) -> int:
    """Where in the text a reader's error is; libyaml counts bytes where it refuses a character."""
    character, mark = getattr(error, "character", None), getattr(error, "problem_mark", None)
    if isinstance(character, int):
        return max(0, text.find(chr(character)))
    if isinstance(error, UnicodeEncodeError):
        return error.start
    return min(mark.index + _marks_of_order(text), len(text)) if mark else 0


# --- comparing two readings -------------------------------------------------------------------------


class _Comparison:
    """Two readings side by side, with everything in them: keys, values and their types, tags, anchors, aliases.

    Only the settings of the sites in ``wanted`` may differ, and they must be what is wanted.
    """

    def __init__(
        self, before: YamlDocument, after: YamlDocument, places: Sequence[_Place], wanted: Mapping[int, Settings]
    ) -> None:
        self.before, self.after, self.places, self.wanted = before, after, places, wanted
        self.touched: dict[int, list[int]] = {}
        for index in wanted:
            self.touched.setdefault(id(places[index].mapping), []).append(index)

    def first_difference(self) -> int | None:
        """Where the text before reads otherwise than the one after; None when nowhere."""
        if self.before.anchors != self.after.anchors or len(self.before.roots) != len(self.after.roots):
            return 0
        counterparts: dict[int, Node] = {}
        aliases: list[tuple[Node, Node]] = []
        stack = list(zip(self.before.roots, self.after.roots, strict=True))
        while stack:
            left, right = stack.pop()
            counterparts[id(left)] = right
            inner = self._inside(left, right) if _alike(left, right) else None
            if inner is None:
                return left.outer
            stack += inner
            if left.kind == "alias":
                aliases.append((left, right))
        return next(
            (left.outer for left, right in aliases if counterparts.get(id(left.target)) is not right.target), None
        )

    def _inside(self, left: Node, right: Node) -> list[tuple[Node, Node]] | None:
        """The nodes inside of two that have to be alike; None when they cannot be paired or settings are wrong."""
        indices = self.touched.get(id(left))
        if indices is None:
            return _paired(left.items, right.items)
        prefixes = {self.places[index].prefix for index in indices}
        result = _paired(_without_settings(left, prefixes), _without_settings(right, prefixes))
        found = _settings_in(right)
        for index in indices:
            inner = self._settings(index, found.get(self.places[index].prefix, []))
            if result is None or inner is None:
                return None
            result += inner
        return result

    def _settings(self, index: int, found: Sequence[tuple[str, Node, Node]]) -> list[tuple[Node, Node]] | None:
        own, after, place = self.before.sites[index].own, self.wanted[index], self.places[index]
        now = {name: (key, value) for name, key, value in found}
        if len(now) != len(found) or now.keys() != after.keys():
            return None if after or found else []
        plan = _plan(own, after, place)
        renamed = {change.new: change.old for change in plan if isinstance(change, Rename)}
        models = {change.name: change.after for change in plan if isinstance(change, Add)} | renamed
        result: list[tuple[Node, Node]] = []
        for name, (key, value) in now.items():
            source = name if name in own else renamed.get(name)
            if name in own:
                result.append((place.pairs[name][0], key))
            elif not self._is_spelled(name, key, place, models[name]):
                return None
            if source is not None and same(own[source], after[name]):
                result.append((place.pairs[source][1], value))
            elif not same(_value_of(name, value, key.target.value.startswith("--")), after[name]):
                return None
        return result

    @staticmethod
    def _is_spelled(name: str, key: Node, place: _Place, model: str) -> bool:
        """Whether a new key is spelled as the one it stands for or beside."""
        return (
            model in place.pairs
            and key.kind == "scalar"
            and _spelled(name, place, place.pairs[model][0]) == (key.value, key.style)
        )


def _alike(left: Node, right: Node) -> bool:
    alike = (left.kind, left.anchor, left.tag) == (right.kind, right.anchor, right.tag)
    return alike and (left.value, left.implicit) == (right.value, right.implicit)


def _paired(left: Sequence[Node], right: Sequence[Node]) -> list[tuple[Node, Node]] | None:
    return list(zip(left, right, strict=True)) if len(left) == len(right) else None


def _without_settings(mapping: Node, prefixes: set[str]) -> list[Node]:
    """Keys and values of a mapping but for the settings with one of the prefixes."""
    kept = [pair for pair in mapping.pairs() if not ((split := _split_key(pair[0])) and split[0] in prefixes)]
    return [node for pair in kept for node in pair]


# --- edits ------------------------------------------------------------------------------------------


def _plan(own: Settings, after: Settings, place: _Place) -> list[Change]:
    """The changes from one to the other; what comes takes the place of what goes, where it would stand beside it."""
    if not own:
        # ``changes`` puts what is new beside what is there.
        return [Add(name, value, after="") for name, value in after.items()]
    planned = changes(own, after)
    gone = [change.name for change in planned if isinstance(change, Remove)]
    result: list[Change] = []
    for change in planned:
        # In a flow mapping the commas around both would have to agree.
        heir = isinstance(change, Add) and (change.after in gone or (bool(gone) and place.mapping.flow))
        if isinstance(change, Add) and heir:
            old = change.after if change.after in gone else gone[0]
            gone.remove(old)
            change = Rename(old, change.name, change.value)
        result.append(change)
    return [change for change in result if not (isinstance(change, Remove) and change.name not in gone)]


def _spelled(name: str, place: _Place, like: Node) -> tuple[str, str | None]:
    """A key spelled as the one it stands for or beside, and its quotes."""
    word = "--" + name.replace("_", "-") if like.value.startswith("--") else place.prefix + name
    return word, like.style


class _SiteEditor:
    """Turns wanted settings of one mapping into changes of its text, in the mapping's own style."""

    def __init__(self, writer: _Writer, site: Site, place: _Place) -> None:
        self.writer, self.text, self.lines = writer, writer.text, writer.lines
        self.site, self.place = site, place
        self.mapping = place.mapping

    def write(self, after: Settings) -> None:
        """Hand the writer what gives the site these own settings."""
        planned = _plan(self.site.own, after, self.place)
        if not planned:
            return
        if self.site.fixed_in_place:
            self._refuse(self.site.fixed_in_place)
        if not self.site.written:
            self._refuse("the mapping only merges others, and the setting would have to be written there")
        positions = {id(key): at for at, (key, _) in enumerate(self.mapping.pairs())}
        for change in planned:
            self._check(change)
            match change:
                case Rename():
                    self._rename(change)
                case Revalue(name=name, value=value):
                    self._new_value(*self.place.pairs[name], value)
                case Add():
                    self._add(change)
                case Remove(name=name):
                    self.writer.drop(self.mapping, positions[id(self.place.pairs[name][0])], self.site.index)

    def _refuse(self, reason: str) -> None:
        raise CannotEditError(self.site.index, reason)

    def _check(self, change: Change) -> None:
        """Refuse where more hangs on the text than the setting: an anchor may be used elsewhere."""
        match change:
            case Rename(old=name, value=value):
                key, node = self.place.pairs[name]
                replaced = [key] if same(value, self.site.own[name]) else [key, node]
            case Add(after=name):
                (key, node), replaced = self.place.pairs[name], []
            case Revalue(name=name):
                key, node = self.place.pairs[name]
                replaced = [node]
            case Remove(name=name):
                key, node = self.place.pairs[name]
                replaced = [key, node]
        for anchor in _anchors_in(replaced):
            self._refuse(f"the anchor &{anchor} stands on what would be replaced")
        if key.kind == "alias":
            self._refuse("the key is an alias")
        if key.outer != key.start:
            self._refuse("the key carries an anchor or a tag")
        if self._is_explicit(key):
            self._refuse("the key is written with `?`")
        if self.mapping.flow and not self.mapping.brackets and not isinstance(change, Remove):
            self._refuse("the pair stands in a list without braces of its own")

    def _is_explicit(self, key: Node) -> bool:
        if self.text[self.mapping.start] == "?" or self.text[self.mapping.outer] == "?":
            return True
        before = self.writer.end_before(self.mapping, key)
        return "?" in re.sub(r"#[^\n\r\x85\u2028\u2029]*", "", self.text[before : key.outer])

    # -- renaming and values

    def _rename(self, change: Rename) -> None:
        key, node = self.place.pairs[change.old]
        self.writer.replace(key.start, key.end, _quoted(*_spelled(change.new, self.place, key)))
        if not same(change.value, self.site.own[change.old]):
            self._new_value(key, node, change.value)

    def _new_value(self, key: Node, node: Node, value: object) -> None:
        if node.kind == "map" and not node.brackets:
            self._refuse("the value is a mapping")
        if node.style in ("|", ">"):
            self._refuse("the value is a block of text")
        if node.kind == "seq" and isinstance(value, list) and self._kept_items(node, value) is not None:
            self._without_items(key, node, value)
            return
        text = self._literal(value, key, node.target, self.mapping.flow)
        colon = _colon(self.text, key)
        if colon is None:
            self.writer.replace(key.end, key.end, ": " + text)
        elif node.outer == node.end:
            self.writer.replace(colon, colon, " " + text)
        elif node.kind == "seq" and not node.flow:
            self._replace_block(colon, node, text)
        else:
            self.writer.replace(node.outer, node.end, text)

    def _replace_block(self, colon: int, node: Node, text: str) -> None:
        """Write a value behind the colon instead of a list in the lines below; a comment behind the colon stays."""
        if node.outer < node.start:
            self._refuse("the list carries an anchor or a tag")
        self.writer.replace(colon, colon, " " + text)
        self.writer.cut(self.lines.end(colon), self.lines.end(node.end))

    def _literal(self, value: object, key: Node, like: Node, flow: bool) -> str:
        """A value in the style of the one it replaces; quoted where the file is JSON at heart."""
        if isinstance(value, list):
            return "[" + ", ".join(self._literal(item, key, like, True) for item in value) + "]"
        if isinstance(value, bool) or value is None:
            return {True: "true", False: "false", None: "null"}[value]
        sample = like.items[0].target if like.kind == "seq" and like.items else like
        style = sample.style if sample.kind == "scalar" and sample.style in ("'", '"') else None
        if style is None and not (sample.kind == "scalar" and isinstance(_scalar_value(sample), str)):
            style = key.style
        word = str(value)
        # Between brackets a comma ends a word.
        plain = r"[A-Za-z_]\w*" if flow else r"[A-Za-z_](?:[\w ,]*\w)?"
        if style is None and not (re.fullmatch(plain, word, re.ASCII) and isinstance(_scalar_value(_plain(word)), str)):
            style = '"'
        return _quoted(word, style)

    # -- lists

    @staticmethod
    def _kept_items(node: Node, kept: Sequence[object]) -> list[int] | None:
        """Positions of the items that make up ``kept``; None when they are not in the list in this order."""
        positions: list[int] = []
        for value in kept:
            rest = range(positions[-1] + 1 if positions else 0, len(node.items))
            at = next((at for at in rest if same(_scalar_value(node.items[at].target), value)), None)
            if at is None:
                return None
            positions.append(at)
        return positions

    def _without_items(self, key: Node, node: Node, kept: Sequence[object]) -> None:
        """Take the items that are not kept out of a list, the others as written."""
        staying = self._kept_items(node, kept) or []
        gone = [at for at in range(len(node.items)) if at not in staying]
        if node.flow and not staying:
            self.writer.replace(node.start, node.end, "[]")
        elif node.flow:
            self.writer.drop_from_flow([(item.outer, item.end) for item in node.items], gone)
        elif not staying:
            self._replace_block(_colon(self.text, key) or key.end, node, "[]")
        else:
            dash = node.start
            for at, item in enumerate(node.items):
                if at:
                    dash = _GAP.match(self.text, node.items[at - 1].end).end()  # type: ignore[union-attr]
                if at in gone:
                    self.writer.cut(self.lines.start(dash), self.lines.end(max(dash, item.end)))

    # -- adding

    def _add(self, add: Add) -> None:
        key, node = self.place.pairs[add.after]
        between = self.text[key.end : node.outer] if node.outer < node.end else ": "
        if not re.fullmatch(r"[ \t]*:[ \t]*", between):
            between = ": "
        pair = (
            _quoted(*_spelled(add.name, self.place, key))
            + between
            + self._literal(add.value, key, node.target, self.mapping.flow)
        )
        end = max(key.end, node.end)
        if not self.mapping.flow:
            self.writer.insert_line(self.lines.end(end), _indent_of(self.text, self.lines.start(key.start), key) + pair)
            return
        comma = _comma(self.text, end)
        if not self.writer.has_its_lines(key.outer, end if comma is None else comma + 1):
            blanks = " " if comma is None or self.text[comma + 1] in " \t\r\n" else ""
            self.writer.replace(end, end, "," + blanks + pair)
            return
        indent = self.text[self.lines.start(key.start) : key.start]
        if comma is None:
            self.writer.replace(end, end, ",")
        self.writer.insert_line(self.lines.end(end if comma is None else comma), indent + pair + ("," if comma else ""))


class _Lines:
    """Where the lines of a text are, by YAML's own line breaks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in _BREAK.finditer(text))]

    def start(self, at: int) -> int:
        """Where the line that holds ``at`` begins."""
        return self.starts[bisect_right(self.starts, at) - 1]

    def end(self, at: int) -> int:
        """Behind the line break of the line that holds ``at``, or the end of the text."""
        following = bisect_right(self.starts, at)
        return self.starts[following] if following < len(self.starts) else len(self.text)

    def content_end(self, at: int) -> int:
        """Before the line break of the line that holds ``at``."""
        return self.end(at) - len(self.break_before(self.end(at)))

    def break_before(self, at: int) -> str:
        """The line break that ends at ``at``, empty when none does."""
        tail = self.text[max(0, at - 2) : at]
        if tail == "\r\n":
            return tail
        return tail[-1:] if _BREAK.fullmatch(tail[-1:]) else ""

    def newline(self, at: int) -> str:
        """The line break in use at ``at``: of its line, else of the one before."""
        return self.break_before(self.end(at)) or self.break_before(self.start(at)) or "\n"

    def is_blank(self, start: int, end: int) -> bool:
        """Whether there is nothing but white space."""
        return not self.text[start:end].strip(" \t\n\r\x85\u2028\u2029")


@dataclass(frozen=True, slots=True)
class _LineChange:
    """Whole lines go, from ``start`` to ``end``, or one comes at ``start``."""

    start: int
    end: int
    line: str | None = None


class _Writer:
    """Collects the changes of a text: spans replaced, whole lines that go or come, pairs that go."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = _Lines(text)
        self._edits: list[Edit] = []
        self._lines_changed: list[_LineChange] = []
        self._dropped: dict[int, tuple[Node, list[int], int]] = {}
        self._ends: dict[int, dict[int, int]] = {}

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a span within a line or value."""
        self._edits.append(Edit(start, end, text))

    def cut(self, start: int, end: int) -> None:
        """Delete whole lines; ``start`` and ``end`` are where lines begin."""
        self._lines_changed.append(_LineChange(start, end))

    def insert_line(self, at: int, line: str) -> None:
        """Write a new line at the beginning of a line, or at the end of the text."""
        self._lines_changed.append(_LineChange(at, at, line))

    def drop(self, mapping: Node, position: int, site: int) -> None:
        """Take a pair out of a mapping, once all that go are known."""
        self._dropped.setdefault(id(mapping), (mapping, [], site))[1].append(position)

    def end_before(self, mapping: Node, key: Node) -> int:
        """Where the pair before a key ends, or the mapping begins."""
        if id(mapping) not in self._ends:
            ends = [mapping.start, *(_end_of(pair) for pair in mapping.pairs())]
            keys = (id(key) for key, _ in mapping.pairs())
            self._ends[id(mapping)] = dict(zip(keys, ends, strict=False))
        return self._ends[id(mapping)][id(key)]

    def finish(self) -> list[Edit]:
        """Return the edits for all that was collected."""
        for mapping, positions, site in self._dropped.values():
            self._drop(mapping, sorted(positions), site)
        return self._edits + self._line_edits()

    # -- pairs that go

    def _drop(self, mapping: Node, gone: Sequence[int], site: int) -> None:
        pairs = list(mapping.pairs())
        if len(gone) == len(pairs) and self._emptied(mapping, pairs):
            return
        spans = [(key.outer, _end_of((key, value))) for key, value in pairs]
        if mapping.flow:
            self.drop_from_flow(spans, gone, pairs)
            return
        first = self.lines.start(spans[0][0])
        shares_line = not self.lines.is_blank(first, spans[0][0])
        for at in gone:
            if at or not shares_line:
                self._cut_pair(pairs, at)
        if shares_line and 0 in gone:
            if not _BEFORE_ITEM.fullmatch(self.text, first, spans[0][0]):
                raise CannotEditError(site, "the key shares its line with something else")
            self._drop_behind_dash(spans, gone)

    def _emptied(self, mapping: Node, pairs: Sequence[tuple[Node, Node]]) -> bool:
        """Write ``{}`` for a mapping that loses all its pairs; False where comments between braces stay."""
        text, (first, value) = self.text, pairs[0]
        if mapping.flow:
            gaps = [text[a:b] for a, b in _gaps(mapping, pairs)]
            if "#" in "".join(gaps):
                return False
            self.replace(mapping.start, mapping.end, "{}")
            return True
        line = self.lines.start(first.outer)
        if not self.lines.is_blank(line, first.outer) or mapping.key is None or mapping.outer < mapping.start:
            # Behind a dash, at the top of the file, or behind an anchor: in the place of the first pair.
            self.replace(first.outer, self.lines.content_end(_end_of((first, value))), "{}")
            rest = range(1, len(pairs))
        else:
            colon = _colon(text, mapping.key) or mapping.key.end
            self.replace(colon, colon, " {}")
            rest = range(len(pairs))
        for at in rest:
            self._cut_pair(pairs, at)
        return True

    def _cut_pair(self, pairs: Sequence[tuple[Node, Node]], at: int) -> None:
        """Delete the lines of a pair of a block mapping, with the comment lines that are plainly its own."""
        key = pairs[at][0]
        first = self._comment_above(self.lines.start(key.outer), pairs, at)
        self.cut(first, self.lines.end(_end_of(pairs[at])))

    def _drop_behind_dash(self, spans: Sequence[tuple[int, int]], gone: Sequence[int]) -> None:
        """Take out the first pairs of a mapping behind ``- ``: the next one moves up."""
        start, end = spans[0]
        following = next(at for at in range(len(spans)) if at not in gone)
        gaps = [(self.lines.content_end(spans[at - 1][1]), spans[at][0]) for at in range(1, following + 1)]
        if all(self.lines.is_blank(*gap) for gap in gaps):
            # The lines between are part of this, so they are not cut again.
            inside = [change for change in self._lines_changed if start <= change.start < spans[following][0]]
            self._lines_changed = [change for change in self._lines_changed if change not in inside]
            self.replace(start, spans[following][0], "")
            return
        # Comments between belong to what follows: the dash stays alone above them.
        dash = start
        while self.text[dash - 1] in " \t":
            dash -= 1
        self.replace(dash, self.lines.content_end(end), "")

    def drop_from_flow(
        self,
        spans: Sequence[tuple[int, int]],
        gone: Sequence[int],
        pairs: Sequence[tuple[Node, Node]] = (),
    ) -> None:
        """Take items out of a flow collection, each with the comma behind it, the last with the one before."""
        last = len(spans) - 1
        commas = [_comma(self.text, end) for _, end in spans]
        kept = [at for at in range(len(spans)) if at not in gone]
        single = list(gone)
        if last in gone and commas[last] is None and kept:
            comma = commas[kept[-1]] or spans[kept[-1]][1]
            run = range(kept[-1] + 1, last + 1)
            between = [(comma + 1, spans[run[0]][0]), *((spans[at - 1][1], spans[at][0]) for at in run[1:])]
            behind = self.text[spans[last][1] : self.lines.content_end(spans[last][1])].lstrip(" \t")
            if "#" not in behind[:1] and not any("#" in self.text[a:b] for a, b in between):
                self.replace(comma, spans[last][1], "")
                single = [at for at in gone if at < run[0]]
            else:
                self.replace(comma, comma + 1, "")
        for at in single:
            comma_behind = commas[at]
            end = spans[at][1] if comma_behind is None else comma_behind + 1
            self._drop_item(spans[at][0], end, (pairs, at) if pairs else None)

    def _drop_item(self, start: int, end: int, pair: tuple[Sequence[tuple[Node, Node]], int] | None) -> None:
        first = self.lines.start(start)
        if self.has_its_lines(start, end):
            if pair:
                first = self._comment_above(first, *pair)
            self.cut(first, self.lines.end(end))
            return
        rest = self.text[end : self.lines.content_end(end)]
        blanks = len(rest) - len(rest.lstrip(" \t"))
        if blanks < len(rest) and rest[blanks] != "#":
            self.replace(start, end + blanks, "")
        else:
            # At the end of its line, behind something else.
            head = self.text[first:start]
            kept = head.rstrip(" \t")
            self.replace(start - (len(head) - len(kept) if kept else 0), end, "")

    def has_its_lines(self, start: int, end: int) -> bool:
        """Whether a span begins and ends lines of its own, but for a comment behind it."""
        tail = self.text[end : self.lines.content_end(end)].lstrip(" \t")
        return self.lines.is_blank(self.lines.start(start), start) and (not tail or tail[0] == "#")

    def _comment_above(self, line: int, pairs: Sequence[tuple[Node, Node]], at: int) -> int:
        """Where the comment lines begin that stand directly above and speak of this pair's key and no other."""
        key, first = pairs[at][0], line
        top = _end_of(pairs[at - 1]) if at else 0
        indent = self.text[line : key.outer]
        while first:
            previous = self.lines.start(first - 1)
            if previous < top or not self.text.startswith(indent + "#", previous):
                break
            first = previous
        words, own = _words(self.text[first:line]), _words(key.value)
        if not words & own:
            return line
        others = {word for other, _ in pairs for word in _words(other.target.value)} - own
        return line if words & others else first

    # -- lines

    def _line_edits(self) -> list[Edit]:
        """Edits for the lines that go and come, those that touch together."""
        result: list[Edit] = []
        group: list[_LineChange] = []
        for change in sorted(self._lines_changed, key=lambda change: change.start):
            if group and change.start > max(other.end for other in group):
                result.append(self._line_edit(group))
                group = []
            group.append(change)
        return result + ([self._line_edit(group)] if group else [])

    def _line_edit(self, group: Sequence[_LineChange]) -> Edit:
        start, end = group[0].start, max(change.end for change in group)
        lines = [change.line for change in group if change.line is not None]
        newline = self.lines.newline(max(0, start - 1))
        if end == len(self.text) and not self.lines.break_before(end) and start <= end:
            # The file has no final line break; the line that is last then must not have one either.
            if lines and start == self.lines.start(start) and start < end:
                return Edit(start, end, newline.join(lines))
            if lines:
                return Edit(end, end, "".join(newline + line for line in lines))
            return Edit(start - len(self.lines.break_before(start)), end, "")
        if not lines and self._is_blank_line(end) and (not start or self._is_blank_line(self.lines.start(start - 1))):
            # Of two blank lines that meet, one goes.
            end = self.lines.end(end)
        return Edit(start, end, "".join(line + newline for line in lines))

    def _is_blank_line(self, at: int) -> bool:
        return at < len(self.text) and self.lines.is_blank(at, self.lines.end(at))


def _end_of(pair: tuple[Node, Node]) -> int:
    return max(pair[0].end, pair[1].end)


def _gaps(mapping: Node, pairs: Sequence[tuple[Node, Node]]) -> Iterator[tuple[int, int]]:
    """What lies between the pairs of a flow mapping and at its ends."""
    at = mapping.start
    for pair in pairs:
        yield at, pair[0].outer
        at = _end_of(pair)
    yield at, mapping.end


def _comma(text: str, end: int) -> int | None:
    """Where the comma behind an item of a flow collection is; None when there is none."""
    at = _GAP.match(text, end).end()  # type: ignore[union-attr]
    return at if text[at : at + 1] == "," else None


def _anchors_in(nodes: Sequence[Node]) -> Iterator[str]:
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.anchor:
            yield node.anchor
        stack += node.items


def _quoted(word: str, style: str | None) -> str:
    if style == "'":
        return "'" + word.replace("'", "''") + "'"
    return json.dumps(word, ensure_ascii=False) if style == '"' else word


def _indent_of(text: str, line: int, key: Node) -> str:
    """White space that puts a new line's key below this one, also behind `- `."""
    return "".join(char if char in " \t" else " " for char in text[line : key.start])


def _words(text: str) -> set[str]:
    """The names in a comment or key: the last part of dotted ones, hyphens and underscores alike."""
    found = re.findall(r"[\w.\-]+", text)
    return {word.rstrip(".").rpartition(".")[2].strip("-").replace("-", "_") for word in found} - {""}

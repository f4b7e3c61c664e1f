"""YAML files: sites are mappings that hold CUDA-graph settings.

PyYAML's C parser gives events with exact marks; a small tree of spans over them is all that is
needed, and nothing emits YAML: an edit replaces the bytes of a key, a value or a line. Traps of
the marks (found by measuring): they count code points; a scalar's mark stands on its anchor or
tag; the end of block collections and block scalars runs on to the next token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from cgmigrate.documents import Add, CannotEditError, Problem, Remove, Rename, Revalue, Site, Span, Written, changes
from cgmigrate.edits import Edit
from cgmigrate.settings import ENABLE, EXTERNAL, FIELDS, Settings, Undecided

_FIELD_OF_KEY = {name: name for name in FIELDS} | {"--" + name.replace("_", "-"): name for name in FIELDS}
_TRUE = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_INTERPOLATION = re.compile(r"\$\{|\$\(|\$[A-Za-z_]|\{\{|\{%|<%|<<[A-Z]")
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\{#")
_MAX_USES = 64


class Node:
    """One node of the file; ``start`` is behind anchor and tag, ``end`` behind its last character."""

    __slots__ = ("alias_of", "anchor", "end", "flow", "items", "kind", "outer", "start", "style", "tag", "value")

    def __init__(self, kind: str, outer: int, start: int, end: int) -> None:
        self.kind = kind
        self.outer, self.start, self.end = outer, start, end
        self.value = ""
        self.style: str | None = None
        self.tag: str | None = None
        self.anchor: str | None = None
        self.flow = False
        self.items: list[Node] = []
        self.alias_of: Node | None = None

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Key and value of each pair of a mapping."""
        return zip(self.items[::2], self.items[1::2], strict=True)

    @property
    def plain(self) -> bool:
        """A scalar without quotes, whose text decides its type."""
        return self.kind == "scalar" and not self.style


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
        try:
            self.roots = _parse(text)
        except yaml.YAMLError as error:
            self.problems.append(_unreadable(text, error))
            return
        self._read()

    # --- reading ----------------------------------------------------------------------------

    def _read(self) -> None:
        uses = _uses_of(self.roots)
        by_mapping: dict[int, list[int]] = {}
        for root in self.roots:
            if root.kind == "map":
                self.top_level += [key.value for key, _ in root.pairs() if key.kind == "scalar"]
                self.builds_on = self.builds_on or _defaults_of(root, self.text)
        for mapping, path in _mappings(self.roots):
            for place in _places_in(mapping):
                index = len(self._places)
                self._places.append(place)
                by_mapping.setdefault(id(mapping), []).append(index)
                self.sites.append(self._site(index, place, path, uses))
        self._link(by_mapping)

    def _site(
        self, index: int, place: _Place, path: tuple[str, ...], uses: Mapping[int, list[tuple[str, ...]]]
    ) -> Site:
        mapping = place.mapping
        written: list[Written] = []
        fixed = ""
        for key, value in mapping.pairs():
            name = _field_of(key, place.prefix)
            if name is None:
                continue
            span = Span(key.start, max(key.end, value.end))
            if name in place.pairs:
                again = self.text.count("\n", 0, place.pairs[name][0].start) + 1
                self.problems.append(
                    Problem("CG005", span, f"`{key.value}` is also written on line {again}; YAML keeps the last one")
                )
                fixed = "a setting is written twice"
            place.pairs[name] = (key, value)
            written = [w for w in written if w.field != name]
            written.append(Written(name, key.value, _value_of(name, value, key.value.startswith("--")), span))
        neighbours = {
            key.value: _plain_value(value)
            for key, value in mapping.pairs()
            if key.kind == "scalar" and value.kind == "scalar" and _field_of(key, place.prefix) is None
        }
        inner = tuple(filter(None, place.prefix.rstrip(".").split(".")))
        start, end = mapping.start, mapping.end
        return Site(
            index,
            path + inner,
            Span(start, end),
            tuple(written),
            flags=any(w.key.startswith("--") for w in written),
            used_at=tuple(other + inner for other in uses.get(id(mapping), ())),
            neighbours=neighbours,
            fixed_in_place=fixed,
        )

    def _link(self, by_mapping: Mapping[int, list[int]]) -> None:
        """Fill in ``inherits``: the sites of the mappings that a site's mapping merges."""
        from dataclasses import replace

        for index, place in enumerate(self._places):
            merged = [
                source
                for mapping in _merged(place.mapping)
                for source in by_mapping.get(id(mapping), ())
                if self._places[source].prefix == place.prefix
            ]
            if merged:
                self.sites[index] = replace(self.sites[index], inherits=tuple(merged))

    # --- writing ----------------------------------------------------------------------------

    def edits(self, wanted: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that give each site the wanted own settings; see ``documents.Document``."""
        result: list[Edit] = []
        for index, after in sorted(wanted.items()):
            result += _SiteEditor(self.text, self.sites[index], self._places[index]).edits(after)
        return result

    def check(self, edited: str, wanted: Mapping[int, Settings]) -> str:
        """Read the edited text again; return what differs beyond ``wanted``, empty when nothing."""
        again = YamlDocument(edited)
        if again.problems and not self.problems:
            return f"it would no longer be read: {again.problems[0].message}"
        by_mapping: dict[int, dict[str, Settings]] = {}
        for index, place in enumerate(self._places):
            by_mapping.setdefault(id(place.mapping), {})[place.prefix] = wanted.get(index, self.sites[index].own)
        if [_shape(root, by_mapping) for root in self.roots] != [_shape(root, {}) for root in again.roots]:
            return "something else in the file would be read differently"
        return ""


# --- the tree -------------------------------------------------------------------------------------


def _parse(text: str) -> list[Node]:
    """The roots of the file's documents. Raises yaml.YAMLError; nesting costs no stack."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    roots: list[Node] = []
    open_nodes: list[Node] = []
    anchors: dict[str, Node] = {}
    for event in yaml.parse(text, loader):
        node: Node | None = None
        start, end = event.start_mark.index, event.end_mark.index  # type: ignore[union-attr]
        match event:
            case yaml.ScalarEvent():
                node = Node("scalar", start, _behind_properties(text, start, event), end)
                node.value, node.style, node.tag = event.value, event.style or None, event.tag
                if node.style in ("|", ">"):
                    node.end = _end_of_block(text, node.start, end)
            case yaml.AliasEvent():
                node = Node("alias", start, start, end)
                node.value, node.alias_of = str(event.anchor), anchors.get(str(event.anchor))
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
                node = Node(kind, start, _behind_properties(text, start, event), end)
                node.flow, node.tag = bool(event.flow_style), event.tag
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                closed = open_nodes.pop()
                if closed.flow:
                    closed.end = end
                elif closed.items:
                    closed.end = closed.items[-1].end
                continue
            case yaml.DocumentStartEvent():
                anchors = {}
                continue
            case _:
                continue
        if open_nodes:
            open_nodes[-1].items.append(node)
        else:
            roots.append(node)
        if node.kind != "alias" and event.anchor:
            node.anchor = event.anchor
            anchors[event.anchor] = node
        if node.kind in ("map", "seq"):
            open_nodes.append(node)
    return roots


_PROPERTY = re.compile(r"(?:[&!][^\s,\[\]{}]*|![<][^>]*>)(?=[\s,\[\]{}]|$)")
_BLANK = re.compile(r"(?:[ \t]+|#[^\n]*|\r?\n)*")


def _behind_properties(text: str, start: int, event: Any) -> int:
    """Where the content begins: the event's mark stands on an anchor or tag when there is one."""
    if event.anchor is None and event.tag is None:
        return start
    while found := _PROPERTY.match(text, start):
        start = _BLANK.match(text, found.end()).end()  # type: ignore[union-attr]
    return start


def _end_of_block(text: str, start: int, end: int) -> int:
    """The end of a literal or folded scalar: behind its last line that is not blank."""
    return start + len(text[start:end].rstrip())


def _mappings(roots: Sequence[Node]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Every mapping with the keys that lead to it, in the order of the text."""
    stack: list[tuple[Node, tuple[str, ...]]] = [(root, ()) for root in reversed(roots)]
    while stack:
        node, path = stack.pop()
        if node.kind == "map":
            yield node, path
            children = [(value, (*path, key.value if key.kind == "scalar" else "?")) for key, value in node.pairs()]
        else:
            children = [(item, path) for item in node.items]
        stack += reversed(children)


def _merged(mapping: Node) -> list[Node]:
    """The mappings that ``<<`` merges into this one, nearest first."""
    result: list[Node] = []
    for key, value in mapping.pairs():
        if key.plain and key.value == "<<":
            sources = value.items if value.kind == "seq" else [value]
            result += [source.alias_of or source for source in sources]
    return [node for node in result if node.kind == "map" and node is not mapping]


def _uses_of(roots: Sequence[Node]) -> dict[int, list[tuple[str, ...]]]:
    """Mapping (by id) → the other paths at which it is read, through aliases of it or of what holds it."""
    aliases: dict[int, list[tuple[str, ...]]] = {}
    for mapping, path in _mappings(roots):
        for key, value in mapping.pairs():
            merge = key.plain and key.value == "<<"
            for item in value.items if value.kind == "seq" else [value]:
                if item.kind == "alias" and item.alias_of is not None:
                    place = path if merge else (*path, key.value)
                    aliases.setdefault(id(item.alias_of), []).append(place)
    if not aliases:
        return {}
    uses: dict[int, list[tuple[str, ...]]] = {}
    stack: list[tuple[Node, list[tuple[str, ...]]]] = [(root, []) for root in roots]
    while stack:
        node, others = stack.pop()
        others = (others + aliases.get(id(node), []))[:_MAX_USES]
        if node.kind == "map":
            uses[id(node)] = others
            stack += [(value, [(*other, key.value) for other in others]) for key, value in node.pairs()]
        else:
            stack += [(item, others) for item in node.items]
    return uses


def _shape(node: Node, wanted: Mapping[int, Mapping[str, Settings]]) -> object:
    """What a reader gets from the node, in a form that can be compared; settings of sites apart.

    ``wanted`` replaces the settings of a mapping (by id and prefix) by those it should have.
    """
    done: dict[int, object] = {}
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, children_done = stack.pop()
        if current.items and not children_done:
            stack.append((current, True))
            stack += [(item, False) for item in current.items]
            continue
        head = (current.kind, current.anchor, current.tag)
        if current.kind != "map":
            own: object = (current.value, current.plain) if current.kind in ("scalar", "alias") else ()
            done[id(current)] = (*head, own, tuple(done[id(item)] for item in current.items))
            continue
        places = _places_in(current)
        rest = [
            (done[id(key)], done[id(value)])
            for key, value in current.pairs()
            if not any(_field_of(key, place.prefix) for place in places)
        ]
        settings: dict[str, list[tuple[str, str]]] = {}
        for place in places:
            own_settings: Settings = {
                name: _value_of(name, value, key.value.startswith("--"))
                for key, value in current.pairs()
                if (name := _field_of(key, place.prefix))
            }
            own_settings = wanted.get(id(current), {}).get(place.prefix, own_settings)
            if own_settings:
                settings[place.prefix] = sorted((name, repr(value)) for name, value in own_settings.items())
        done[id(current)] = (*head, tuple(rest), tuple(sorted((k, tuple(v)) for k, v in settings.items())))
    return done[id(node)]


# --- keys and values ------------------------------------------------------------------------------


def _split_key(key: Node) -> tuple[str, str] | None:
    """(prefix of a dotted key, field) when the key names a setting."""
    if key.kind != "scalar" or key.style in ("|", ">"):
        return None
    prefix, dot, last = key.value.rpartition(".")
    name = _FIELD_OF_KEY.get(last)
    if name is None or (dot and (last.startswith("-") or not re.fullmatch(r"[\w\-+/@.]+", prefix))):
        return None
    return prefix + dot, name


def _field_of(key: Node, prefix: str) -> str | None:
    split = _split_key(key)
    return split[1] if split and split[0] == prefix else None


def _places_in(mapping: Node) -> list[_Place]:
    """One place for the plain keys of a mapping, one for each prefix of its dotted keys.

    A mapping that only merges others is a place as well: what it merges must keep its meaning there.
    """
    prefixes = [split[0] for key, _ in mapping.pairs() if (split := _split_key(key))]
    if _merged(mapping):
        prefixes.append("")
    return [_Place(mapping, prefix) for prefix in dict.fromkeys(prefixes)]


def _plain_value(node: Node) -> object:
    """A scalar as YAML 1.1 reads it, as far as settings need: None, bool, or its text."""
    if node.plain and node.tag is None:
        if node.value in _TRUE | _FALSE:
            return node.value in _TRUE
        if node.value in _NULL:
            return None
    return node.value


def _value_of(name: str, node: Node, flag: bool) -> object:
    if node.kind == "alias":
        target = node.alias_of
        return Undecided(f"*{node.value}", "an alias") if target is None else _value_of(name, target, flag)
    if node.kind == "map":
        template = node.items and node.items[0].kind == "map"
        return Undecided("{…}", "a template placeholder" if template else "a mapping where a value is expected")
    if node.kind == "seq":
        items = [item.alias_of or item for item in node.items]
        values = [_plain_value(item) if item.kind == "scalar" else item for item in items]
        if not all(isinstance(value, str) for value in values):
            return Undecided("[…]", "a list of something other than names")
        if any(_INTERPOLATION.search(str(value)) for value in values):
            return Undecided("[…]", "a list with a value that is computed when the file is used")
        return values
    if _INTERPOLATION.search(node.value):
        return Undecided(node.value, "a value that is computed when the file is used")
    if node.tag not in (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:bool"):
        return Undecided(f"{node.tag} {node.value}", f"a value with the tag {node.tag}")
    value = _plain_value(node)
    if name in (ENABLE, EXTERNAL):
        return _boolean(value, flag)
    return value


def _boolean(value: object, flag: bool) -> object:
    if value is None or isinstance(value, bool):
        return bool(value) if not flag or value is not None else True
    if value in ("1", "0") and not flag:
        return value == "1"
    if flag and value in _TRUE | _FALSE:
        return value in _TRUE
    return Undecided(str(value), "not a boolean (in Python any text that is not empty counts as true)")


def _defaults_of(root: Node, text: str) -> str:
    """The files named by a Hydra or OmegaConf ``defaults:``, empty when there is none but ``_self_``."""
    for key, value in root.pairs():
        if key.kind == "scalar" and key.value == "defaults":
            items = value.items if value.kind == "seq" else [value]
            named = [item for item in items if not (item.kind == "scalar" and item.value in ("_self_", ""))]
            if value.kind in ("scalar", "seq") and named:
                return ", ".join(" ".join(text[item.start : item.end].split()) for item in named)
    return ""


def _unreadable(text: str, error: yaml.YAMLError) -> Problem:
    template = _TEMPLATE.search(text)
    mark = getattr(error, "problem_mark", None)
    at = min(mark.index if mark else getattr(error, "position", 0), len(text))
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


# --- edits of one site ------------------------------------------------------------------------------


class _SiteEditor:
    """Turns wanted settings of one mapping into edits, in the mapping's own style."""

    def __init__(self, text: str, site: Site, place: _Place) -> None:
        self.text, self.site, self.place = text, site, place
        self.mapping = place.mapping

    def edits(self, after: Settings) -> list[Edit]:
        planned = changes(self.site.own, after)
        if not planned:
            return []
        if self.site.fixed_in_place:
            self._refuse(self.site.fixed_in_place)
        removed = [change.name for change in planned if isinstance(change, Remove)]
        added = [change for change in planned if isinstance(change, Add)]
        self._check_anchors(planned)
        if len(removed) == len(self.mapping.items) // 2 and not added:
            return self._empty()
        result: list[Edit] = []
        for change in planned:
            match change:
                case Rename():
                    result += self._rename(change)
                case Revalue(name=name, value=value):
                    result += self._new_value(*self.place.pairs[name], value)
                case Add():
                    result.append(self._add(change))
        return result + self._remove(removed)

    def _refuse(self, reason: str) -> None:
        raise CannotEditError(self.site.index, reason)

    def _check_anchors(self, planned: Sequence[object]) -> None:
        """An anchor on a key or value that goes may be used elsewhere."""
        for change in planned:
            name = change.old if isinstance(change, Rename) else getattr(change, "name", "")
            if isinstance(change, Add) or name not in self.place.pairs:
                continue
            key, value = self.place.pairs[name]
            keeps_value = isinstance(change, Rename) and change.value is self.site.own[name]
            nodes = [key] if keeps_value else [key, value, *value.items]
            for node in nodes:
                if node.anchor:
                    self._refuse(f"the anchor &{node.anchor} stands on what would be replaced")
            if key.kind != "scalar" or key.outer != key.start:
                self._refuse("the key carries a tag")
            if self.text[: key.outer].rstrip(" \t").endswith("?"):
                self._refuse("the key is written with `?`")

    # -- renaming and values

    def _key_text(self, name: str, like: Node) -> str:
        """A key spelled as the one it stands for or beside."""
        flag = like.value.startswith("--")
        word = "--" + name.replace("_", "-") if flag else self.place.prefix + name
        return _quoted(word, like.style)

    def _rename(self, change: Rename) -> list[Edit]:
        key, node = self.place.pairs[change.old]
        result = [Edit(key.start, key.end, self._key_text(change.new, key))]
        if change.value is not self.site.own[change.old]:
            result += self._new_value(key, node, change.value)
        return result

    def _new_value(self, key: Node, node: Node, value: object) -> list[Edit]:
        if node.kind == "seq" and isinstance(value, list):
            return self._without_items(node, value)
        text = self._scalar(value, key, node)
        if node.kind == "scalar" and node.start == node.end:
            # `key:` with nothing behind it.
            colon = self.text.index(":", key.end) + 1
            return [Edit(colon, colon, " " + text)]
        if node.kind == "scalar" and node.style in ("|", ">"):
            self._refuse("the value is a block of text")
        start = node.outer
        if node.kind == "seq" and not node.flow:
            start = self.text.index(":", key.end) + 1
            text = " " + text
        return [Edit(start, node.end, text)]

    def _scalar(self, value: object, key: Node, like: Node) -> str:
        """A value in the style of the one it replaces; quoted where the file is JSON at heart."""
        if isinstance(value, list):
            return "[" + ", ".join(self._scalar(item, key, like) for item in value) + "]"
        if isinstance(value, bool) or value is None:
            return {True: "true", False: "false", None: "null"}[value]
        sample = like.items[0] if like.kind == "seq" and like.items else like
        style = sample.style if sample.kind == "scalar" and sample.style in ("'", '"') else None
        return _quoted(str(value), style or key.style)

    def _without_items(self, node: Node, kept: Sequence[object]) -> list[Edit]:
        """Take the items that are not kept out of a list, the others as written."""
        wanted, gone = list(kept), []
        for position, item in enumerate(node.items):
            value = (item.alias_of or item).value
            if value in wanted:
                wanted.remove(value)
            else:
                gone.append(position)
        if len(gone) == len(node.items):
            start = node.start if node.flow else self.text.rindex(":", 0, node.start) + 1
            return [Edit(start, node.end, "[]" if node.flow else " []")]
        if node.flow:
            return _without(gone, [(item.outer, item.end) for item in node.items])
        lines = [(self.text.rindex("-", 0, node.items[at].outer), node.items[at].end) for at in gone]
        return [self._delete_lines(start, end) for start, end in lines]

    # -- adding

    def _add(self, add: Add) -> Edit:
        key, node = self.place.pairs[add.after]
        between = self.text[key.end : node.outer] if node.kind == "scalar" and node.start < node.end else ": "
        between = between if between.strip() == ":" and "\n" not in between else ": "
        value = self._scalar(add.value, key, node)
        pair = self._key_text(add.name, key) + between + value
        end = max(key.end, node.end)
        if self.mapping.flow:
            return Edit(end, end, ", " + pair)
        line_end = _line_end(self.text, end)
        newline = _newline_near(self.text, key.start)
        indent = _indent_of(self.text, key.start)
        if line_end < len(self.text):
            return Edit(line_end, line_end, indent + pair + newline)
        return Edit(line_end, line_end, newline + indent + pair)

    # -- removing

    def _empty(self) -> list[Edit]:
        """Nothing would be left: an empty mapping takes the place of the pairs."""
        mapping = self.mapping
        if mapping.flow:
            return [Edit(mapping.start, mapping.end, "{}")]
        before = self.text[: mapping.start]
        head = before.rstrip(" \t\r\n")
        line_start = before.rfind("\n") + 1
        in_place = before[line_start:].strip() or not head or not head.endswith(":")
        if in_place:
            return [Edit(mapping.start, mapping.end, "{}")]
        # The pairs stand on lines of their own below `key:`.
        end = _line_end(self.text, mapping.end)
        newline = "" if self.text[end - 1 : end] != "\n" else _newline_near(self.text, mapping.start)
        return [Edit(len(head), end, " {}" + newline)]

    def _remove(self, names: Sequence[str]) -> list[Edit]:
        pairs = list(self.mapping.pairs())
        keys = [self.place.pairs[name][0] for name in names]
        gone = [position for position, (key, _) in enumerate(pairs) if key in keys]
        spans = [(key.outer, max(key.end, node.end)) for key, node in pairs]
        if self.mapping.flow:
            on_lines = [at for at in gone if self._has_its_lines(*spans[at])]
            inline = [at for at in gone if at not in on_lines]
            return [self._delete_lines(*spans[at]) for at in on_lines] + _without(inline, spans)
        result: list[Edit] = []
        ranges: list[tuple[int, int]] = []
        for at in gone:
            key, (start, end) = pairs[at][0], spans[at]
            first = self.text.rfind("\n", 0, start) + 1
            if self.text[first:start].strip():
                # Behind `- `: the next pair moves up to this one's place.
                if at + 1 == len(pairs) or not re.fullmatch(r"[ \t]*(- *)+", self.text[first:start]):
                    self._refuse("the key shares its line with something else")
                result.append(Edit(start, spans[at + 1][0], ""))
                continue
            first = _comment_above(self.text, first, key.value, self._other_keys(key.value))
            if ranges and ranges[-1][1] == first:
                first = ranges.pop()[0]
            ranges.append((first, _line_end(self.text, end)))
        return result + [self._delete_lines(start, end) for start, end in ranges]

    def _has_its_lines(self, start: int, end: int) -> bool:
        """Whether a pair of a flow mapping begins and ends lines of its own."""
        first = self.text.rfind("\n", 0, start) + 1
        tail = self.text[end : _line_end(self.text, end)]
        return not self.text[first:start].strip() and bool(re.fullmatch(r"[ \t]*,?[ \t]*(#.*)?\r?\n", tail))

    def _delete_lines(self, start: int, end: int) -> Edit:
        """Delete the lines that hold ``start`` to ``end``; of two blank lines that meet, one goes."""
        first = self.text.rfind("\n", 0, start) + 1
        # A range of whole lines ends behind its line break already.
        last = end if end > first and self.text[end - 1] == "\n" else _line_end(self.text, end)
        before = self.text[:first]
        if last == len(self.text) and not self.text.endswith("\n") and first:
            # The file had no final line break; the line that is last now must not have one either.
            return Edit(first - (2 if before.endswith("\r\n") else 1), last, "")
        blank = re.compile(r"[ \t]*\r?\n").match(self.text, last)
        if blank and (not before or re.search(r"\n[ \t]*\r?\n\Z", before)):
            last = blank.end()
        return Edit(first, last, "")

    def _other_keys(self, name: str) -> list[str]:
        return [key.value for key, _ in self.mapping.pairs() if key.kind == "scalar" and key.value != name]


def _without(gone: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[Edit]:
    """Take items out of a flow collection, each run of them with one of the commas around it."""
    result: list[Edit] = []
    for at in gone:
        if at - 1 in gone:
            continue
        last = at
        while last + 1 in gone:
            last += 1
        if last + 1 < len(spans):
            result.append(Edit(spans[at][0], spans[last + 1][0], ""))
        else:
            result.append(Edit(spans[at - 1][1] if at else spans[at][0], spans[last][1], ""))
    return result


def _quoted(word: str, style: str | None) -> str:
    return f"{style}{word}{style}" if style in ("'", '"') else word


def _line_end(text: str, at: int) -> int:
    """Behind the line break of the line that holds ``at``, or the end of the text."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _newline_near(text: str, at: int) -> str:
    """The line break in use around ``at``."""
    end = text.find("\n", at)
    if end < 0:
        end = text.rfind("\n", 0, at)
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def _indent_of(text: str, at: int) -> str:
    """White space that puts a new line's key below the one at ``at``, also behind `- `."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return "".join(char if char in " \t" else " " for char in line)


def _comment_above(text: str, line_start: int, key: str, others: Sequence[str]) -> int:
    """Where the comment lines begin that stand directly above and speak of this key and no other."""
    first = line_start
    indent = re.compile(r"[ \t]*").match(text, line_start).group()  # type: ignore[union-attr]
    while first:
        previous = text.rfind("\n", 0, first - 1) + 1
        if not text.startswith(indent + "#", previous):
            break
        first = previous
    block = text[first:line_start]
    bare = key.rpartition(".")[2].lstrip("-")
    spellings = {bare, bare.replace("-", "_"), bare.replace("_", "-")}
    about = any(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", block) for word in spellings)
    about_others = any(re.search(rf"(?<![\w-]){re.escape(other)}(?![\w-])", block) for other in others if other)
    return first if about and not about_others else line_start

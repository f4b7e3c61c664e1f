"""Rewrites one site: changes of a mapping's pairs that give it other settings, in its own style."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cgmigrate.documents.changes import Add, Change, Remove, Rename, Revalue, changes, same
from cgmigrate.documents.sites import CannotEditError, Site
from cgmigrate.documents.yaml.keys import MappingNodes, is_flag, section_of
from cgmigrate.documents.yaml.line_edits import LineEdits, anchors_in, in_quotes, indent_of
from cgmigrate.documents.yaml.tree import GAP, Node, colon_of, is_merge, plain_node
from cgmigrate.documents.yaml.values import scalar_value
from cgmigrate.megatron.catalogue import Catalogue, Setting
from cgmigrate.megatron.settings import Settings

# --- moves between sections -----------------------------------------------------------------------


class SectionMoves:
    """The moves between the sections of one mapping; lines that get into the same section are written together."""

    def __init__(self, writer: LineEdits, mapping: Node, site: int) -> None:
        self.writer, self.text, self.lines = writer, writer.text, writer.lines
        self.mapping, self.site = mapping, site
        self._moved: dict[str, tuple[tuple[Node, Node], list[str]]] = {}
        """Section → the pair of the section before, and the lines that it gets, without their indentation."""
        self._left: dict[int, tuple[Node, int]] = {}
        """Sections that lose pairs, by id, with the number of the others."""

    def add(self, change: Rename, place: MappingNodes, catalogue: Catalogue) -> None:
        """Take the lines of a pair out of its section. Raises CannotEditError."""
        old, new = catalogue[change.old], catalogue[change.new]
        before = section_of(self.mapping, old.section)
        assert before is not None
        key, value = place.pairs[change.old]
        self._check(before[1])
        if next(anchors_in([key, value]), None):
            self._refuse("an anchor is part of what would move")
        first, end = self.writer.lines_of(before[1], key)
        indent = self.text[self.lines.start(key.outer) : key.outer]
        if indent.strip():
            self._refuse("the key shares its line with something else")
        moved = self.text[first : key.start] + in_quotes(new.key, key.style) + self.text[key.end : end]
        lines = [line.removeprefix(indent) for line in moved.splitlines()]
        self._moved.setdefault(new.section, (before, []))[1].extend(lines)
        self.writer.cut(first, end)
        _, left = self._left.get(id(before[1]), (before[1], len(list(before[1].pairs()))))
        self._left[id(before[1])] = (before[1], left - 1)

    def write(self) -> None:
        """Write the lines into their new sections. Raises CannotEditError."""
        for section, left in self._left.values():
            colon = colon_of(self.text, section.key) if section.key is not None and not left else None
            if colon is not None:
                self.writer.replace(colon, colon, " {}")
        for name, (before, lines) in self._moved.items():
            after = section_of(self.mapping, name)
            if after is None:
                indent = indent_of(self.text, self.lines.start(before[0].start), before[0])
                first = next(before[1].pairs())[0]
                inner = self.text[self.lines.start(first.outer) : first.outer]
                self._insert(before, [f"{indent}{name}:", *(inner + line for line in lines)])
                continue
            self._check(after[1])
            *_, last = after[1].pairs()
            inner = indent_of(self.text, self.lines.start(last[0].outer), last[0])
            self._insert(last, [inner + line for line in lines])

    def _insert(self, behind: tuple[Node, Node], lines: list[str]) -> None:
        end = self.writer.end_of_pair(behind)
        for line in lines:
            self.writer.insert_line(end, line if line.strip() else "")

    def _check(self, section: Node) -> None:
        """Refuse a section whose text has another form or purpose than a mapping in lines of its own."""
        if section.kind != "map" or section.flow or self.mapping.flow or not section.items:
            self._refuse("a section is not written in lines")
        is_plain = not section.anchor and not section.tag and section.outer == section.start
        if not is_plain or any(is_merge(key) for key, _ in section.pairs()):
            self._refuse("a section is shared with another one")

    def _refuse(self, reason: str) -> None:
        raise CannotEditError(self.site, reason)


# --- site rewriter ------------------------------------------------------------


def plan_changes(own: Settings, after: Settings, place: MappingNodes, catalogue: Catalogue) -> list[Change]:
    """Return the changes from one to the other; a new setting replaces a removed one that it would be beside."""
    if not own:
        # ``changes`` adds settings beside existing ones.
        return [Add(name, value, after="") for name, value in after.items()]
    planned = changes(own, after, catalogue)
    removed = [change.name for change in planned if isinstance(change, Remove)]
    result: list[Change] = []
    for change in planned:
        # In a flow mapping the commas around both would have to match.
        if isinstance(change, Add) and (change.after in removed or (removed and place.mapping.flow)):
            old = change.after if change.after in removed else removed[0]
            removed.remove(old)
            change = Rename(old, change.name, change.value)
        result.append(change)
    return [change for change in result if not (isinstance(change, Remove) and change.name not in removed)]


def key_spelled(setting: Setting, place: MappingNodes, like: Node) -> tuple[str, str | None]:
    """Return a key spelled like the one that it replaces or follows, and its quotes."""
    if like.value.startswith("--"):
        return setting.flag, like.style
    if setting.section and "." not in like.value:
        return setting.key, like.style
    name = setting.flag.removeprefix("--") if is_flag(like.value) else setting.name
    return place.prefix + name, like.style


class YamlSiteRewriter:
    """Rewrites the settings of one mapping."""

    def __init__(self, writer: LineEdits, site: Site, place: MappingNodes, catalogue: Catalogue) -> None:
        self.writer, self.text, self.lines = writer, writer.text, writer.lines
        self.site, self.place, self.catalogue = site, place, catalogue
        self.mapping = place.mapping

    def write(self, after: Settings) -> None:
        """Pass to the writer the changes that give the site these own settings. Raises CannotEditError."""
        planned = plan_changes(self.site.own, after, self.place, self.catalogue)
        if not planned:
            return
        if self.site.blocked_by:
            self._refuse(self.site.blocked_by)
        if not self.site.written:
            self._refuse("the mapping only merges others, and the setting would have to be written there")
        moves = SectionMoves(self.writer, self.mapping, self.site.index)
        for change in planned:
            self._check(change)
            match change:
                case Rename(old=old, new=new) if self._is_moved(old, new):
                    moves.add(change, self.place, self.catalogue)
                case Rename():
                    self._rename(change)
                case Revalue(name=name, value=value):
                    self._new_value(*self.place.pairs[name], value)
                case Add():
                    self._add(change)
                case Remove(name=name):
                    self.writer.drop(self._around(name), self.place.pairs[name][0], self.site.index)
        moves.write()

    def _is_moved(self, old: str, new: str) -> bool:
        """Return whether a setting gets into another section, which is a mapping of its own."""
        return self._around(old) is not self.mapping and self.catalogue[old].section != self.catalogue[new].section

    def _around(self, name: str) -> Node:
        """Return the mapping that has the pair of a setting: that of the site, or of a section."""
        name_of_section = self.catalogue[name].section
        if not name_of_section or "." in self.place.pairs[name][0].value:
            return self.mapping
        section = section_of(self.mapping, name_of_section)
        return section[1] if section is not None else self.mapping

    def _refuse(self, reason: str) -> None:
        raise CannotEditError(self.site.index, reason)

    def _check(self, change: Change) -> None:
        """Refuse to replace text that has another purpose: an anchor may be used elsewhere."""
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
        for anchor in anchors_in(replaced):
            self._refuse(f"the anchor &{anchor} is part of what would be replaced")
        if key.kind == "alias":
            self._refuse("the key is an alias")
        if key.outer != key.start:
            self._refuse("the key has an anchor or a tag")
        if self._is_explicit(key, name):
            self._refuse("the key is written with `?`")
        if self.mapping.flow and not self.mapping.brackets and not isinstance(change, Remove):
            self._refuse("the pair is in a list, without braces of its own")

    def _is_explicit(self, key: Node, name: str) -> bool:
        if self.text[self.mapping.start] == "?" or self.text[self.mapping.outer] == "?":
            return True
        _, before = self.writer.position(self._around(name), key)
        return "?" in re.sub(r"#[^\n\r\x85\u2028\u2029]*", "", self.text[before : key.outer])

    # -- renaming and values

    def _rename(self, change: Rename) -> None:
        key, node = self.place.pairs[change.old]
        self.writer.replace(key.start, key.end, in_quotes(*key_spelled(self.catalogue[change.new], self.place, key)))
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
        colon = colon_of(self.text, key)
        if colon is None:
            self.writer.replace(key.end, key.end, ": " + text)
        elif node.outer == node.end:
            self.writer.replace(colon, colon, " " + text)
        elif node.kind == "seq" and not node.flow:
            self._replace_block(colon, node, text)
        else:
            self.writer.replace(node.outer, node.end, text)

    def _replace_block(self, colon: int, node: Node, text: str) -> None:
        """Replace a list in the lines below a key by a value behind its colon; a comment behind the colon stays."""
        if node.outer < node.start:
            self._refuse("the list has an anchor or a tag")
        self.writer.replace(colon, colon, " " + text)
        self.writer.cut(self.lines.end(colon), self.lines.end(node.end))

    def _literal(self, value: object, key: Node, like: Node, flow: bool) -> str:
        """Return a value in the style of the one that it replaces; quoted if the key is, as in JSON."""
        if isinstance(value, list):
            return "[" + ", ".join(self._literal(item, key, like, True) for item in value) + "]"
        if isinstance(value, bool) or value is None:
            return {True: "true", False: "false", None: "null"}[value]
        if isinstance(value, int):
            return str(value)
        sample = like.items[0].target if like.kind == "seq" and like.items else like
        style = sample.style if sample.style in ("'", '"') else None
        if style is None and not (sample.kind == "scalar" and isinstance(scalar_value(sample), str)):
            style = key.style
        word = str(value)
        # Between brackets a comma ends a word.
        plain = r"[A-Za-z_]\w*" if flow else r"[A-Za-z_](?:[\w ,]*\w)?"
        if style is None and not (
            re.fullmatch(plain, word, re.ASCII) and isinstance(scalar_value(plain_node(word)), str)
        ):
            style = '"'
        return in_quotes(word, style)

    # -- lists

    @staticmethod
    def _kept_items(node: Node, kept: Sequence[object]) -> list[int] | None:
        """Return the positions of the items ``kept``; None when they are not in the list in this order."""
        positions: list[int] = []
        for value in kept:
            rest = range(positions[-1] + 1 if positions else 0, len(node.items))
            at = next((at for at in rest if same(scalar_value(node.items[at].target), value)), None)
            if at is None:
                return None
            positions.append(at)
        return positions

    def _without_items(self, key: Node, node: Node, kept: Sequence[object]) -> None:
        """Remove the items of a list that are not kept; the others stay as written."""
        staying = self._kept_items(node, kept) or []
        removed = [at for at in range(len(node.items)) if at not in staying]
        if node.flow and not staying:
            self.writer.replace(node.start, node.end, "[]")
        elif node.flow:
            self._without_items_in_brackets(node, staying)
        elif not staying:
            self._replace_block(colon_of(self.text, key) or key.end, node, "[]")
        else:
            dash = node.start
            for at, item in enumerate(node.items):
                if at:
                    dash = GAP.match(self.text, node.items[at - 1].end).end()  # type: ignore[union-attr]
                if at in removed:
                    self.writer.cut(self.lines.start(dash), self.lines.end(max(dash, item.end)))

    def _without_items_in_brackets(self, node: Node, staying: Sequence[int]) -> None:
        start, end = node.items[0].outer, node.items[-1].end
        if re.search(r"[#\n\r\x85\u2028\u2029]", self.text[start:end]):
            self._refuse("the list has several lines")
        kept = (node.items[at] for at in staying)
        self.writer.replace(start, end, ", ".join(self.text[item.outer : item.end] for item in kept))

    # -- adding

    def _add(self, add: Add) -> None:
        key, node = self.place.pairs[add.after]
        between = self.text[key.end : node.outer] if node.outer < node.end else ": "
        if not re.fullmatch(r"[ \t]*:[ \t]*", between):
            between = ": "
        pair = (
            in_quotes(*key_spelled(self.catalogue[add.name], self.place, key))
            + between
            + self._literal(add.value, key, node.target, self.mapping.flow)
        )
        end = max(key.end, node.end)
        if self.mapping.flow:
            self.writer.replace(end, end, ", " + pair)
        else:
            self.writer.insert_line(self.lines.end(end), indent_of(self.text, self.lines.start(key.start), key) + pair)

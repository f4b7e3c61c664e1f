"""Pairs that move from one section of a configuration to another: ``train.eval_iters`` to ``validation.eval_iters``.

Their lines move as they are, with the comments that belong to them; a section that is not there is written behind the
old one.
"""

from __future__ import annotations

from cgmigrate.documents.changes import Rename
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.documents.yaml.keys import MappingNodes, section_of
from cgmigrate.documents.yaml.line_edits import LineEdits, anchors_in, in_quotes, indent_of
from cgmigrate.documents.yaml.merges import is_merge
from cgmigrate.documents.yaml.tree import Node, colon_of
from cgmigrate.megatron.catalogue import Catalogue


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

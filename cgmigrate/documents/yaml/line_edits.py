"""Edits of lines, pairs and items: replacement, insertion and removal, in the style of the mapping around them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.sites import CannotEditError
from cgmigrate.documents.yaml.tree import Node, colon_of, nodes_in
from cgmigrate.text.edits import Edit

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
"""The line breaks of YAML 1.1; editors and ``str.splitlines`` differ in the rare ones."""


class Lines:
    """Where the lines of a text are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def start(self, at: int) -> int:
        """Return where the line of an offset begins."""
        return self.starts[bisect_right(self.starts, at) - 1]

    def end(self, at: int) -> int:
        """Return the offset behind the line break of the line of an offset, or the end of the text."""
        following = bisect_right(self.starts, at)
        return self.starts[following] if following < len(self.starts) else len(self.text)

    def content_end(self, at: int) -> int:
        """Return the offset before the line break of the line of an offset."""
        return self.end(at) - len(self.break_before(self.end(at)))

    def break_before(self, at: int) -> str:
        """Return the line break that ends at an offset, empty when none does."""
        tail = self.text[max(0, at - 2) : at]
        if tail == "\r\n":
            return tail
        return tail[-1:] if _BREAK.fullmatch(tail[-1:]) else ""

    def newline(self, at: int) -> str:
        """Return the line break in use at an offset: of its line, else of the line before."""
        return self.break_before(self.end(at)) or self.break_before(self.start(at)) or "\n"

    def is_blank(self, start: int, end: int) -> bool:
        """Whether a span is only white space."""
        return not self.text[start:end].strip(" \t\n\r\x85\u2028\u2029")


@dataclass(frozen=True, slots=True)
class _LineChange:
    """Delete whole lines from ``start`` to ``end``, or insert one at ``start``."""

    start: int
    end: int
    line: str | None = None


class LineEdits:
    """Collects the changes of a text: replaced spans, deleted and inserted lines, removed pairs."""

    def __init__(self, lines: Lines) -> None:
        self.text = lines.text
        self.lines = lines
        self._edits: list[Edit] = []
        self._lines_changed: list[_LineChange] = []
        self._dropped: dict[int, tuple[Node, list[int], int]] = {}
        self._positions: dict[int, dict[int, tuple[int, int]]] = {}

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a span within a line or value."""
        self._edits.append(Edit(start, end, text))

    def cut(self, start: int, end: int) -> None:
        """Delete whole lines; ``start`` and ``end`` are where lines begin."""
        self._lines_changed.append(_LineChange(start, end))

    def insert_line(self, at: int, line: str) -> None:
        """Write a new line at the beginning of a line, or at the end of the text."""
        self._lines_changed.append(_LineChange(at, at, line))

    def drop(self, mapping: Node, key: Node, site: int) -> None:
        """Remove a pair from a mapping, once all pairs to remove are known."""
        at, _ = self.position(mapping, key)
        self._dropped.setdefault(id(mapping), (mapping, [], site))[1].append(at)

    def position(self, mapping: Node, key: Node) -> tuple[int, int]:
        """Return the position of a key's pair in its mapping, and where the pair before it ends."""
        if id(mapping) not in self._positions:
            pairs = list(mapping.pairs())
            ends = [mapping.start, *map(_end_of, pairs)]
            self._positions[id(mapping)] = {id(pair[0]): (at, ends[at]) for at, pair in enumerate(pairs)}
        return self._positions[id(mapping)][id(key)]

    def lines_of(self, mapping: Node, key: Node) -> tuple[int, int]:
        """Return the lines of a pair of a block mapping, with the comment lines above that name no other."""
        pairs, (at, _) = list(mapping.pairs()), self.position(mapping, key)
        first = self._comment_above(self.lines.start(key.outer), pairs, at, is_moved=True)
        return first, self.end_of_pair(pairs[at])

    def end_of_pair(self, pair: tuple[Node, Node]) -> int:
        """Return where the line behind a pair begins."""
        return self.lines.end(_end_of(pair))

    def finish(self) -> list[Edit]:
        """Return the edits for all that was collected."""
        for mapping, positions, site in self._dropped.values():
            self._drop(mapping, sorted(positions), site)
        return self._edits + self._line_edits()

    # -- removed pairs

    def _drop(self, mapping: Node, removed: Sequence[int], site: int) -> None:
        pairs = list(mapping.pairs())
        if mapping.flow:
            raise CannotEditError(site, "the pair to delete is between brackets")
        first = pairs[0][0].outer
        if 0 in removed and not self.lines.is_blank(self.lines.start(first), first):
            raise CannotEditError(site, "the key shares its line with something else")
        if len(removed) == len(pairs):
            removed = self._emptied(mapping, pairs)
        for at in removed:
            self._cut_pair(pairs, at)

    def _emptied(self, mapping: Node, pairs: Sequence[tuple[Node, Node]]) -> Sequence[int]:
        """Write ``{}`` for a mapping that loses all its pairs; return those that are to be cut."""
        if mapping.key is None or mapping.outer < mapping.start:
            # At the top of the file, or behind an anchor: instead of the first pair.
            self.replace(pairs[0][0].outer, self.lines.content_end(_end_of(pairs[0])), "{}")
            return range(1, len(pairs))
        colon = colon_of(self.text, mapping.key) or mapping.key.end
        self.replace(colon, colon, " {}")
        return range(len(pairs))

    def _cut_pair(self, pairs: Sequence[tuple[Node, Node]], at: int) -> None:
        first = self._comment_above(self.lines.start(pairs[at][0].outer), pairs, at)
        self.cut(first, self.end_of_pair(pairs[at]))

    def _comment_above(self, line: int, pairs: Sequence[tuple[Node, Node]], at: int, *, is_moved: bool = False) -> int:
        """Return where the comment lines directly above begin that name this pair's key and no other; else the line.

        Those above a pair that is moved need not name it.
        """
        key, first = pairs[at][0], line
        top = _end_of(pairs[at - 1]) if at else 0
        indent = self.text[line : key.outer]
        while first:
            previous = self.lines.start(first - 1)
            if previous < top or not self.text.startswith(indent + "#", previous):
                break
            first = previous
        words, own = _words(self.text[first:line]), _words(key.value)
        if not (words & own or is_moved):
            return line
        others = {word for other, _ in pairs for word in _words(other.target.value)} - own
        return line if words & others else first

    # -- lines

    def _line_edits(self) -> list[Edit]:
        """Return edits for the deleted and inserted lines; adjacent ones make one edit."""
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
            # The file has no final line break, so its new last line must not have one either.
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


def anchors_in(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the anchors of nodes and of everything inside them."""
    return (node.anchor for node in nodes_in(nodes) if node.anchor)


def in_quotes(word: str, style: str | None) -> str:
    """Return a word in the quotes of a style."""
    if style == "'":
        return "'" + word.replace("'", "''") + "'"
    return json.dumps(word, ensure_ascii=False) if style == '"' else word


def indent_of(text: str, line: int, key: Node) -> str:
    """Return white space that puts a new line's key below this one, also behind `- `."""
    return "".join(char if char in " \t" else " " for char in text[line : key.start])


def _words(text: str) -> set[str]:
    """Return the names in a comment or key: the last part of dotted ones, with underscores for hyphens."""
    words = re.findall(r"[\w.\-]+", text)
    return {word.rstrip(".").rpartition(".")[2].strip("-").replace("-", "_") for word in words} - {""}

"""Changes of pairs as edits of the text, in the style of the mapping around them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.sites import CannotEditError
from cgmigrate.documents.yaml.tree import GAP, Node, colon_of
from cgmigrate.text.edits import Edit

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line in YAML 1.1; editors and ``str.splitlines`` disagree about the rarer ones."""


_BEFORE_ITEM = re.compile(r"[ \t]*(?:-[ \t]+)+")


class Lines:
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


class Writer:
    """Collects the changes of a text: spans replaced, whole lines that go or come, pairs that go."""

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
        """Take a pair out of a mapping, once all that go are known."""
        at, _ = self.position(mapping, key)
        self._dropped.setdefault(id(mapping), (mapping, [], site))[1].append(at)

    def position(self, mapping: Node, key: Node) -> tuple[int, int]:
        """Which pair of a mapping a key begins, and where the pair before ends (else the mapping begins)."""
        if id(mapping) not in self._positions:
            pairs = list(mapping.pairs())
            ends = [mapping.start, *map(_end_of, pairs)]
            self._positions[id(mapping)] = {id(pair[0]): (at, ends[at]) for at, pair in enumerate(pairs)}
        return self._positions[id(mapping)][id(key)]

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
            colon = colon_of(text, mapping.key) or mapping.key.end
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
        following = next(at for at in range(len(spans)) if at not in set(gone))
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
        last, going = len(spans) - 1, set(gone)
        commas = [comma_behind(self.text, end) for _, end in spans]
        kept = [at for at in range(len(spans)) if at not in going]
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
            behind_it = commas[at]
            end = spans[at][1] if behind_it is None else behind_it + 1
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
        if rest[blanks : blanks + 1] not in ("", "#") and rest[0] not in "}]":
            self.replace(start, end + blanks, "")
        else:
            # At the end of its line or before the bracket, behind something else.
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


def comma_behind(text: str, end: int) -> int | None:
    """Where the comma behind an item of a flow collection is; None when there is none."""
    at = GAP.match(text, end).end()  # type: ignore[union-attr]
    return at if text[at : at + 1] == "," else None


def anchors_in(nodes: Sequence[Node]) -> Iterator[str]:
    """The anchors on nodes and on everything inside them."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.anchor:
            yield node.anchor
        stack += node.items


def in_quotes(word: str, style: str | None) -> str:
    """A word in the quotes of a style."""
    if style == "'":
        return "'" + word.replace("'", "''") + "'"
    return json.dumps(word, ensure_ascii=False) if style == '"' else word


def indent_of(text: str, line: int, key: Node) -> str:
    """White space that puts a new line's key below this one, also behind `- `."""
    return "".join(char if char in " \t" else " " for char in text[line : key.start])


def _words(text: str) -> set[str]:
    """The names in a comment or key: the last part of dotted ones, hyphens and underscores alike."""
    found = re.findall(r"[\w.\-]+", text)
    return {word.rstrip(".").rpartition(".")[2].strip("-").replace("-", "_") for word in found} - {""}

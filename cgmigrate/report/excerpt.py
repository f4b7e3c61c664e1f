"""The lines of a file that a diagnostic is about, with the parts underlined and labelled, as rustc draws them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from cgmigrate.report import Place
from cgmigrate.report.style import StreamStyle
from cgmigrate.text.columns import TAB, width
from cgmigrate.text.escaping import cells, in_line

WIDTH = 100
"""Characters of a source line that are shown; a longer line is cut around its underlined part."""
LEAD = WIDTH // 4
"""Characters of a cut line that are shown before its underlined part."""
LONGEST_GAP = 2
"""Lines between two marked lines that are shown; of more, `...` takes the place."""
MOST_LINES = 6
"""Lines of one mark that are shown as a whole; of a longer one, the first and the last."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of the text with a label; ``kind`` is its style, ``sign`` what underlines it. ``end`` is exclusive."""

    start: Place
    end: Place
    label: str
    kind: str
    sign: str = "^"

    @property
    def in_one_line(self) -> bool:
        """Whether the mark begins and ends in the same line."""
        return self.start.line == self.end.line


@lru_cache(maxsize=4)
def lines_of(text: str) -> tuple[str, ...]:
    r"""Return the lines of a text without their ends. Only ``\n`` and ``\r\n`` end a line."""
    return tuple(line.removesuffix("\r") for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class Gutter:
    """The column of line numbers; ``digits`` is the width of the largest one."""

    digits: int
    style: StreamStyle

    def numbered(self, number: int, sign: str) -> str:
        """Return the start of a line of the file; ``sign`` is the character after its number."""
        return self.style.paint(f" {number:>{self.digits}} {sign}", "gutter")

    def empty(self) -> str:
        """Return the start of a line between those of the file."""
        return self.style.paint(" " * (self.digits + 2) + "|", "gutter")

    def arrow(self) -> str:
        """Return the start of the line that names the place."""
        return " " * (self.digits + 1) + self.style.paint("-->", "gutter")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the file as it is shown: each character as ``cells`` has it, from column ``first`` to ``last``."""

    cells: Sequence[str]
    first: int
    last: int

    @property
    def text(self) -> str:
        before, after = "…" if self.first else "", "…" if self.last < len(self.cells) else ""
        return before + "".join(self.cells[self.first : self.last]) + after

    def offset(self, column: int) -> int:
        """Return how many columns of the terminal are before a column (from 1) of the line."""
        index = min(max(column - 1, self.first), self.last)
        return width("".join(self.cells[self.first : index])) + (1 if self.first else 0)


def excerpt(text: str, marks: Sequence[Mark], gutter: Gutter) -> Iterator[str]:
    """Yield the marked lines of a text and their underlines, between two empty lines of the gutter."""
    lines = lines_of(text)
    marks = [_clipped(mark, lines) for mark in marks]
    drawn = _alone(mark for mark in marks if not mark.in_one_line)
    marks = [mark if mark.in_one_line or mark in drawn else _first_line_of(mark, lines) for mark in marks]
    shown = _shown(marks, len(lines), lines)
    yield gutter.empty()
    for before, number in zip([shown[0], *shown], shown, strict=False):
        if number > before + 1:
            yield gutter.style.paint("...", "gutter")
        yield from _line(lines[number - 1], number, marks, gutter, bool(drawn))
    yield gutter.empty()


def _shown(marks: Sequence[Mark], last: int, lines: Sequence[str]) -> list[int]:
    """Return the numbers of the lines to show: marked ones, short gaps, and what is around a mark that is alone."""
    numbers = {number for mark in marks for number in _numbers(mark)}
    if len(marks) == 1:
        around = (min(numbers) - 1, max(numbers) + 1)
        numbers |= {number for number in around if 1 <= number <= last and lines[number - 1].strip()}
    ordered = sorted(numbers)
    for first, second in pairwise(ordered):
        if second - first - 1 <= LONGEST_GAP:
            numbers.update(range(first + 1, second))
    return sorted(numbers)


def _numbers(mark: Mark) -> Iterable[int]:
    first, last = mark.start.line, mark.end.line
    return range(first, last + 1) if last - first < MOST_LINES else (first, first + 1, last)


def _clipped(mark: Mark, lines: Sequence[str]) -> Mark:
    """Return a mark that ends in the last line of which it has a character, and has at least one character."""
    start, end = mark.start, mark.end
    if end.line > start.line and end.column == 1:
        end = Place(end.line - 1, len(lines[end.line - 2]) + 1)
    if end.line == start.line:
        end = Place(end.line, max(end.column, start.column + 1))
    return replace(mark, end=end)


def _first_line_of(mark: Mark, lines: Sequence[str]) -> Mark:
    return replace(mark, end=Place(mark.start.line, max(len(lines[mark.start.line - 1]), mark.start.column) + 1))


def _alone(marks: Iterable[Mark]) -> list[Mark]:
    """Return those marks of several lines that share no line with an earlier one: the margin has one column."""
    result: list[Mark] = []
    for mark in marks:
        if all(mark.start.line > other.end.line or mark.end.line < other.start.line for other in result):
            result.append(mark)
    return result


def _line(source: str, number: int, marks: Sequence[Mark], gutter: Gutter, margin: bool) -> Iterator[str]:
    """Yield one line of the file and, below it, its underlines."""
    inside = [mark for mark in marks if mark.in_one_line and mark.start.line == number]
    around = next((m for m in marks if not m.in_one_line and m.start.line <= number <= m.end.line), None)
    row = _row(source, inside, around, number)
    bar = ""
    if margin:
        sign = " " if around is None else "/" if around.start.line == number else "|"
        bar = f" {gutter.style.paint(sign, around.kind) if around else sign}"
    yield f"{gutter.numbered(number, '|')}{bar} {row.text}".rstrip()
    if around is not None and around.start.line == number:
        bar = f" {gutter.style.paint('|', around.kind)}"
    for below in _underlines(row, inside, gutter.style):
        yield f"{gutter.empty()}{bar} {below}"
    if around is not None and around.end.line == number:
        line = "_" * max(1, row.offset(around.end.column))
        drawn = gutter.style.paint(f"|{line}{around.sign}{_spaced(around.label)}", around.kind)
        yield f"{gutter.empty()} {drawn}"


def _row(source: str, inside: Sequence[Mark], around: Mark | None, number: int) -> _Row:
    """Return a line as it is shown: tabs as spaces, control characters as escapes, and not too long."""
    shown = [TAB if char == "\t" else char for char in cells(source)]
    if len(shown) <= WIDTH:
        return _Row(shown, 0, len(shown))
    columns = [mark.start.column for mark in inside if mark.sign == "^"] or [mark.start.column for mark in inside]
    if not columns and around is not None and around.end.line == number:
        columns = [around.end.column]
    first = max(0, min(columns, default=1) - 1 - LEAD)
    first = min(first, max(0, len(shown) - WIDTH))
    return _Row(shown, first, min(first + WIDTH, len(shown)))


def _underlines(row: _Row, marks: Sequence[Mark], style: StreamStyle) -> Iterator[str]:
    """Yield the line with all underlines and the label of the last one, then lines with the other labels."""
    spans = sorted(((row.offset(m.start.column), row.offset(m.end.column), m) for m in marks), key=lambda s: s[0])
    if not spans:
        return
    signs: dict[int, tuple[str, str]] = {}
    for start, end, mark in sorted(spans, key=lambda span: span[2].sign == "^"):
        signs |= dict.fromkeys(range(start, max(end, start + 1)), (mark.sign, mark.kind))
    last = spans[-1][2]
    yield _drawn(signs, style) + style.paint(_spaced(last.label), last.kind)
    left = [span for span in spans[:-1] if span[2].label]
    while left:
        start, _, mark = left[-1]
        bars = {at: ("|", other.kind) for at, _, other in left}
        yield _drawn(bars, style)
        del bars[start]
        label = _drawn(bars, style)
        shown = max(bars, default=-1) + 1
        yield label + " " * (start - shown) + style.paint(in_line(mark.label), mark.kind)
        left.pop()


def _drawn(signs: dict[int, tuple[str, str]], style: StreamStyle) -> str:
    """Return signs at their columns, with those of one kind that follow one another painted as one."""
    out, at, run, kind = [], 0, "", ""
    for column in sorted(signs):
        sign, next_kind = signs[column]
        if column > at or next_kind != kind:
            out += [style.paint(run, kind), " " * (column - at)]
            run, kind = "", next_kind
        run, at = run + sign, column + 1
    return "".join([*out, style.paint(run, kind)])


def _spaced(label: str) -> str:
    return f" {in_line(label)}" if label else ""

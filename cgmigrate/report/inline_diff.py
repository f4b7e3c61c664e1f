"""A fix as the lines that it removes and adds, each with its number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.report.excerpt import LEAD, WIDTH, Gutter
from cgmigrate.text.columns import TAB
from cgmigrate.text.diff import shared_ends
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.escaping import cells

MOST_LINES = 12
"""Lines of a fix that are shown; `fix --diff` shows all."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that other lines replace; ``old`` is the number of the first removed line, ``new`` of the first added."""

    old: int
    new: int
    removed: Sequence[str]
    added: Sequence[str]


def hunks_of(text: str, edits: Sequence[Edit]) -> list[Hunk]:
    """Return what edits change, line by line; edits of the same or the next line are one hunk."""
    result: list[Hunk] = []
    shift = 0
    for first, last, some in _groups(text, sorted(set(edits), key=lambda edit: (edit.start, edit.end))):
        before = text[first:last]
        after = apply(before, [Edit(edit.start - first, edit.end - first, edit.text) for edit in some])
        hunk = _hunk(text.count("\n", 0, first) + 1, before.split("\n"), after.split("\n"), shift)
        shift += len(hunk.added) - len(hunk.removed)
        result.append(hunk)
    return [hunk for hunk in result if hunk.removed or hunk.added]


def _groups(text: str, edits: Sequence[Edit]) -> Iterator[tuple[int, int, list[Edit]]]:
    """Yield edits that share lines, with the start of their first line and the end of their last."""
    group: list[Edit] = []
    first = last = 0
    for edit in edits:
        start = text.rfind("\n", 0, edit.start) + 1
        end = text.find("\n", edit.end)
        end = len(text) if end < 0 else end
        if group and start <= last + 1:
            group.append(edit)
            last = max(last, end)
            continue
        if group:
            yield first, last, group
        group, first, last = [edit], start, end
    if group:
        yield first, last, group


def _hunk(first: int, before: list[str], after: list[str], shift: int) -> Hunk:
    """Return the lines that differ; ``first`` is the number of the first line of ``before``."""
    start, end = shared_ends(before, after)
    number = first + start
    return Hunk(number, number + shift, before[start : len(before) - end], after[start : len(after) - end])


def diff(hunks: Sequence[Hunk], gutter: Gutter) -> Iterator[str]:
    """Yield the lines of hunks, ``-`` before those that go and ``+`` before those that come."""
    lines = [line for hunk in hunks for line in _lines(hunk)]
    for number, sign, line in lines[:MOST_LINES]:
        kind = "removed" if sign == "-" else "added"
        yield gutter.style.paint(f" {number:>{gutter.digits}} {sign} {line}".rstrip(), kind)
    if len(lines) > MOST_LINES:
        yield f"{' ' * (gutter.digits + 2)}… {len(lines) - MOST_LINES} more lines (`cgmigrate fix --diff` shows them)"


def _lines(hunk: Hunk) -> Iterator[tuple[int, str, str]]:
    # Long lines are cut where they begin to differ.
    pairs = zip("".join(hunk.removed[:1]), "".join(hunk.added[:1]), strict=False)
    same = next((column for column, (old, new) in enumerate(pairs) if old != new), 0)
    for at, line in enumerate(hunk.removed):
        yield hunk.old + at, "-", _shown(line, same)
    for at, line in enumerate(hunk.added):
        yield hunk.new + at, "+", _shown(line, same)


def _shown(line: str, changed: int) -> str:
    """Return a line as it is shown; of a long one, the part around a column that is ``changed``."""
    shown = [TAB if char == "\t" else char for char in cells(line.removesuffix("\r"))]
    if len(shown) <= WIDTH:
        return "".join(shown)
    first = min(max(0, changed - LEAD), len(shown) - WIDTH)
    before, after = "…" if first else "", "…" if first + WIDTH < len(shown) else ""
    return before + "".join(shown[first : first + WIDTH]) + after

"""Edits that add and delete whole statements: ``config.cuda_graph_impl = "local"``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from cgmigrate.documents.python.site_nodes import Item
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span, line_end, line_start


def rest_of_line(text: str, at: int) -> str:
    """Return the code behind an offset on its line, without a comment."""
    rest = text[at : line_end(text, at)].strip()
    return "" if rest.startswith("#") else rest


def newline_near(text: str, at: int) -> str:
    """Return the line break of the line of an offset, or of the line before."""
    end = text.find("\n", at)
    if end < 0:
        end = text.rfind("\n", 0, at)
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


_SHARED_LINE = "the statement shares its line with another one"


def add_statement(index: int, item: Item, name: str, value: str, source: PythonSource) -> Edit:
    """Return the edit that sets a setting on the line below that of another one, in the same form.

    ``value`` is Python text. Raises CannotEditError for the site ``index``.
    """
    text = source.text
    first = line_start(text, item.whole.start)
    indent = text[first : item.whole.start]
    if indent.strip() or rest_of_line(text, item.whole.end):
        raise CannotEditError(index, _SHARED_LINE)
    line = f"{indent}{text[item.whole.start : item.name.start]}{name}"
    if isinstance(item.node, ast.Assign):
        line += f" = {value}"
    else:
        line += f"{text[item.name.end : source.span(item.values[0]).start]}{value})"
    if "\n" in line:
        raise CannotEditError(index, "the statement has several lines")
    end, newline = line_end(text, item.whole.end), newline_near(text, first)
    return Edit(end, end, line + newline if text[end - 1 : end] == "\n" else newline + line)


def delete_statements(items: Sequence[Item], source: PythonSource) -> list[Edit]:
    """Return edits that delete statements with their lines and comments; ``pass`` replaces the last of a suite.

    Raises CannotEditError if a statement shares its line.
    """
    text = source.text
    edits: list[Edit] = []
    by_suite: dict[int, list[Item]] = {}
    for item in items:
        by_suite.setdefault(id(item.suite), []).append(item)
    for group in by_suite.values():
        replaced = group[0] if len(group) == len(group[0].suite) else None
        for item in group:
            first = line_start(text, item.whole.start)
            if text[first : item.whole.start].strip() or rest_of_line(text, item.whole.end):
                raise CannotEditError(-1, _SHARED_LINE)
            if item is replaced:
                edits.append(Edit(item.whole.start, item.whole.end, "pass"))
            else:
                edits.append(_delete_lines(text, first, line_end(text, item.whole.end), item.field))
    return edits


def _delete_lines(text: str, first: int, last: int, name: str) -> Edit:
    """Return the edit that deletes whole lines, the comment above that names only this setting, and a blank line."""
    first = _comment_above(text, first, name)
    before = text[:first]
    if last == len(text) and not text.endswith("\n") and first:
        return Edit(first - (2 if before.endswith("\r\n") else 1), last, "")
    blank = re.compile(r"[ \t]*\r?\n").match(text, last)
    if blank and re.search(r"(?:\n|\A)[ \t]*\r?\n\Z", before):
        # Of two blank lines that would meet, one goes.
        last = blank.end()
    return Edit(first, last, "")


def _comment_above(text: str, first: int, name: str) -> int:
    """Return where the comment lines above a line begin if they name this setting and no other; else the line."""
    indent = re.compile(r"[ \t]*").match(text, first).group()  # type: ignore[union-attr]
    above = first
    while above:
        previous = text.rfind("\n", 0, above - 1) + 1
        if not text.startswith(indent + "#", previous):
            break
        above = previous
    comment = text[above:first]
    names_it = re.search(rf"(?<![\w-]){name}(?![\w-])", comment)
    names_others = re.search(rf"(?<![\w-])(?!{name}\b)\w*cuda_graph\w*", comment)
    return above if names_it and not names_others else first


# --- elements -------------------------------------------------------------------------------------

_BLANKS = re.compile(r"[ \t]*")
_COMMA = re.compile(r"[ \t]*,")
END_OF_LINE = re.compile(r"[ \t]*,?[ \t]*(?:#[^\r\n]*)?(?:\r?\n)")
"""What may follow the last element of a line."""


def remove_elements(text: str, removed: Sequence[int], spans: Sequence[Span]) -> list[Edit]:
    """Return edits that remove elements by position, neighbours at once; ``spans`` are those of all elements."""
    edits: list[Edit] = []
    for at in removed:
        if at - 1 in removed:
            continue
        last = at
        while last + 1 in removed:
            last += 1
        edits.append(_cut(text, at, last, spans))
    return edits


def _cut(text: str, at: int, last: int, spans: Sequence[Span]) -> Edit:
    """Return the edit that removes the elements from ``at`` to ``last``."""
    start, end = spans[at].start, spans[last].end
    first = line_start(text, start)
    tail = END_OF_LINE.match(text, end)
    if not text[first:start].strip() and tail:
        return Edit(first, tail.end(), "")
    if last + 1 < len(spans):
        following = text[end : spans[last + 1].start]
        if "#" not in following and "\n" not in following:
            return Edit(start, spans[last + 1].start, "")
        behind = _BLANKS.match(text, text.index(",", end) + 1).end()  # type: ignore[union-attr]
        if text.startswith(("\n", "\r\n"), behind):
            # No blank stays at the end of the line.
            start = len(text[:start].rstrip(" \t"))
        # The rest of the line, a comment perhaps, stays with what is before.
        return Edit(start, behind, "")
    if at and "#" not in text[spans[at - 1].end : start]:
        return Edit(spans[at - 1].end, end, "")
    comma = _COMMA.match(text, end)
    return Edit(start, comma.end() if comma and not at else end, "")

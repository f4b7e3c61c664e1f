"""Colours and lines of a report on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

_BOLD, _RED, _GREEN, _YELLOW, _BLUE, _CYAN = "1", "31", "32", "33", "34", "36"
_CODES = {
    "error": f"{_BOLD};{_RED}",
    "warning": f"{_BOLD};{_YELLOW}",
    "path": _BOLD,
    "gutter": _BLUE,
    "label": _BLUE,
    "removed": _RED,
    "added": _GREEN,
    "help": f"{_BOLD};{_GREEN}",
    "unsafe": f"{_BOLD};{_YELLOW}",
    "note": f"{_BOLD};{_CYAN}",
}
"""Parameters of the escape sequence that starts each kind of text."""


@dataclass(frozen=True, slots=True)
class StreamStyle:
    """What a stream shows: ``colours``, or text as it is."""

    colours: bool = False

    def paint(self, text: str, kind: str) -> str:
        """Return the text in the colour of its kind."""
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.colours and text else text


PLAIN = StreamStyle()
"""No colours: files, pipes, and texts inside of other formats."""

_PARAGRAPH = 72
"""A line that is shorter ends its paragraph."""
_MOST_INDENT = 3


def for_terminal(text: str, columns: int) -> str:
    """Return a text with its headings in bold and lines that end between words; code, indented by four, stays."""
    style = StreamStyle(colours=True)
    first, *rest = (
        "\n".join(_wrapped(line, columns)) if columns > 20 else line for line in _paragraphs(text.splitlines())
    )
    shown = (style.paint(line, "path") if line.endswith(":") and not line.startswith(" ") else line for line in rest)
    return "\n".join([style.paint(first, "path"), *shown]) + "\n"


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield lines, those of one paragraph as one."""
    paragraph = ""
    for line in lines:
        if paragraph and line[:1].strip():
            paragraph += f" {line}"
            continue
        if paragraph:
            yield paragraph
        paragraph = line if line[:1].strip() and len(line) > _PARAGRAPH else ""
        if not paragraph:
            yield line
    if paragraph:
        yield paragraph


def _wrapped(line: str, columns: int) -> list[str]:
    indent = len(line) - len(line.lstrip())
    if indent > _MOST_INDENT or len(line) <= columns:
        return [line]
    return textwrap.wrap(
        line, columns, subsequent_indent=" " * (indent and indent + 2), break_long_words=False, break_on_hyphens=False
    )

"""Colours of a report on a terminal."""

from __future__ import annotations

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

"""Colours and hyperlinks of a report on a terminal."""

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
    """What a stream shows: ``colours``, and ``links`` to the pages of rules. Without both, text stays as it is."""

    colours: bool = False
    links: bool = False

    def paint(self, text: str, kind: str) -> str:
        """Return the text in the colour of its kind."""
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.colours and text else text

    def link(self, text: str, address: str) -> str:
        """Return the text as a hyperlink (OSC 8) to an address; unchanged without an address."""
        return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and address else text


PLAIN = StreamStyle()
"""Neither colours nor links: files, pipes, and texts inside of other formats."""

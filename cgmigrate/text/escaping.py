"""Escapes for text and names of files that a terminal or a log shows.

The author of a file chooses its text: a lone carriage return hides the text before it, an escape sequence moves the
cursor or sets the title, a bidirectional mark changes the order in which one reads, and a line that starts with
``::`` is a command for GitHub Actions. All of these are written as escapes (``\\x1b``), on stdout and on stderr.
"""

from __future__ import annotations

import re

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
# `##[` and `##vso[` are commands of GitHub's and Azure's runners anywhere in a line.
_RUNNER = r"#(?=#(?:\[|vso\[))"
_IN_TEXT = re.compile(rf"[{_CONTROLS}]|{_RUNNER}|(?:(?<=\n)|(?<=\A))[^\S\n]*:(?=:)")
_IN_LINE = re.compile(rf"[{_CONTROLS}\t\n]|{_RUNNER}|\A[^\S\n]*:(?=:)")
_IN_CELL = re.compile(rf"[{_CONTROLS}\n]|{_RUNNER}")
_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def in_text(text: str) -> str:
    """Escape text of several lines: line feeds and tabs stay."""
    return _IN_TEXT.sub(_escaped, text)


def in_line(text: str) -> str:
    """Escape text that has to stay in its line, such as the name of a file."""
    return _IN_LINE.sub(_escaped, text)


def cells(line: str) -> list[str]:
    """Return each character of a line as it is shown; tabs stay. For text of which parts are underlined."""
    shown = list(line)
    for match in _IN_CELL.finditer(line):
        shown[match.start()] = _escaped(match)
    return shown


def in_json(document: str) -> str:
    """Escape a JSON document where a terminal would not show it; to a program it stays the same."""
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def _escaped(match: re.Match[str]) -> str:
    # A command begins with its last character; blanks before it stay.
    blanks, char = match[0][:-1], match[0][-1]
    code = ord(char)
    return blanks + (_SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"))

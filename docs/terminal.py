"""The picture of a terminal in the README: the real output of two commands, as SVG without fonts or scripts."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from click.testing import CliRunner

from cgmigrate.cli.commands import main

RECIPE = """\
model:
  num_layers: 32
  hidden_size: 4096
  external_cuda_graph: true
  cuda_graph_scope: [attn, moe_router]
"""
COMMANDS = (("check", "recipe.yaml"), ("fix", "--diff", "recipe.yaml"))
COLUMNS, WIDTH, HEIGHT, SIZE = 100, 8.4, 19, 14
"""Characters of a line; width and height of one, and the size of the font, in pixels."""
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#f2cc60", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea"}
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")


def picture() -> str:
    """Return the picture."""
    lines = [piece for line in _lines() for piece in _wrapped(line)]
    width, height = int(COLUMNS * WIDTH) + 32, len(lines) * HEIGHT + 44
    rows = "\n".join(
        f'<text x="16" y="{36 + number * HEIGHT}" xml:space="preserve">{"".join(map(_span, line))}</text>'
        for number, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="cgmigrate check and fix in a terminal">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n'
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{SIZE}" '
        f'fill="#c9d1d9">\n{rows}\n</g>\n</svg>\n'
    )


Piece = tuple[str, frozenset[str]]
"""A text and its codes of ANSI."""


def _lines() -> Iterator[list[Piece]]:
    """Yield the lines of the commands and of their output."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(".git").mkdir()
        Path(".git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        Path("recipe.yaml").write_text(RECIPE, encoding="utf-8")
        for words in COMMANDS:
            yield [(f"$ cgmigrate {' '.join(words)}", frozenset("1"))]
            result = CliRunner().invoke(main, [words[0], "--color", "always", *words[1:]], color=True)
            yield from map(_pieces, result.stdout.rstrip("\n").split("\n"))
            yield []


def _pieces(line: str) -> list[Piece]:
    codes: frozenset[str] = frozenset()
    pieces = []
    for number, part in enumerate(_STYLE.split(line)):
        if number % 2:
            codes = frozenset() if part in ("", "0") else codes | frozenset(part.split(";"))
        elif part:
            pieces.append((part, codes))
    return pieces


def _wrapped(line: list[Piece]) -> Iterator[list[Piece]]:
    """Yield a line as rows of so many columns; a picture does not break a word, as a terminal would."""
    row: list[Piece] = []
    left = COLUMNS
    for text, codes in line:
        for word in re.findall(r" *[^ ]+| +", text):
            if len(word) > left:
                yield row
                row, word = [], word.lstrip()
                left = COLUMNS
            row.append((word, codes))
            left -= len(word)
    yield row


def _span(piece: Piece) -> str:
    text, codes = piece
    colour = next((COLOURS[code] for code in sorted(codes) if code in COLOURS), "")
    style = (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if "1" in codes else "")
    return f"<tspan{style}>{escape(text, quote=False)}</tspan>" if style else escape(text, quote=False)

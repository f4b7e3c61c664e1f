"""The instructions of a Dockerfile: their lines, comments between them, and here-documents, as BuildKit reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cgmigrate.documents.code import Code
from cgmigrate.documents.embedded.lines import Line, lines_of
from cgmigrate.text.spans import Span

_DIRECTIVE = re.compile(r"#[ \t]*(?P<name>\w+)[ \t]*=[ \t]*(?P<value>\S+)")
_NAME = re.compile(r"[ \t]*(?P<name>[A-Za-z]+)(?:[ \t]+|(?=\\?$))")
_HEREDOC = re.compile(r"(?<!\S)\d*<<(?P<tabs>-?)(?P<quote>[\"']?)(?P<name>[A-Za-z_][\w.-]*)(?P=quote)(?=[\s;&|)<>]|$)")
_WITH_HEREDOCS = ("RUN", "COPY", "ADD")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``arguments`` is all behind its name, ``bodies`` are the lines of its here-documents.

    ``span`` are its lines, those of the here-documents included.
    """

    name: str
    span: Span
    arguments: Code
    bodies: tuple[Code, ...]
    ending: Code
    """The here-documents as the shell reads them, with the lines that end them."""


def is_quoted(arguments: str) -> bool:
    """Return whether the first here-document of some arguments is text that no shell expands."""
    match = _HEREDOC.search(arguments)
    return match is not None and bool(match["quote"])


def without_heredocs(arguments: str) -> str:
    """Return arguments without the words that begin here-documents."""
    return _HEREDOC.sub("", arguments)


class Instructions:
    """The instructions of a text in its order. ``escape`` continues a line; ``comments`` are lines of their own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = lines_of(text)
        self.comments: list[Span] = []
        self.escape = self._escape()
        mark = re.escape(self.escape)
        self._continued = re.compile(rf"(?<!{mark}){mark}[ \t]*\Z")
        self.instructions = list(self._read())

    def _escape(self) -> str:
        """Return the character that the directives at the top name."""
        for line in self._lines:
            match = _DIRECTIVE.match(self._text, line.start, line.end)
            if not match:
                break
            if match["name"].lower() == "escape" and match["value"] == "`":
                return "`"
        return "\\"

    def _is_comment(self, line: Line) -> bool:
        return self._text[line.start : line.end].lstrip().startswith("#")

    def _is_empty(self, line: Line) -> bool:
        return not self._text[line.start : line.end].strip()

    def _read(self) -> Iterator[Instruction]:
        at = 0
        while at < len(self._lines):
            line = self._lines[at]
            match = _NAME.match(self._text, line.start, line.end)
            if self._is_comment(line):
                self._add_comment(line)
            if match is None:
                at += 1
                continue
            at, instruction = self._instruction(at, match["name"].upper(), match.end())
            yield instruction

    def _add_comment(self, line: Line) -> None:
        indent = len(self._text[line.start : line.end]) - len(self._text[line.start : line.end].lstrip())
        self.comments.append(Span(line.start + indent, line.end))

    def _instruction(self, at: int, name: str, start: int) -> tuple[int, Instruction]:
        """Return the instruction at a line, and the number of the line behind it."""
        first, parts = at, list[Code]()
        while True:
            line = self._lines[at]
            match = self._continued.search(self._text[start : line.end])
            if match is None:
                parts.append(Code.of(self._text, start, line.end))
                at += 1
                break
            parts.append(Code.of(self._text, start, start + match.start()))
            parts.append(Code.written_as("\\", start + match.start(), line.end))
            parts.append(Code.written_as("\n", line.end, line.after))
            at = self._next_code(at + 1)
            if at == len(self._lines):
                break
            start = self._lines[at].start
        arguments = Code.joined(parts)
        at, bodies, ending = self._heredocs(at, name, arguments)
        span = Span(self._lines[first].start, self._lines[at - 1].end)
        return at, Instruction(name, span, arguments, tuple(bodies), ending)

    def _next_code(self, at: int) -> int:
        """Return the next line that continues an instruction: comments and empty lines are skipped."""
        while at < len(self._lines) and (self._is_comment(self._lines[at]) or self._is_empty(self._lines[at])):
            if self._is_comment(self._lines[at]):
                self._add_comment(self._lines[at])
            at += 1
        return at

    def _heredocs(self, at: int, name: str, arguments: Code) -> tuple[int, list[Code], Code]:
        """Return the here-documents below an instruction, and the number of the line behind them."""
        bodies: list[Code] = []
        first, start = at, at
        runs = name in _WITH_HEREDOCS or arguments.text.lstrip()[:4].upper() == "RUN "
        for match in _HEREDOC.finditer(arguments.text) if runs else ():
            end = start
            while end < len(self._lines) and not self._ends(self._lines[end], match["name"], bool(match["tabs"])):
                end += 1
            if end == len(self._lines):
                # No line ends it, so it is text that looks like one.
                break
            bodies.append(self._code(start, end))
            start = end + 1
        return start, bodies, self._code(first, start)

    def _ends(self, line: Line, name: str, tabs: bool) -> bool:
        written = self._text[line.start : line.end]
        return (written.lstrip("\t") if tabs else written) == name

    def _code(self, first: int, end: int) -> Code:
        if first == end:
            return Code()
        return Code.of(self._text, self._lines[first].start, self._lines[end - 1].after)

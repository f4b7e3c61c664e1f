"""The statements of a makefile: variables, recipes and the lines of `define`, as GNU make divides its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.code import Code
from cgmigrate.documents.embedded.lines import Line, lines_of
from cgmigrate.text.spans import Span

_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_WORDS = r"[ \t]*(?:(?:export|override|private)[ \t]+)*"
_ASSIGNMENT = re.compile(rf"{_WORDS}(?P<name>[^\s:#=+?!$]+)[ \t]*(?P<operator>=|:{{1,3}}=|\?=|\+=|!=)[ \t]*")
_DEFINE = re.compile(rf"{_WORDS}define[ \t]+(?P<name>[^\s=:+?!]+)")
_END_OF_DEFINE = re.compile(r"[ \t]*endef\b")
_CONDITION = re.compile(r"[ \t]*(?P<word>ifeq|ifneq|ifdef|ifndef|else|endif)\b")
_RULE = re.compile(r"(?P<targets>[^\n:=]+?)[ \t]*(?<!\$)(?:&)?::?(?!=)(?P<rest>.*)", re.DOTALL)
_PREFIX = re.compile(r"[ \t@+-]*")
_COMMENT = re.compile(r"(?<!\\)#")


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable that the file sets. ``is_certain`` says that no condition decides whether it does."""

    name: str
    operator: str
    value: Code
    span: Span
    is_certain: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A line of a recipe, with those that continue it; ``rule`` is the number of its rule."""

    code: Code
    span: Span
    rule: int


@dataclass(frozen=True, slots=True)
class Definition:
    """The lines between `define` and `endef`."""

    name: str
    lines: tuple[Code, ...]
    span: Span


@dataclass(slots=True)
class Statements:
    """The statements of a text, in its order. ``others`` are those that are no assignment, command or definition."""

    assignments: list[Assignment] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    comments: list[Span] = field(default_factory=list)
    rules: list[tuple[Span, str]] = field(default_factory=list)
    """The rules with their targets."""
    local: list[str] = field(default_factory=list)
    """Variables that a rule sets for its own targets."""
    others: list[Span] = field(default_factory=list)


def statements_of(text: str) -> Statements:
    """Return the statements of a makefile."""
    reader = _Reader(text)
    reader.read()
    return reader.result


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = lines_of(text)
        self.result = Statements()
        self.at = 0
        self.depth = 0
        self.is_in_rule = False

    def read(self) -> None:
        """Read the whole text."""
        while self.at < len(self.lines):
            first = self.lines[self.at]
            written = self.text[first.start : first.end]
            if self.is_in_rule and written.startswith("\t"):
                self._add_command(self._logical(_PREFIX), first)
            elif not written.strip():
                self.at += 1
            elif written.lstrip().startswith("#"):
                self._logical()
                self.result.comments.append(self._span(first))
            elif match := _DEFINE.match(written):
                self._read_definition(match["name"], first)
            else:
                self._read_statement(self._logical(), first)

    def _span(self, first: Line) -> Span:
        """Return the span from a line to the last one that was read."""
        return Span(first.start, self.lines[self.at - 1].end)

    def _logical(self, prefix: re.Pattern[str] | None = None) -> Code:
        """Read a line with those that continue it; what the prefix matches is no part of the code."""
        parts: list[Code] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            start = line.start
            if prefix and not parts:
                start = prefix.match(self.text, line.start, line.end).end()  # type: ignore[union-attr]
            parts.append(Code.of(self.text, start, line.end))
            if not _CONTINUED.search(self.text[start : line.end]):
                break
            parts.append(Code.written_as("\n", line.end, line.after) if line.after > line.end else Code())
        return Code.joined(parts)

    def _add_command(self, code: Code, first: Line) -> None:
        if code.text.startswith("#") and "\n" not in code.text:
            # A backslash does not continue a comment of the shell, so that further lines would be commands.
            self.result.comments.append(Span(code.starts[0], code.ends[-1]))
        elif code.text.strip():
            self.result.commands.append(Command(code, self._span(first), len(self.result.rules)))

    def _read_definition(self, name: str, first: Line) -> None:
        self.at += 1
        lines = []
        self.is_in_rule = False
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if _END_OF_DEFINE.match(self.text, line.start, line.end):
                self.at += 1
                break
            lines.append(self._logical())
        self.result.definitions.append(Definition(name, tuple(lines), self._span(first)))

    def _read_statement(self, code: Code, first: Line) -> None:
        span = self._span(first)
        if match := _CONDITION.match(code.text):
            self.depth += {"else": 0, "endif": -1}.get(match["word"], 1)
            self.result.others.append(span)
        elif match := _ASSIGNMENT.match(code.text):
            self.is_in_rule = False
            value = self._without_comment(code[match.end() :])
            is_certain = self.depth <= 0 and match["operator"] != "?="
            self.result.assignments.append(Assignment(match["name"], match["operator"], value, span, is_certain))
        elif match := _RULE.match(code.text):
            self.is_in_rule = True
            self.result.rules.append((span, match["targets"].strip()))
            self._read_rule(code[match.start("rest") :], span)
        else:
            self.is_in_rule = False
            self.result.others.append(span)

    def _read_rule(self, rest: Code, span: Span) -> None:
        """Read what is behind the targets: a command behind a semicolon."""
        before, _, command = rest.text.partition(";")
        if match := _ASSIGNMENT.match(rest.text):
            self.result.local.append(match["name"])
        elif command.strip() and "#" not in before and "$(" not in before:
            code = rest[len(before) + 1 :]
            prefix = _PREFIX.match(command).end()  # type: ignore[union-attr]
            self.result.commands.append(Command(code[prefix:], span, len(self.result.rules)))
        else:
            self._without_comment(rest)
        self.result.others.append(span)

    def _without_comment(self, code: Code) -> Code:
        """Return the code in front of a comment, without the blanks before it; the comment is noted."""
        match = _COMMENT.search(code.text)
        if match:
            self.result.comments.append(Span(code.starts[match.start()], code.ends[-1]))
            code = code[: match.start()]
        return code.stripped()


def command_lines(definition: Definition) -> Iterator[Code]:
    """Yield the lines of a definition as commands."""
    for line in definition.lines:
        code = line[len(_PREFIX.match(line.text).group()) :]  # type: ignore[union-attr]
        if code.text.strip():
            yield code

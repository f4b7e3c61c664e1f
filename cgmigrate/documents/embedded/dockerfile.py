"""A Dockerfile: its instructions run commands, and set variables that later ones expand.

Each stage is a part of the script that sees what the stages that it is built from set. Commands have a shell each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.code import Code
from cgmigrate.documents.embedded.arrays import CommandArray, command_array
from cgmigrate.documents.embedded.document import EmbeddedDocument
from cgmigrate.documents.embedded.instructions import Instruction, Instructions, is_quoted, without_heredocs
from cgmigrate.documents.embedded.layout import Layout, Unread
from cgmigrate.documents.embedded.parts import in_shell, is_shell, possibly
from cgmigrate.documents.shell.tree import parse
from cgmigrate.text.spans import Span

_FROM = re.compile(r"\s*(?:--platform=\S+\s+)?(?P<image>\S+)(?:\s+[Aa][Ss]\s+(?P<name>\S+))?\s*")
_OPTIONS = re.compile(r"(?:\s|\\\n)*(?:--[\w-]+(?:=\S*)?(?:\s|\\\n)+)*")
_ASSIGNMENT = re.compile(r"\s*[A-Za-z_]\w*=")
_FORMER_ASSIGNMENT = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s+(?P<value>[^\"'`$]*)")
_SHEBANG = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?(?P<program>[\w.]+)")
_READS_SCRIPT = re.compile(r"(?:\S*/)?(?P<program>\w+)(?:\s+(?:-o\s+\w+|[-+][abd-z]+|-))*")
"""A program that reads what it runs from its input."""
_VARIABLE = re.compile(r"\$\{?(\w+)", re.ASCII)
_TWICE = "`{name}` is set more than once, so the file does not show what a command gets"
_EXPANDED = "line {line} expands `{name}` and is not read"
_OF_ANOTHER = "the `ENTRYPOINT` of another stage may get these arguments"
_OF_ENTRYPOINT = "CMD"
"""The variable of the script that has the arguments which `CMD` gives to `ENTRYPOINT`."""


class DockerDocument(EmbeddedDocument):
    """A Dockerfile; see ``sites.Document``."""

    @staticmethod
    def layout_of(text: str, names: Collection[int]) -> Layout:
        """Return the layout of a text; ``names`` is where names of settings begin."""
        return _Reader(text, frozenset(names)).layout()


@dataclass(eq=False, slots=True)
class _Stage:
    """A stage: what its instructions run and set, what its containers run, and the stages that are built from it."""

    name: str = ""
    start: int = 0
    parts: list[Code] = field(default_factory=list)
    commands: list[Code] = field(default_factory=list)
    stages: list[_Stage] = field(default_factory=list)
    entrypoint: Code | None = None
    """The array of `ENTRYPOINT`."""
    arguments: CommandArray | None = None
    """The array of `CMD`."""
    has_entrypoint: bool = False
    """Whether the stage, or one that it is built from, has an array as `ENTRYPOINT`."""
    has_shell: bool = True

    def script(self) -> Code:
        """Return the stage, and those that are built from it, as a part of the script."""
        return in_shell(Code.joined([*self.parts, *self.commands, self._of_container(), *map(_script, self.stages)]))

    def _of_container(self) -> Code:
        """Return what containers run if `ENTRYPOINT` or `CMD` are arrays."""
        arguments = self._arguments()
        if self.entrypoint is None:
            return arguments
        # `docker run` may give others.
        rest = f' "${{{_OF_ENTRYPOINT}[@]}}" "$@"' if arguments else ' "$@"'
        return possibly(arguments) + in_shell(self.entrypoint + Code.added(rest))

    def _arguments(self) -> Code:
        words = self.arguments
        if words is None or not words.texts:
            return Code()
        if self.has_entrypoint or words.texts[0].startswith("-"):
            return Code.added(f"{_OF_ENTRYPOINT}=(") + words.code + Code.added(")\n")
        return in_shell(words.code)


def _script(stage: _Stage) -> Code:
    return stage.script()


class _Reader:
    def __init__(self, text: str, names: frozenset[int]) -> None:
        self.text, self.names = text, names
        self.top = _Stage()
        self.stage = self.top
        self.stages: dict[str, _Stage] = {}
        self.in_order: list[_Stage] = []
        self.words: list[Span] = []
        self.unread: list[Unread] = []
        self.assigned: Counter[str] = Counter()
        self.blocked: dict[str, str] = {}

    def layout(self) -> Layout:
        """Return the layout of the text."""
        read = Instructions(self.text)
        for instruction in read.instructions:
            self._read(instruction, instruction.name, instruction.arguments)
        self.blocked |= {name: _TWICE.format(name=name) for name, count in self.assigned.items() if count > 1}
        if any(one.has_entrypoint and one.entrypoint is None for one in self.in_order) or self.assigned[_OF_ENTRYPOINT]:
            self.blocked[_OF_ENTRYPOINT] = _OF_ANOTHER
        spans = [one.span for one in read.instructions]
        return Layout(
            self.top.script(),
            self.words,
            self.unread,
            read.comments,
            [span for span in spans if "\n" in self.text[span.start : span.end]],
            self._places(),
            self.blocked,
            escape=read.escape,
        )

    def _places(self) -> list[tuple[Span, str]]:
        ends = [stage.start for stage in self.in_order[1:]] + [len(self.text) + 1]
        return [(Span(stage.start, end), stage.name) for stage, end in zip(self.in_order, ends, strict=False)]

    # --- instructions -------------------------------------------------------------------------------

    def _read(self, instruction: Instruction, name: str, arguments: Code) -> None:
        match name:
            case "FROM":
                self._begin(arguments.text, instruction.span.start)
            case "SHELL":
                words = self._array(arguments, instruction)
                shell = words.texts[0] if words and words.texts else ""
                self.stage.has_shell = is_shell(shell)
            case "ONBUILD":
                self._read_on_build(instruction, arguments)
            case "ENV" | "ARG":
                self._read_variables(instruction, arguments, is_certain=name == "ENV")
            case "RUN" | "CMD" | "ENTRYPOINT" | "HEALTHCHECK":
                self._read_command(instruction, name, arguments)
            case _:
                self._leave(instruction, f"an instruction `{name}`")

    def _begin(self, arguments: str, start: int) -> None:
        match = _FROM.match(arguments)
        above = self.stages.get(match["image"].lower() if match else "", self.top)
        name = (match["name"] or "") if match else ""
        self.stage = _Stage(name, start, has_entrypoint=above.has_entrypoint, has_shell=above.has_shell)
        above.stages.append(self.stage)
        self.in_order.append(self.stage)
        if name:
            self.stages[name.lower()] = self.stage

    def _read_on_build(self, instruction: Instruction, arguments: Code) -> None:
        match = re.match(r"\s*(?P<name>[A-Za-z]+)\s", arguments.text)
        name = match["name"].upper() if match else ""
        if match and name in ("RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK"):
            self._read_command(instruction, name, arguments[match.end() :], is_deferred=True)
        else:
            self._leave(instruction, "an instruction `ONBUILD`")

    def _read_variables(self, instruction: Instruction, arguments: Code, *, is_certain: bool) -> None:
        """Read what sets variables; others may give ``ARG`` another value."""
        if not _ASSIGNMENT.match(arguments.text):
            match = _FORMER_ASSIGNMENT.fullmatch(arguments.text.rstrip()) if is_certain else None
            if match is None:
                self._leave(instruction, "a value that is not read")
                return
            value = arguments[match.start("value") : match.end("value")]
            arguments = arguments[: match.end("name")] + Code.added('="') + value + Code.added('"')
        arguments = arguments.stripped()
        variables = _assigned(arguments.text)
        if not variables:
            self._leave(instruction, "a value that is not read")
            return
        self.assigned.update(variables)
        exported = Code.added("export ") + arguments
        self.stage.parts.append(exported + Code.added("\n") if is_certain else possibly(exported))

    def _read_command(self, instruction: Instruction, name: str, arguments: Code, *, is_deferred: bool = False) -> None:
        if name == "HEALTHCHECK":
            match = re.match(rf"{_OPTIONS.pattern}CMD\s+", arguments.text, re.IGNORECASE)
            if match is None:
                return
            arguments = arguments[match.end() :]
        elif name == "RUN":
            arguments = arguments[len(_OPTIONS.match(arguments.text).group()) :]  # type: ignore[union-attr]
        try:
            words = command_array(arguments, self.text, self.names)
        except ValueError as error:
            self._leave(instruction, str(error))
            return
        if words is None:
            self._add_script(instruction, name, arguments)
        else:
            self._add_array(name, words, is_deferred=is_deferred)

    def _array(self, arguments: Code, instruction: Instruction) -> CommandArray | None:
        try:
            return command_array(arguments, self.text, self.names)
        except ValueError:
            self._leave(instruction, "a string with escapes")
            return None

    def _add_array(self, name: str, words: CommandArray, *, is_deferred: bool) -> None:
        self.words += words.words
        if name == "ENTRYPOINT" and not is_deferred:
            self.stage.entrypoint, self.stage.has_entrypoint = words.code, True
        elif name == "CMD" and not is_deferred:
            self.stage.arguments = words
        else:
            self._add(name, words.code)

    def _add_script(self, instruction: Instruction, name: str, arguments: Code) -> None:
        code = arguments + Code.added("\n") + instruction.ending if instruction.bodies else arguments
        if instruction.bodies and (script := _script_of(instruction, arguments)) is not None:
            code = script
        if not self.stage.has_shell:
            self._leave(instruction, "a command of another shell")
        elif reason := _unclear(code.text):
            self._leave(instruction, reason)
        else:
            self._add(name, code)

    def _add(self, name: str, code: Code) -> None:
        # What containers run sees variables that are set below it, too.
        (self.stage.parts if name == "RUN" else self.stage.commands).append(in_shell(code))

    def _leave(self, instruction: Instruction, what: str) -> None:
        """Note an instruction that is not read; what it expands is not known to be right with other values."""
        self.unread.append(Unread(instruction.span, what))
        line = self.text.count("\n", 0, instruction.span.start) + 1
        for name in _VARIABLE.findall(self.text[instruction.span.start : instruction.span.end]):
            self.blocked.setdefault(name, _EXPANDED.format(line=line, name=name))


def _script_of(instruction: Instruction, arguments: Code) -> Code | None:
    """Return the here-document that an instruction runs as a script of the shell, None if it does not."""
    (body, *others), rest = instruction.bodies, without_heredocs(arguments.text).strip()
    shebang, program = _SHEBANG.match(body.text), _READS_SCRIPT.fullmatch(rest)
    if others or (shebang and not is_shell(shebang["program"])):
        return None
    if program and is_shell(program["program"]):
        # The shell of the instruction expands the text, unless the word that ends it is quoted.
        is_same = is_quoted(arguments.text) or not set("$`\\") & set(body.text)
        return body if is_same else None
    return None if rest else body


@lru_cache(maxsize=4096)
def _unclear(code: str) -> str:
    """Return what the shell code of an instruction is if it is not read, empty if it is."""
    tree = parse(code)
    if tree.errors:
        return "a command that the grammar of the shell does not cover"
    if any(tree.written(node).endswith("\\") for node in tree.comments):
        # Docker joins the lines, so that the next one is a part of the comment.
        return "a command with a comment that a backslash continues"
    return ""


@lru_cache(maxsize=4096)
def _assigned(code: str) -> Sequence[str]:
    """Return the variables that code sets, none if it does anything else."""
    if "`" in code or "$(" in code:
        return ()
    tree = parse(code)
    if tree.errors or any(not node.type.startswith("variable_assignment") for node in tree.root.named_children):
        return ()
    return [tree.written(node).partition("=")[0].rstrip("+") for node in tree.assignments]

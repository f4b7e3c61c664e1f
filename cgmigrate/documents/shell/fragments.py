"""Fragments of command lines: the words of one command, or those that one assignment puts into a variable."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.flags import Flag, flags_in, options_in
from cgmigrate.documents.shell.quoted import Script, script_in, scripts_of
from cgmigrate.documents.shell.related_code import ScriptText
from cgmigrate.documents.shell.tree import ShellTree
from cgmigrate.documents.shell.words import Word, literal_text, words_in_string, words_in_text, words_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node

_OTHER_CODE = re.compile(r"(?<![\w./-])(?:eval|source)(?![\w./-])|(?:^|[;&|])[ \t]*\.[ \t]", re.MULTILINE)
"""Code that the script does not show."""


class KnownVariables:
    """The variables of a script with a known value."""

    def __init__(self, code: ScriptText) -> None:
        self._code = code
        self._values: dict[str, tuple[int, str] | None] = {}
        """Where the assignment of a variable ends, and its value."""

    def words(self, word: Word) -> list[str] | None:
        """Return the words that a command gets of one that is a variable, None if that is not known."""
        name, tree = word.variable, self._code.tree
        if name not in self._values:
            self._values[name] = _value(name, self._code) if name.isidentifier() else None
        known = self._values[name]
        node = tree.at(word.span)
        # In single quotes, another shell expands it.
        if known is None or node is None or node.type == "raw_string":
            return None
        if known[0] > word.start or _OTHER_CODE.search(tree.text, known[0], word.start):
            return None
        return [known[1]] if tree.text[word.start] == '"' else known[1].split()

    def may_begin_with_value(self, word: Word) -> bool:
        """Return whether a variable, or a part of it, may begin with a word that the flag before it takes.

        What the script does not assign is taken for more flags.
        """
        for assignment in self._code.assignments(word.variable or word.of):
            value = assignment.child_by_field_name("value")
            nodes = [] if value is None else value.named_children if value.type == "array" else [value]
            texts = [text for one in words_of(nodes, self._code.tree) for text in (one.text or "-").split()]
            if not all(text.startswith("-") for text in texts[: 1 if word.variable else None]):
                return True
        return False


def _value(name: str, code: ScriptText) -> tuple[int, str] | None:
    """Return where the assignment of a variable ends, and its value."""
    assignments, tree = code.assignments(name), code.tree
    if len(assignments) != 1 or not _is_plain(assignments[0]):
        return None
    value = assignments[0].child_by_field_name("value")
    text = literal_text(value, tree) if value is not None else None
    expansion = re.compile(rf"\$(?:{name}(?!\w)|\{{{name}\}})")
    mentions = len(re.findall(rf"(?<!\w){name}(?!\w)", tree.text)) - len(expansion.findall(tree.text))
    return (tree.span(assignments[0]).end, text) if text and mentions == 1 else None


def _is_plain(assignment: Node) -> bool:
    """Return whether an assignment always runs, and sets no variable of the environment."""
    parent = assignment.parent
    is_alone = parent is not None and parent.type in ("program", "variable_assignments")
    return is_alone and not any(child.type == "+=" for child in assignment.children)


Path = tuple[tuple[int, int], ...]
"""The blocks around a place, from the outermost: where each begins, and which of its branches."""

PRINTERS = frozenset(["echo", "printf", "log", "info", "warn", "die", "usage", "print", "cat", "tee", "git", "logger"])
"""Commands whose words are text for people."""
SEARCHERS = frozenset(["grep", "egrep", "fgrep", "rg", "sed", "awk", "perl", "test", "[", "read"])
"""Commands that search text for some of their words."""
_READERS_OF_TEXT = PRINTERS | SEARCHERS
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_SCRIPT = re.compile(r"[=/\"']([\w.-]+\.py)[\"']?\Z", re.ASCII)
_BRANCHES = ("elif_clause", "else_clause")
SUBSHELLS = ("subshell", "command_substitution", "process_substitution")
FUNCTION, _LOOP = -1, -2
_AGAIN = {"compound_statement": FUNCTION, "do_group": _LOOP}
"""Blocks that may run several times, with the branch that a path has for them."""


_BY_POSITION = "the quoted script reads these words by position"
_EXTENDED = "`${variable}` is a script of several commands, and it is set in several places"


class FragmentForm(Enum):
    """How the words of a fragment are written, which decides how lines are joined."""

    COMMAND = "a command"
    ARRAY = "an array"
    STRING = "a string"
    FILE = "a file of arguments"


@dataclass(frozen=True, eq=False, slots=True)
class Fragment:
    """Words at one place of a script.

    ``variable`` is what they are assigned to, empty for those of a command. ``appends`` says that the variable keeps
    what it had. ``path`` are the blocks around the place, and ``start`` is where its code begins.
    """

    form: FragmentForm
    words: Sequence[Word]
    span: Span
    flags: Sequence[Flag]
    options: dict[str, object]
    start: int
    path: Path = ()
    variable: str = ""
    appends: bool = False
    blocked_by: str = ""
    risk: str = ""
    """Why a rewriting is not safe."""

    @property
    def program(self) -> str:
        """The script that a command or the text of a variable starts, or else the command itself.

        Empty if neither is known.
        """
        names = (word.text or word.script for word in self.words)
        scripts = (name for name in names if name.endswith(".py"))
        if self.variable:
            return next(scripts, "").rpartition("/")[2]
        texts = [word.text for word in self.words if word.text]
        first = texts[0] if texts and self.words[0].text and not texts[0].startswith("-") else ""
        return next(scripts, first).rpartition("/")[2]


def may_run_again(path: Path) -> Path:
    """Return the innermost loop or function around a place with what is around that, empty if there is none.

    A command in it may run after an assignment that is written below it.
    """
    at = next((at for at in reversed(range(len(path))) if path[at][1] in (FUNCTION, _LOOP)), -1)
    return path[: at + 1]


def exclude_each_other(one: Path, other: Path) -> bool:
    """Return whether two places are in different branches of one statement."""
    branches = dict(one)
    return any(branches.get(start, branch) != branch for start, branch in other)


def is_certain(place: Path, where: Path) -> bool:
    """Return whether the code at a place has run wherever the code behind it, at ``where``, runs."""
    return where[: len(place)] == place


class FragmentReader:
    """Reads the fragments of a script; ``script`` is that in quotes which it reads, at ``path`` of the file."""

    def __init__(self, tree: ShellTree, catalogue: Catalogue) -> None:
        self.tree, self.text, self.catalogue = tree, tree.text, catalogue
        self._code = ScriptText(tree)
        self._known = KnownVariables(self._code)
        self._file = self
        self._scripts: dict[tuple[ShellTree, str], dict[int, Script | None]] = {}
        self.not_exported: set[str] = set()
        """Variables that scripts in quotes expand, and that the script around them may not pass on."""
        self.functions: dict[Span, str] = {}
        """The names of functions by where they are defined, those of scripts in quotes included."""
        self._script: Script | None = None
        self._around: Path = ()

    def _inside(self, script: Script, path: Path) -> FragmentReader:
        """Return the reader of a script in quotes."""
        reader = copy(self)
        reader.tree, reader._script, reader._around = script.tree, script, path
        return reader

    @property
    def plain_variables(self) -> Container[str]:
        """Variables that never contain a flag; their assignments are no fragments."""
        return self._code

    def fragments(self, starts: Sequence[int]) -> list[Fragment]:
        """Return the fragments that share a command with a setting, in the order of the text.

        ``starts`` is where names of settings begin.
        """
        commands, assignments = self._code.related(starts)
        return sorted(self._of(commands, assignments), key=lambda one: one.start)

    def _of(self, commands: Sequence[Node], assignments: Sequence[Node]) -> list[Fragment]:
        names = ((node, node.child_by_field_name("name")) for node in self.tree.functions)
        self.functions |= {self._span(node): self.tree.written(name) for node, name in names if name is not None}
        result = [one for node in commands for one in self._of_command(node)]
        return result + [one for node in assignments for one in self._of_assignment(node)]

    def known_words(self, word: Word) -> list[str] | None:
        """Return the words that a command gets of a variable, None if that is not known."""
        return self._known.words(word) if word.variable else None

    def with_known_variables(self, word: Word) -> str:
        """Return a word as it is written, without its quotes, with the values of variables that are known."""
        return _VARIABLE.sub(lambda match: self._value_of(match, word), self.text[word.start : word.end].strip("\"'"))

    def _value_of(self, match: re.Match[str], word: Word) -> str:
        known = self._known.words(Word(word.start, word.end, None, match[1] or match[2]))
        return known[0] if known and len(known) == 1 else match[0]

    def of_arguments(self) -> list[Fragment]:
        """Return the one fragment of a file that contains nothing but arguments."""
        words: list[Word] = []
        for line in re.finditer(r"[^\n]+", self.text):
            if not line.group().lstrip().startswith("#"):
                words += words_in_text(self.text, Span(*line.span()))
        words = [word for word in words if self.text[word.start : word.end] != "\\"]
        return [self._made(FragmentForm.FILE, words, Span(0, len(self.text)))]

    def _made(
        self, form: FragmentForm, words: Sequence[Word], span: Span, path: Path = (), blocked_by: str = ""
    ) -> Fragment:
        flags = flags_in(words, self.text, self.catalogue, self._known)
        risk = self._script.risk if self._script is not None else ""
        options = options_in(words, self.text)
        return Fragment(form, words, span, flags, options, span.start, path, blocked_by=blocked_by, risk=risk)

    def _of_command(self, node: Node) -> Iterator[Fragment]:
        words = self._placed(words_of(node.named_children, self.tree))
        name = words[0].text if words else None
        if name is not None and name.rpartition("/")[2] in _READERS_OF_TEXT:
            return
        path, span = self._path(node), self._span(node)
        has_strings = node.end_byte - node.start_byte > len(words)
        scripts = list(scripts_of(node, self.tree, self._script)) if words and has_strings else []
        end = min((one.code.starts[0] for one in scripts if one.takes_rest), default=span.end)
        words = [word for word in words if word.start < end]
        self._name_script(words)
        is_quoted = self._script is not None
        starts_with_flag = name is not None and name.startswith(("-", "+"))
        blocked_by = _NO_COMMAND if starts_with_flag and not is_quoted else ""
        if any(one.gets_words and words[-1].start > one.code.starts[-1] for one in scripts if words):
            blocked_by = _BY_POSITION
        yield self._made(FragmentForm.STRING if is_quoted else FragmentForm.COMMAND, words, span, path, blocked_by)
        for script in scripts:
            yield from self._of_script(script, path)

    def _of_script(self, script: Script, path: Path) -> Iterator[Fragment]:
        """Yield the fragments of a script in quotes. One that the grammar does not cover is not rewritten."""
        if script.tree.is_too_deep:
            return
        reason = script.problem
        for one in self._inside(script, path)._of(script.tree.commands, script.tree.assignments):
            yield replace(one, blocked_by=reason) if reason else one

    # --- places in the file -------------------------------------------------------------------------

    def _span(self, node: Node) -> Span:
        span = self.tree.span(node)
        return self._script.code.span(span) if self._script is not None else span

    def _path(self, node: Node) -> Path:
        if self._script is None:
            return path_of(node)
        starts = self._script.code.starts
        # No place of the file is below 0.
        inner = ((-1 - starts[self.tree.offset(start)], branch) for start, branch in path_of(node))
        return (*self._around, *inner)

    def _placed(self, words: list[Word]) -> list[Word]:
        """Return words of a script in quotes with their places in the file, and the variables that they mean."""
        if (script := self._script) is not None:
            for word in words:
                meant = script.variable(word.variable, word.start) if word.variable else ""
                self.not_exported |= {word.variable} if word.variable and not meant else set()
                word.variable = meant
                span = script.code.span(word.span)
                word.start, word.end = span.start, span.end
        return words

    def _name_script(self, words: Sequence[Word]) -> None:
        """Name the script of a command that a variable has: ``torchrun $SCRIPT``."""
        if any((word.text or word.script).endswith(".py") for word in words):
            return
        for word in words:
            assignments = self._code.assignments(word.variable) if word.variable.isidentifier() else ()
            if len(assignments) == 1 and (script := _SCRIPT.search(self._file.tree.written(assignments[0]))):
                word.script = script[1]
                return

    def _of_assignment(self, node: Node) -> Iterator[Fragment]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            return
        variable, span, path = self.tree.written(name), self._span(node), self._path(node)
        scripts = self._scripts_in(variable)
        reason = _EXTENDED.format(variable=variable) if len(scripts) > 1 and any(scripts.values()) else ""
        if (script := scripts.get(node.start_byte)) is not None:
            yield from (replace(one, blocked_by=one.blocked_by or reason) for one in self._of_script(script, path))
            return
        form, words = self._value(value)
        if self._script is not None:
            variable = self._script.variable(variable, self.tree.span(name).start)
        kept = [word for word in words if word.variable != variable]
        appends = len(kept) != len(words) or any(child.type == "+=" for child in node.children)
        made = self._made(form, kept, self._span(value) if value else span, path)
        yield replace(made, start=span.start, variable=variable, appends=appends, blocked_by=reason)

    def _scripts_in(self, variable: str) -> dict[int, Script | None]:
        """Return the scripts of several commands that assignments put into a variable, by where these begin."""
        if (key := (self.tree, variable)) not in self._scripts:
            same = [one for one in self.tree.assignments if self._code.variable(one, self.tree) == variable]
            values = ((one.start_byte, one.child_by_field_name("value")) for one in same)
            self._scripts[key] = {at: script_in(one, self.tree, self._script) if one else None for at, one in values}
        return self._scripts[key]

    def _value(self, value: Node | None) -> tuple[FragmentForm, list[Word]]:
        if value is None:
            return FragmentForm.STRING, []
        match value.type:
            case "array":
                return FragmentForm.ARRAY, self._placed(words_of(value.named_children, self.tree))
            case "string" | "raw_string":
                return FragmentForm.STRING, self._placed(words_in_string(value, self.tree))
        return FragmentForm.STRING, self._placed(words_of([value], self.tree))


def path_of(node: Node) -> Path:
    """Return the blocks around a node."""
    path: list[tuple[int, int]] = []
    child, parent = node, node.parent
    while parent is not None:
        branch = _branch(child, parent)
        if branch is not None:
            path.append((parent.start_byte, branch))
        child, parent = parent, parent.parent
    return tuple(reversed(path))


_NO_COMMAND = "the shell runs this line as a command of its own: a comment or a line above ends the command"


def _branch(child: Node, parent: Node) -> int | None:
    """Return which branch of a statement a part of it is in; None if the part always runs."""
    if parent.type == "if_statement":
        if child.type in _BRANCHES:
            return child.start_byte
        then = next((part.start_byte for part in parent.children if part.type == "then"), 0)
        return 0 if child.start_byte > then else None
    if child.type == "case_item":
        return child.start_byte
    if parent.type == "list":
        return 0 if parent.named_children[0] != child else None
    if child.type in _AGAIN:
        return _AGAIN[child.type]
    return 0 if parent.type in SUBSHELLS else None

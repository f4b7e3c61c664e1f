"""Scripts in quotes: ``bash -c '…'``, ``eval "…"``, ``sbatch --wrap="…"``, at any depth.

Another shell parses them, so they are parsed by the grammar of the shell, too. Each character of such a script has its
place in the file, whatever the quotes around it are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.documents.code import CodeText
from cgmigrate.documents.shell.heredoc_text import is_set
from cgmigrate.documents.shell.tree import ShellTree, parse
from cgmigrate.documents.shell.words import EXPANSIONS, is_override_of_list, literal_text
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node

_SHELL = re.compile(r"(?:\S*/)?(?:ba|da|a|k|z)?sh")
_GIVES_CODE = re.compile(r"-[a-z]*c")
"""Options of a shell (and of ``su``, ``flock`` and ``script``) whose value is a script."""
_WRAP = "--wrap"
_JOIN_WORDS = frozenset(("eval", "ssh"))
"""Commands that join their words to one script."""
_ESCAPES = re.compile(r"\\(?:\r?\n|[\\$`\"])")
_ESCAPES_OF_WORDS = re.compile(r"\\(?:\r?\n|.)", re.DOTALL)
_OWN_ARGUMENTS = re.compile(r"\$\{?[1-9@*]")
_SEPARATES = re.compile(r"[;&|]|(?<!\\)\n")
"""What may be between two commands of a script."""
_ANYWHERE = -1
_STRINGS = ("string", "raw_string", "ansi_c_string", "concatenation")
_EXPORTS = (
    r"\b(?:export|declare\s+-\w*x\w*|typeset\s+-\w*x\w*)\b[^\n;|&]*(?<![\w$]){name}\b|\bset\s+-\w*a\b|\ballexport\b"
)
UNKNOWN_READER = "`{program}` gets a command line as one word, which cgmigrate does not follow"
_NOT_SHELL = "cgmigrate cannot parse the quoted script"


@dataclass(frozen=True, eq=False)
class Script:
    """A script in quotes. ``code`` is its text with the place of each character in the file.

    ``outer`` are the expansions in it that the shell around it replaces. ``shares`` says that it runs in that shell.
    ``around`` is the script that it is in, None for that of the file; ``at`` is where it is in the text of that one.
    ``risk`` says why its rewriting is not safe.
    """

    tree: ShellTree
    code: CodeText
    outer: Sequence[Span]
    at: int
    around: Script | None = None
    text_around: str = ""
    shares: bool = False
    risk: str = ""
    takes_rest: bool = False
    """Whether the words behind it belong to it."""

    def variable(self, name: str, start: int) -> str:
        """Return the variable that a name means at a place of the script; empty if that is not known."""
        if any(span.start <= start < span.end for span in self.outer):
            return self._outer_variable(name)
        if self.shares:
            return self.around.variable(name, _ANYWHERE) if self.around is not None else name
        if not name.isidentifier() or is_set(name, self.tree.text):
            # What a script in this one sets is not set in this one.
            own = {self.tree.written(one).partition("=")[0].rstrip("+") for one in self.tree.assignments}
            is_own = name in own or not is_exported(name, self.text_around)
            return f"{name}@{self.code.starts[0]}" if is_own else ""
        return self._outer_variable(name) if is_exported(name, self.text_around) else ""

    @property
    def problem(self) -> str:
        """Why it is not certain what the script does, empty if it is."""
        escapes = any(span.start and self.tree.text[span.start - 1] == "\\" for span in self.outer)
        return _NOT_SHELL if escapes or self.tree.is_too_deep or self.tree.errors else ""

    @property
    def gets_words(self) -> bool:
        """Whether it uses the words behind it as arguments of its own."""
        return not self.takes_rest and _OWN_ARGUMENTS.search(self.tree.text) is not None

    def _outer_variable(self, name: str) -> str:
        return self.around.variable(name, self.at) if self.around is not None else name


def is_exported(variable: str, text: str) -> bool:
    """Return whether a script may pass a variable on to the programs that it starts."""
    return bool(variable) and re.search(_EXPORTS.format(name=re.escape(variable)), text) is not None


def scripts_of(command: Node, tree: ShellTree, around: Script | None) -> Iterator[Script]:
    """Yield the scripts in quotes among the words of a command, those of which only the reader is unknown included."""
    nodes = [node for node in command.named_children if node.type not in ("variable_assignment", "file_redirect")]
    names = [literal_text(node, tree) or "" for node in nodes]
    program = names[0].rpartition("/")[2]
    if program in _JOIN_WORDS:
        first = next((at for at, node in enumerate(nodes) if at and node.type in _STRINGS), 0)
        script = _script(nodes[first:], tree, around, shares=program == "eval") if first else None
        yield from [replace(script, takes_rest=True)] if script is not None else ()
        return
    known = _scripts_among(names)
    for at, node in enumerate(nodes):
        written = _wrapped(node, tree) if program == "sbatch" else None
        if written is not None or (at and node.type in _STRINGS):
            is_run = at in known or written is not None
            risk = "" if is_run else UNKNOWN_READER.format(program=program or "a command")
            script = _script([written or node], tree, around, program == "trap", risk)
            if script is not None and (is_run or _is_command_line(tree.written(node), script.tree.text)):
                yield script


def script_in(value: Node, tree: ShellTree, around: Script | None) -> Script | None:
    """Return the script that the value of a variable is, None if it has the words of one command at most."""
    may_be = value.type in _STRINGS and _SEPARATES.search(tree.written(value)) is not None
    script = _script([value], tree, around, shares=True) if may_be else None
    if script is None or script.tree.is_too_deep:
        return None
    nodes = [node for node in script.tree.root.named_children if node.type != "comment"]
    is_one = len(nodes) == 1 and nodes[0].type in ("command", "variable_assignment", "redirected_statement")
    return None if is_one or not nodes or not script.tree.commands else script


def _scripts_among(names: Sequence[str]) -> frozenset[int]:
    """Return which words of a command are scripts."""
    program = names[0].rpartition("/")[2]
    if program == "trap":
        return frozenset([1])
    shells = [at for at, name in enumerate(names) if _SHELL.fullmatch(name)] or [0] * (program in ("su", "script"))
    for shell in shells[:1]:
        option = next((at for at in range(shell + 1, len(names)) if _GIVES_CODE.fullmatch(names[at])), 0)
        return frozenset([option + 1]) if option else frozenset()
    return frozenset(at + 1 for at, name in enumerate(names) if name == _WRAP and program == "sbatch")


def _wrapped(node: Node, tree: ShellTree) -> Node | None:
    """Return the string in ``--wrap="…"``."""
    is_wrap = node.type == "concatenation" and tree.written(node).startswith(f"{_WRAP}=")
    return node.named_children[-1] if is_wrap and node.named_children[-1].type in _STRINGS else None


def _is_command_line(written: str, text: str) -> bool:
    """Return whether a text may have options or overrides among several words."""
    if is_override_of_list(written):
        return False
    return re.search(r"\S\s+\S", text) is not None and re.search(r"(?:^|\s)[-+]|[\w]\.[\w.]+=", text) is not None


def _script(
    nodes: Sequence[Node], tree: ShellTree, around: Script | None, shares: bool, risk: str = ""
) -> Script | None:
    """Return the script that some words are, joined by blanks."""
    parts: list[tuple[CodeText, list[Span]]] = []
    for node in nodes:
        start = tree.span(node).start
        parts += [(CodeText.written_as(" ", start - 1, start), [])] if parts else []
        parts.append(_unquoted(node, tree))
    code, outer = _joined(parts)
    if not code.text.strip():
        return None
    at = code.starts[0]
    code = code if around is None else code.inside(around.code)
    return Script(parse(code.text), code, outer, at, around, tree.text, shares, risk)


def _unquoted(node: Node, tree: ShellTree) -> tuple[CodeText, list[Span]]:
    """Return what the shell passes on of a word, with the expansions in it as they are written."""
    span, text = tree.span(node), tree.text
    match node.type:
        case "raw_string":
            return CodeText.of(text, span.start + 1, span.end - 1), []
        case "ansi_c_string":
            return (
                CodeText.of(text, span.start + 2, span.end - 1) if "\\" not in tree.written(node) else CodeText()
            ), []
        case "string":
            inner, escapes = Span(span.start + 1, span.end - 1), _ESCAPES
        case "concatenation":
            return _joined([_unquoted(child, tree) for child in node.children])
        case kind if kind in EXPANSIONS:
            return CodeText.of(text, span.start, span.end), [Span(0, span.end - span.start)]
        case _:
            inner, escapes = span, _ESCAPES_OF_WORDS
    expansions = [tree.span(child) for child in node.named_children if child.type in EXPANSIONS]
    return _joined(list(_pieces(text, inner, escapes, expansions)))


def _pieces(
    text: str, span: Span, escapes: re.Pattern[str], expansions: Sequence[Span]
) -> Iterator[tuple[CodeText, list[Span]]]:
    at = span.start
    for one in [*expansions, Span(span.end, span.end)]:
        for match in escapes.finditer(text, at, one.start):
            yield CodeText.of(text, at, match.start()), []
            if not match.group().endswith("\n"):
                yield CodeText.written_as(match.group()[-1], *match.span()), []
            at = match.end()
        yield CodeText.of(text, at, one.start), []
        yield CodeText.of(text, one.start, one.end), [Span(0, one.end - one.start)]
        at = one.end


def _joined(parts: Sequence[tuple[CodeText, list[Span]]]) -> tuple[CodeText, list[Span]]:
    spans, at = list[Span](), 0
    for code, outer in parts:
        spans += [Span(one.start + at, one.end + at) for one in outer]
        at += len(code.text)
    return CodeText.joined([code for code, _ in parts]), spans

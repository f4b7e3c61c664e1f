"""Here-documents: which are scripts of a shell, since a shell gets them or they are written to a file of that name.

All others are reported only. Where the shell expands one first, the way from each character back to the script has to
be certain, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from cgmigrate.documents.code import CodeText
from cgmigrate.documents.nesting import NestedText, as_written
from cgmigrate.documents.shell.heredoc_text import UncertainTextError, code_of, escaped
from cgmigrate.documents.shell.tree import ShellTree
from cgmigrate.documents.shell.words import words_of
from cgmigrate.documents.syntax import SHEBANG_BYTES, Syntax, syntax_of_file
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node

_EDITORS = re.compile(
    r"(?<![\w.-])(?:sed|g?awk|mawk|perl|ed|ex|patch|envsubst|yq|head|tail|tr|cut|truncate|sponge)(?![\w.-])"
)
"""Programs that work on the lines or words of a text."""
_IN_PLACE = re.compile(r"\s-\w*i\w*\b.*[$*?][\w{}\"'*?.]*\s*\Z")
"""Matches a command that changes a file whose name the script computes."""


def line_that_changes(name: str, text: str) -> int:
    """Return the number of a line of a script that changes a file with a name, or passes on what is in it; else 0."""
    pattern = re.compile(rf"(?<![\w.-]){re.escape(_plain(name))}(?![\w.-])")
    every = _lines_with_editors(text)
    return next((number for number, line in every if pattern.search(line) or _IN_PLACE.search(line)), 0)


@lru_cache(maxsize=8)
def _lines_with_editors(text: str) -> list[tuple[int, str]]:
    """Return the lines that may change a file, with their numbers."""
    result = []
    number = 1
    for line in re.split(r"(?<!\\)\n", text):
        if _EDITORS.search(line):
            result.append((number, _plain(line.replace("\\\n", " "))))
        number += line.count("\n") + 1
    return result


def _plain(written: str) -> str:
    return re.sub(r"[\"'{}]", "", written)


_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh"))
_LAUNCHERS = frozenset(
    [
        *("ssh", "srun", "sudo", "env", "nohup", "exec", "time", "timeout"),
        *("docker", "podman", "kubectl", "singularity", "apptainer", "enroot", "uv"),
    ]
)
"""Programs that start another one, which gets their input."""
_SHELL_OPTIONS = re.compile(
    r"(?: [-+][a-z]*[oO] \w+| [-+][abd-mp-z]+| --(?:login|norc|noprofile|posix))*?(?: -[a-z]*s(?: .*)?| --?)?"
)
"""Options with which a shell runs its input."""
_WORDS = frozenset(
    ("word", "number", "string", "raw_string", "concatenation", "simple_expansion", "expansion", "command_substitution")
)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_SCRIPT = "script.sh"

_NOT_KNOWN = "the program or file that gets it is not known"
_NO_SYNTAX = "its file name does not show that it is shell"
_CHANGED = "line {line} changes the file that it is written to, or passes its text on"
_NO_SCRIPT = "it does not begin as a script of a shell"
_TABS = "the shell takes the tabs in front of its lines away (`<<-`)"
_SEVERAL = "it goes through several commands"


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A here-document: the span of its lines and its text; ``reason`` says why it is not read, and it is empty then."""

    span: Span
    code: CodeText
    is_expanded: bool
    reason: str = ""

    def part(self, number: int) -> NestedText:
        """Return it as the part of a script."""
        return NestedText(number, self.span, self.code, _SCRIPT, escaped=escaped if self.is_expanded else as_written)


def heredocs(tree: ShellTree, names: Sequence[int], variables: Collection[str]) -> list[Heredoc]:
    """Return the here-documents of a script, in its order.

    ``names`` is where names of settings begin, ``variables`` are those that contain flags of settings.
    """
    return [_read(body, tree, names, variables) for body in _bodies(tree.root)]


def _bodies(node: Node) -> Iterator[Node]:
    if node.type == "heredoc_body":
        yield node
        return
    for child in node.children:
        yield from _bodies(child)


def _read(body: Node, tree: ShellTree, names: Sequence[int], variables: Collection[str]) -> Heredoc:
    redirect = body.parent
    span, is_expanded = tree.span(body), True
    try:
        if redirect is None or redirect.type != "heredoc_redirect":
            raise UncertainTextError(_NOT_KNOWN)
        start = next(child for child in redirect.children if child.type == "heredoc_start")
        if redirect.children[0].type == "<<-":
            raise UncertainTextError(_TABS)
        is_expanded = not set(tree.written(start)) & set("'\"\\")
        span = _lines(tree, redirect, span, re.sub(r"['\"\\]", "", tree.written(start)))
        _check_reader(redirect, tree, tree.text[span.start : span.end])
        return Heredoc(span, code_of(tree.text, span, is_expanded, names, variables), is_expanded)
    except UncertainTextError as error:
        return Heredoc(span, CodeText(), is_expanded, str(error))


def _lines(tree: ShellTree, redirect: Node, body: Span, delimiter: str) -> Span:
    """Return the lines of a here-document. Raises UncertainTextError if a shell may see others than the grammar."""
    text = tree.text
    end = next((tree.span(child) for child in redirect.children if child.type == "heredoc_end"), body)
    first, last = text.rfind("\n", 0, body.start) + 1, text.rfind("\n", 0, end.start) + 1
    lines = text[first : end.end].split("\n")
    is_whole = text[end.end : end.end + 1] in ("", "\n") and lines.pop() == delimiter
    if not is_whole or text[first : body.start].strip() or delimiter in lines or "\r" in text[first:last]:
        raise UncertainTextError("where it ends is not certain")
    return Span(first, last)


# --- what gets it -------------------------------------------------------------------------------------


def _check_reader(redirect: Node, tree: ShellTree, text: str) -> None:
    """Raise UncertainTextError if what gets a here-document may be no shell."""
    statement = redirect.parent
    if statement is None or statement.type != "redirected_statement":
        raise UncertainTextError(_NOT_KNOWN)
    if any(child.type == "file_descriptor" for child in redirect.children):
        raise UncertainTextError(_NOT_KNOWN)
    command = statement.children[0]
    redirects = [child for child in (*statement.children, *redirect.children) if child.type == "file_redirect"]
    if command.type != "command" or any(one.type == "<" for child in redirects for one in child.children):
        raise UncertainTextError(_NOT_KNOWN)
    if any(child.type == "pipeline" for child in redirect.children):
        raise UncertainTextError(_SEVERAL)
    if sum(child.type == "heredoc_redirect" for child in statement.children) > 1:
        raise UncertainTextError("its command has several here-documents")
    # The grammar has no node for a dash in front of a here-document.
    dash = tree.text[tree.span(command).end : tree.span(redirect).start].strip() == "-"
    words = [*_texts(command.named_children, tree), *["-"][:dash], *_texts(_behind_delimiter(redirect), tree)]
    _check_command(words, redirects, tree, text)


def _behind_delimiter(redirect: Node) -> list[Node]:
    """Return the words of the command that are behind the delimiter of a here-document."""
    return [child for child in redirect.named_children if child.type in _WORDS]


def _texts(nodes: Sequence[Node], tree: ShellTree) -> list[str]:
    """Return words as they are written, without quotes around them."""
    written = (tree.text[word.start : word.end] for word in words_of(nodes, tree))
    return [re.sub(r"\A([\"'])(.*)\1\Z", r"\2", word, flags=re.DOTALL) for word in written]


def _outputs(redirects: Sequence[Node], tree: ShellTree) -> list[tuple[str, str]]:
    """Return the operators and names of the files that get the output of a command."""
    result = []
    for node in redirects:
        operator = next((child.type for child in node.children if not child.is_named), "")
        descriptor = next((tree.written(child) for child in node.children if child.type == "file_descriptor"), "1")
        target = node.child_by_field_name("destination")
        if ">" in operator and descriptor == "1" and target is not None:
            result.append((operator, re.sub(r"[\"']", "", tree.written(target))))
    return result


def _check_command(words: Sequence[str], redirects: Sequence[Node], tree: ShellTree, text: str) -> None:
    outputs = _outputs(redirects, tree)
    program = words[0].rpartition("/")[2] if words else ""
    if program == "sudo" and words[1:2] == ["tee"]:
        words, program = words[1:], "tee"
    if program == "cat" and words[1:] in ([], ["-"]) and len(outputs) == 1:
        _check_file(outputs[0][1], tree, text)
    elif program == "tee" and (files := [word for word in words[1:] if not word.startswith("-")]):
        if len(files) > 1 or (outputs and outputs[0][1] != "/dev/null"):
            raise UncertainTextError(_SEVERAL)
        _check_file(files[0], tree, text)
    elif program == "sbatch":
        _check_job(words, text)
    else:
        _check_input(words)


def _check_file(path: str, tree: ShellTree, text: str) -> None:
    written = path.rpartition("/")[2]
    name = _value_of(written, tree.text) or written
    syntax = syntax_of_file(name, text[:SHEBANG_BYTES].encode()) if "$" not in name.rpartition(".")[2] else None
    if syntax is not Syntax.SHELL:
        raise UncertainTextError(_NO_SYNTAX)
    for one in dict.fromkeys((name, written)):
        if line := line_that_changes(one, tree.text):
            raise UncertainTextError(_CHANGED.format(line=line))


def _value_of(written: str, text: str) -> str:
    """Return the name of a file that a variable holds, as far as its end shows it; empty if that is not certain.

    ``job=$(mktemp -t job.XXXXXX.sh)`` is ``job.sh``, if the script sets the variable nowhere else.
    """
    variable = _VARIABLE.fullmatch(written)
    if variable is None:
        return ""
    name = variable[1] or variable[2]
    uses = re.findall(rf"(?<![\w$.{{-]){name}(?:\+?=|(?=[ \t\n]|$)).*", text)
    suffix = re.fullmatch(rf"{name}=\S.*\.(\w+)[\"')}}]*\s*", uses[0]) if len(uses) == 1 else None
    return f"{name}.{suffix[1]}" if suffix else ""


def _check_job(words: Sequence[str], text: str) -> None:
    """Check the input of sbatch, which runs it unless a script is among its words."""
    if not all(word.startswith("-") or before.startswith("-") for before, word in pairwise(words)):
        raise UncertainTextError(_NOT_KNOWN)
    if syntax_of_file("script", text[:SHEBANG_BYTES].encode()) is not Syntax.SHELL:
        raise UncertainTextError(_NO_SCRIPT)


def _check_input(words: Sequence[str]) -> None:
    programs = [word.rpartition("/")[2] for word in words]
    at = next((at for at, name in enumerate(programs) if name in _SHELLS), -1)
    is_started = at == 0 or (at > 0 and programs[0] in _LAUNCHERS)
    if not is_started or not _SHELL_OPTIONS.fullmatch("".join(f" {word}" for word in words[at + 1 :])):
        raise UncertainTextError(_NOT_KNOWN)

"""Here-documents: which program or file gets each, and its text in the syntax of that.

A text is read only if its syntax is certain: a shell or Python gets it, or it is written to a file whose name says its
syntax. Where the shell expands it first, the way from each character back to the script has to be certain, too.
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
from cgmigrate.documents.shell.heredoc_text import HeredocForm, UncertainTextError, code_of, escaped
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
_APPENDS = re.compile(r">>|(?<![\w.-])tee\s.*-a\b")


def line_that_changes(name: str, text: str, *, is_data: bool) -> int:
    """Return the number of a line of a script that changes a file with a name, or passes on what is in it; else 0.

    ``is_data`` says that text added to the file may belong to what is in it already.
    """
    pattern = re.compile(rf"(?<![\w.-]){re.escape(_plain(name))}(?![\w.-])")
    for number, line, is_editor in _lines_that_may_change(text):
        if is_editor and (pattern.search(line) or _IN_PLACE.search(line)):
            return number
        if is_data and _APPENDS.search(line) and pattern.search(line):
            return number
    return 0


@lru_cache(maxsize=8)
def _lines_that_may_change(text: str) -> list[tuple[int, str, bool]]:
    """Return the lines that may change a file, with their numbers, and whether an editor is in them."""
    result = []
    number = 1
    for line in re.split(r"(?<!\\)\n", text):
        is_editor = _EDITORS.search(line) is not None
        if is_editor or ">>" in line or "tee" in line:
            result.append((number, _plain(line.replace("\\\n", " ")), is_editor))
        number += line.count("\n") + 1
    return result


def _plain(written: str) -> str:
    return re.sub(r"[\"'{}]", "", written)


_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh"))
_PYTHONS = re.compile(r"python[\d.]*")
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
_PYTHON_OPTIONS = re.compile(r"(?: -[bBdEIOPqsSuvx]+)*(?: -(?: .*)?)?")
_WORDS = frozenset(
    ("word", "number", "string", "raw_string", "concatenation", "simple_expansion", "expansion", "command_substitution")
)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_READ_SYNTAXES = (Syntax.SHELL, Syntax.YAML, Syntax.PYTHON)
_SCRIPT, _CODE = "script.sh", "code.py"

_NOT_KNOWN = "the program or file that gets it is not known"
_APPENDED = "it is added to a file, whose beginning is not known"
_NO_SYNTAX = "its file name does not show that it is shell, Python or YAML"
_CHANGED = "line {line} changes the file that it is written to, or passes its text on"
_NO_SCRIPT = "it does not begin as a script of a shell"
_TABS = "the shell takes the tabs in front of its lines away (`<<-`)"
_SEVERAL = "it goes through several commands"


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A here-document: the span of its lines, and its text with the name of a file in its syntax.

    ``reason`` says why it is not read; then the text is empty.
    """

    span: Span
    code: CodeText
    name: str
    is_expanded: bool
    reason: str = ""

    def part(self, number: int) -> NestedText:
        """Return it as the part of a script."""
        return NestedText(number, self.span, self.code, self.name, escaped=escaped if self.is_expanded else as_written)


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
        name = _name(redirect, tree, tree.text[span.start : span.end])
        form = HeredocForm(is_expanded, syntax_of_file(name, b"") is Syntax.SHELL)
        code = code_of(tree.text, span, form, names, variables)
        return Heredoc(span, code, name, is_expanded)
    except UncertainTextError as error:
        return Heredoc(span, CodeText(), "", is_expanded, str(error))


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


def _name(redirect: Node, tree: ShellTree, text: str) -> str:
    """Return the name of a file in the syntax of a here-document. Raises UncertainTextError."""
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
    return _name_for(words, redirects, tree, text)


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


def _name_for(words: Sequence[str], redirects: Sequence[Node], tree: ShellTree, text: str) -> str:
    outputs = _outputs(redirects, tree)
    program = words[0].rpartition("/")[2] if words else ""
    if program == "sudo" and words[1:2] == ["tee"]:
        words, program = words[1:], "tee"
    if program == "cat" and words[1:] in ([], ["-"]) and len(outputs) == 1:
        return _of_file(outputs[0][1], outputs[0][0] in (">>", "&>>"), tree, text)
    if program == "tee" and (files := [word for word in words[1:] if not word.startswith("-")]):
        if len(files) > 1 or (outputs and outputs[0][1] != "/dev/null"):
            raise UncertainTextError(_SEVERAL)
        return _of_file(files[0], any(word in ("-a", "--append") for word in words), tree, text)
    if program == "sbatch":
        return _of_job(words, text)
    return _of_input(words)


def _of_file(path: str, is_appended: bool, tree: ShellTree, text: str) -> str:
    """Return the name for the text of a file. Raises UncertainTextError."""
    written = path.rpartition("/")[2]
    name = _value_of(written, tree.text) or written
    syntax = syntax_of_file(name, text[:SHEBANG_BYTES].encode()) if "$" not in name.rpartition(".")[2] else None
    if syntax not in _READ_SYNTAXES:
        raise UncertainTextError(_NO_SYNTAX)
    if is_appended and syntax is not Syntax.SHELL:
        raise UncertainTextError(_APPENDED)
    for one in dict.fromkeys((name, written)):
        if line := line_that_changes(one, tree.text, is_data=syntax is not Syntax.SHELL):
            raise UncertainTextError(_CHANGED.format(line=line))
    return f"file.{name.rpartition('.')[2]}" if "." in name else _SCRIPT if syntax is Syntax.SHELL else _CODE


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


def _of_job(words: Sequence[str], text: str) -> str:
    """Return the name for the input of sbatch, which runs it unless a script is among its words."""
    if not all(word.startswith("-") or before.startswith("-") for before, word in pairwise(words)):
        raise UncertainTextError(_NOT_KNOWN)
    if syntax_of_file("script", text[:SHEBANG_BYTES].encode()) is not Syntax.SHELL:
        raise UncertainTextError(_NO_SCRIPT)
    return _SCRIPT


def _of_input(words: Sequence[str]) -> str:
    """Return the name for the input of a command. Raises UncertainTextError."""
    programs = [word.rpartition("/")[2] for word in words]
    started = [at for at, name in enumerate(programs) if name in _SHELLS or _PYTHONS.fullmatch(name)]
    at = next(iter(started), -1)
    if at < 0 or (at > 0 and programs[0] not in _LAUNCHERS):
        raise UncertainTextError(_NOT_KNOWN)
    options = "".join(f" {word}" for word in words[at + 1 :])
    if programs[at] in _SHELLS and _SHELL_OPTIONS.fullmatch(options):
        return _SCRIPT
    if _PYTHONS.fullmatch(programs[at]) and _PYTHON_OPTIONS.fullmatch(options):
        return _CODE
    raise UncertainTextError(_NOT_KNOWN)

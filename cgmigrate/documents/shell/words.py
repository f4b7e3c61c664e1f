"""Words of a shell script: of commands, arrays, and strings that hold a command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.tree import ShellTree
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node

EXPANDED = re.compile(r"\$\{?(\w+)", re.ASCII)
"""The beginning of a variable that a shell expands."""
_PLAIN = re.compile(r"[\w./:=,@%+^-]+", re.ASCII)
"""A word that a shell passes on as it is written."""
_BRACKETS = re.compile(r"[\w./:=,@%+^\[\]-]+", re.ASCII)
"""A word with brackets, which a shell passes on as it is written where no file has such a name."""
_OVERRIDE_OF_LIST = re.compile(r"([\"'])[+~]{0,2}[\w.-]+=\[[^\[\]]*\]\1", re.ASCII)
"""A string that is one override, whose value is a list that may have blanks."""
_BLANKS = re.compile(r"(?:\\\r?\n|[ \t\r\n])+")
EXPANSIONS = ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
_EXPANSION = re.compile(
    r"\"?\$(?:\{(?:(\w+)(?:\[[@*]\])?(?::?-|:?\+\"?\$\{\1\[@\]\}\"?)?|([@*](?::[^{}]*)?))\}|(\w+|[@*]))\"?", re.ASCII
)
"""A word that is the value of a variable; ``${A[@]:-}`` and ``${A[@]+"${A[@]}"}`` are written for ``set -u``."""
_CHANGED = re.compile(r"\"?\$\{!?(\w+)\W.*\}\"?", re.ASCII | re.DOTALL)
"""A word that is a part of a variable, or an expression of it: ``${A[@]:1}``, ``${A/x/y}``, ``${A:-default}``."""
_SCRIPT = re.compile(r"/([\w.-]+\.py)[\"']?\Z", re.ASCII)


@dataclass(eq=False, slots=True)
class Word:
    """One word. ``text`` is what the command gets, None if the shell computes it.

    ``variable`` is the name of the variable that is the whole word (``@`` for the script's own arguments, ``@:2`` for
    some of them), empty for other words. ``of`` is the variable of which the word has a part, or something changed.
    """

    start: int
    end: int
    text: str | None
    variable: str = ""
    script: str = ""
    """The name of the script in a folder that the shell computes: ``$MEGATRON/pretrain_gpt.py``."""
    of: str = ""

    @property
    def span(self) -> Span:
        """Where it is in the script."""
        return Span(self.start, self.end)


def words_of(nodes: Sequence[Node], tree: ShellTree) -> list[Word]:
    """Return the words that some nodes are."""
    words = []
    text, has_offsets = tree.text, tree.has_offsets
    for node in nodes:
        kind = node.type
        if kind in _NO_WORDS or not node.is_named:
            continue
        start, end = node.start_byte, node.end_byte
        if has_offsets:
            start, end = tree.offset(start), tree.offset(end)
        written = text[start:end]
        # Most words are plain.
        is_plain = kind == "word" and _PLAIN.fullmatch(written)
        words.append(Word(start, end, written) if is_plain else _word(node, start, end, tree))
    return words


_NO_WORDS = ("comment", "variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect")


def _word(node: Node, start: int, end: int, tree: ShellTree) -> Word:
    written = tree.text[start:end]
    text = _literal(node, tree, written)
    return Word(start, end, text) if text is not None else _computed(start, end, written)


def _computed(start: int, end: int, written: str) -> Word:
    """Return a word that the shell computes."""
    match, script = _EXPANSION.fullmatch(written), _SCRIPT.search(written)
    variable = next(filter(None, match.groups())) if match else ""
    changed = None if match else _CHANGED.fullmatch(written)
    return Word(start, end, None, variable, script[1] if script else "", changed[1] if changed else "")


def _literal(node: Node, tree: ShellTree, written: str) -> str | None:
    """Return the value of a word, None if the shell computes it."""
    match node.type:
        case "word" | "number":
            return written if _PLAIN.fullmatch(written) else None
        case "raw_string":
            # Whoever writes `'$X'` has another shell expand it: that of `eval`, `bash -c` or a job.
            return written[1:-1] if "$" not in written else None
        case "string":
            plain = all(child.type == "string_content" for child in node.named_children)
            return written[1:-1] if plain and "\\" not in written and "`" not in written else None
        case "command_name" | "concatenation":
            parts = [_literal(child, tree, tree.written(child)) for child in node.named_children]
            return None if not parts or None in parts else "".join(filter(None, parts))
    return None


def literal_text(node: Node, tree: ShellTree) -> str | None:
    """Return the value of a word, None if the shell computes it."""
    return _literal(node, tree, tree.written(node))


def literal_with_brackets(written: str) -> str | None:
    """Return what a command gets of a word that may have brackets, None if the shell computes it."""
    return written if _BRACKETS.fullmatch(written) else None


def is_override_of_list(written: str) -> bool:
    """Return whether a string is one override with a list as its value, and no command line."""
    return _OVERRIDE_OF_LIST.fullmatch(written) is not None


def words_in_string(node: Node, tree: ShellTree) -> list[Word]:
    """Return the words in a quoted string, as the shell divides its value where it is used without quotes."""
    span = tree.span(node)
    inner = Span(span.start + 1, span.end - 1)
    expansions = [tree.span(child) for child in node.named_children if child.type in EXPANSIONS]
    # Most expansions are names, which no blank can divide.
    computed = [one for one in expansions if _BLANKS.search(tree.text, one.start, one.end)]
    return list(words_in_text(tree.text, inner, computed))


def words_in_text(text: str, span: Span, computed: Sequence[Span] = ()) -> Iterator[Word]:
    """Yield the words between blanks of a text; ``computed`` are parts of it that the shell replaces."""
    start = span.start
    for blank in _BLANKS.finditer(text, span.start, span.end):
        end, after = blank.span()
        if computed and any(part.start <= end < part.end for part in computed):
            continue
        if end > start:
            yield _word_in_text(text, start, end)
        start = after
    if span.end > start:
        yield _word_in_text(text, start, span.end)


def _word_in_text(text: str, start: int, end: int) -> Word:
    written = text[start:end]
    if _PLAIN.fullmatch(written):
        return Word(start, end, written)
    return _computed(start, end, written)

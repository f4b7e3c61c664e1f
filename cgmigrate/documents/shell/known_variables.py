"""Variables whose value a script shows: it assigns one text at its top, and does nothing else with the name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.related_code import ScriptText
from cgmigrate.documents.shell.words import Word, literal_text

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

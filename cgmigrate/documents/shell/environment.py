"""Environment variables of the commands of a script: those that a command gets alone, and those exported before it.

A value is known if the script shows it. A text with the name that is not read (an array of options for a container, a
file that another command writes) may set the variable, so that its value is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.fragments import SUBSHELLS, exclude_each_other, is_certain, may_run_again, path_of
from cgmigrate.documents.shell.tree import ShellTree, nodes_around
from cgmigrate.documents.shell.words import words_of
from cgmigrate.megatron.settings import Missing, Undecided

if TYPE_CHECKING:
    from tree_sitter import Node

_ELSEWHERE = frozenset(("docker", "podman", "nerdctl", "kubectl", "ssh"))
"""Programs whose commands run in another environment than that of the script."""
_HARMLESS = ("activate", "/etc/profile")
"""Ends and names of files that shells read and that set no variable of NCCL or PyTorch."""
_COMPUTED = "a value that the shell computes"


def variable_of(name: str, commands: Iterable[Node], tree: ShellTree) -> object:
    """Return the value that commands of a script get for a variable: text, ``Undecided`` or ``Missing``."""
    if name not in tree.text:
        return Missing.UNKNOWN if any(map(_reads_file, _names_and_words(tree))) else Missing.ABSENT
    environment = _Environment(tree, name)
    values = [environment.value(command) for command in commands]
    if not values or any(value != values[0] for value in values):
        return Missing.UNKNOWN
    return values[0]


def command_at(node: Node | None) -> Node | None:
    """Return the command that a node is a part of, or whose input it is; None if there is none."""
    while node is not None and node.type != "command":
        if node.type == "redirected_statement" and node.named_children[0].type == "command":
            return node.named_children[0]
        node = node.parent
    return node


def _names_and_words(tree: ShellTree) -> Iterator[list[str]]:
    for node in tree.commands:
        yield [word.text or "" for word in words_of(node.named_children, tree)]


def _reads_file(words: list[str]) -> bool:
    return words[:1] in (["source"], ["."]) and not any(word.endswith(_HARMLESS) for word in words[1:])


def _is_in_other_shell(assignment: Node, command: Node) -> bool:
    """Whether an assignment is in parentheses that are not around a command."""
    node = next((one for one in nodes_around(assignment.parent) if one.type in SUBSHELLS), None)
    return node is not None and not node.start_byte <= command.start_byte < node.end_byte


@dataclass(frozen=True, slots=True)
class _Environment:
    """The values that a script gives to one variable."""

    tree: ShellTree
    name: str

    def value(self, command: Node) -> object:
        """Return the value that a command gets."""
        own = [node for node in self._assignments() if node.parent == command]
        values = [*(self._value(node) for node in own), *self._in_words(command)]
        if values:
            return values[-1]
        if self._may_be_set_otherwise(command):
            return Missing.UNKNOWN
        words = words_of(command.named_children, self.tree)
        program = (words[0].text or "").rpartition("/")[2] if words else ""
        return Missing.ABSENT if program in _ELSEWHERE else self._exported(command)

    def _assignments(self) -> list[Node]:
        return [node for node in self.tree.assignments if self._is_of(node)]

    def _is_of(self, assignment: Node) -> bool:
        name = assignment.child_by_field_name("name")
        return name is not None and self.tree.written(name) == self.name

    def _in_words(self, command: Node) -> Iterator[object]:
        """Yield the values in words of a command, such as ``-e NAME=value`` and ``--export=ALL,NAME=value``."""
        pattern = re.compile(rf"(?:(?<![\w$])|(?<=-e)){self.name}=(?P<value>.*?)(?=,[A-Z_]+=|[\s;&]|\Z)")
        for child in command.named_children:
            if child.type != "variable_assignment" and self.name in (written := self.tree.written(child)):
                words = words_of([child], self.tree)
                text = words[0].text if words and words[0].text else written
                for match in pattern.finditer(text):
                    value = match["value"].strip("\"'\\")
                    yield Undecided(value, _COMPUTED) if "$" in value or "`" in value else value

    def _value(self, assignment: Node) -> object:
        value = assignment.child_by_field_name("value")
        if value is None or any(child.type == "+=" for child in assignment.children):
            return Undecided(self.tree.written(assignment), _COMPUTED)
        words = words_of([value], self.tree)
        text = words[0].text if words else None
        return text if text is not None else Undecided(self.tree.written(value), _COMPUTED)

    # --- exports ----------------------------------------------------------------------------------------

    def _exported(self, command: Node) -> object:
        """Return the value that the script exports before a command."""
        path = path_of(command)
        value: object = Missing.ABSENT
        for node in self._assignments():
            at = path_of(node)
            if not self._exports(node, command) or exclude_each_other(at, path) or _is_in_other_shell(node, command):
                continue
            if node.start_byte < command.start_byte:
                value = self._value(node) if is_certain(at, path) else Missing.UNKNOWN
            elif may_run_again(path):
                return Missing.UNKNOWN
        return value

    def _exports(self, assignment: Node, command: Node) -> bool:
        parent = assignment.parent
        if parent is None or parent.type == "command":
            return False
        if parent.type == "declaration_command":
            return re.match(r"export\b|(?:declare|typeset)\s+-\w*x", self.tree.written(parent)) is not None
        before = None if may_run_again(path_of(command)) else self.tree.span(command).start
        exports = re.compile(rf"\bexport\s[^\n=]*\b{self.name}\b(?!=)|\bset\s+-a\b|\ballexport\b")
        return exports.search(self.tree.text[:before]) is not None

    def _may_be_set_otherwise(self, command: Node) -> bool:
        """Whether the name is written at a place that is not read, and that may set or delete the variable."""
        starts = {self.tree.span(node).start for node in self._assignments()}
        outside = [self.tree.span(node) for node in (*self.tree.comments, command)]
        for match in re.finditer(rf"(?<![\w$])(?<!\$\{{){self.name}(?!\w)", self.tree.text):
            at = match.start()
            if at in starts or any(span.start <= at < span.end for span in outside):
                continue
            if re.search(r"\bexport\s[^\n=;&|]*\Z", self.tree.text[:at]) is None:
                return True
        return False

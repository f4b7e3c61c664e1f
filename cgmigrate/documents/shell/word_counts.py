"""Why it counts in a script how many words some flags are: a flag that becomes two words would be read differently.

A shell divides the value of a variable into words where it is not in quotes, and gives a command all elements of an
array only where an index says so. A function may read its arguments by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.fragments import PRINTERS, SEARCHERS, Form, Fragment
from cgmigrate.documents.shell.tree import ShellTree

if TYPE_CHECKING:
    from tree_sitter import Node

    from cgmigrate.documents.shell.objects import CommandLine

_ONE_WORD = "a command expands `{variable}` as one word"
_SEPARATOR = "the script sets `IFS`, so that a blank in `{variable}` does not divide it into words"
_LOOP = "a loop takes the words of `{variable}` one by one"
_ELEMENT = "the script uses single elements of `{variable}`"
_NUMBERED = "the function `{function}` reads its arguments by their numbers"
_ZSH = re.compile(r"#![^\n]*\bzsh\b")
"""The first line of a script whose shell does not divide values into words, and gives all elements of an array."""
_IFS = re.compile(r"(?<![\w$])IFS=")
_NUMBERS = re.compile(r"\$\{?(?P<number>[1-9]\d*)|(?<![\w-])shift(?![\w-])(?:[ \t]+(?P<count>\d+))?")
_AGAIN = re.compile(r"(?<!\w)(?:while|until|for)(?!\w)")
_NO_COMMANDS = PRINTERS | SEARCHERS | {"eval"}
"""Commands that take their words as text, however many these are."""
_EXPANSIONS = ("simple_expansion", "expansion")


class WordCounts:
    """What a script says about the number of words of its variables and arguments."""

    def __init__(self, tree: ShellTree, fragments: Sequence[Fragment]) -> None:
        self._tree, self._fragments = tree, fragments
        self._known: dict[tuple[str, Form], str] = {}

    def reason(self, line: CommandLine) -> str:
        """Return why the number of words of an object counts, empty if it does not."""
        reasons = (self._of_variable(one) for one in line.fragments if one.variable)
        return next(filter(None, reasons), "") or self._of_function(line)

    def _of_variable(self, fragment: Fragment) -> str:
        is_word = fragment.form is Form.STRING and len(fragment.words) == 1
        if not is_word and fragment.form is not Form.ARRAY:
            return ""
        key = (fragment.variable, fragment.form)
        if key not in self._known:
            self._known[key] = self._of_word(fragment.variable) if is_word else self._of_array(fragment.variable)
        return self._known[key]

    def _of_word(self, variable: str) -> str:
        """Return why a variable with one word has to remain one word."""
        names = self._carriers({variable})
        if self._is_zsh or not self._quoted.isdisjoint(names):
            return _ONE_WORD.format(variable=variable)
        if self._sets_separator:
            return _SEPARATOR.format(variable=variable)
        for around in self._expansions(names):
            if _is_in_loop(around):
                return _LOOP.format(variable=variable)
            if any(self._is_quoted(node) for node in around) and self._is_of_command(around):
                return _ONE_WORD.format(variable=variable)
        return ""

    def _of_array(self, variable: str) -> str:
        """Return why the number of elements of an array counts."""
        text = self._tree.text
        if self._is_zsh or variable not in text:
            return ""
        of_some = rf"(?<!\w){variable}\[(?![@*]\])|\$\{{{variable}\[[@*]\]:(?![-+=?])"
        if re.search(of_some, text):
            return _ELEMENT.format(variable=variable)
        # Without an index, it is the first element.
        if any(self._is_of_command(around, or_assigned=True) for around in self._expansions({variable})):
            return _ELEMENT.format(variable=variable)
        return ""

    def _of_function(self, line: CommandLine) -> str:
        """Return which function of the script gets the flags at a place where it counts arguments."""
        variables = self._carriers({one.variable for one in line.fragments if one.variable})
        for command in line.commands:
            reach = self._reach.get((command.words[0].text or "") if command.words else "", 0)
            flags = {flag.first for flag in command.flags} if command in line.fragments else set()
            flags |= {at for at, word in enumerate(command.words) if word.variable in variables}
            if reach and any(at <= reach for at in flags):
                return _NUMBERED.format(function=command.words[0].text)
        return ""

    def _carriers(self, names: Iterable[str]) -> set[str]:
        """Return variables with those that are set to their values."""
        result = set(names)
        strings = [one for one in self._fragments if one.variable and one.form is Form.STRING]
        while new := {
            one.variable
            for one in strings
            if one.variable not in result and any(word.variable in result for word in one.words)
        }:
            result |= new
        return result

    def _expansions(self, names: Iterable[str]) -> Iterator[list[Node]]:
        """Yield the nodes around each expansion of variables without an index, from the innermost one."""
        pattern = re.compile(rf"\$\{{?(?:{'|'.join(sorted(names))})(?![\w\[])")
        for match in pattern.finditer(self._tree.text):
            byte = self._tree.byte(match.start())
            node = self._tree.root.descendant_for_byte_range(byte, byte + 1)
            around = []
            while node is not None:
                around.append(node)
                node = node.parent
            yield around

    def _is_quoted(self, node: Node) -> bool:
        """Return whether a node is a string with nothing but an expansion in it."""
        children = node.named_children if node.type == "string" else []
        is_one = len(children) == 1 and children[0].type in _EXPANSIONS
        return is_one and self._tree.span(children[0]).end - self._tree.span(children[0]).start + 2 == len(
            self._tree.written(node)
        )

    def _is_of_command(self, around: Sequence[Node], *, or_assigned: bool = False) -> bool:
        """Return whether an expansion is a word of a command or an element of an array."""
        for node in around:
            match node.type:
                case "array":
                    return True
                case "variable_assignment":
                    return or_assigned
                case "command":
                    name = node.child_by_field_name("name")
                    return name is None or self._tree.written(name).rpartition("/")[2] not in _NO_COMMANDS
                case "test_command":
                    return False
        return False

    @cached_property
    def _is_zsh(self) -> bool:
        return _ZSH.match(self._tree.text) is not None

    @cached_property
    def _quoted(self) -> frozenset[str]:
        """The variables that a command expands in quotes, also in the code of another shell."""
        words = (word for one in self._fragments for word in one.words if word.variable)
        return frozenset(word.variable for word in words if self._tree.text[word.start] == '"')

    @cached_property
    def _sets_separator(self) -> bool:
        """Whether the script divides values elsewhere than at blanks."""
        return any(self._is_separator(match.start()) for match in _IFS.finditer(self._tree.text))

    def _is_separator(self, start: int) -> bool:
        byte = self._tree.byte(start)
        node = self._tree.root.descendant_for_byte_range(byte, byte + 1)
        while node is not None and node.type != "variable_assignment":
            node = node.parent
        # What is written before a command is for that command only, and a variable brings the old value back.
        if node is None or (node.parent is not None and node.parent.type == "command"):
            return False
        value = node.child_by_field_name("value")
        return value is None or (value.type not in _EXPANSIONS and " " not in self._tree.written(value))

    @cached_property
    def _reach(self) -> dict[str, int]:
        """Name of a function → the last of its arguments that it reads by a number."""
        result = {}
        for node in self._tree.functions:
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                result[self._tree.written(name)] = _last_number(self._tree.written(body))
        return result


def _is_in_loop(around: Sequence[Node]) -> bool:
    """Return whether an expansion is among the words that a loop takes one by one."""
    kinds = [node.type for node in around[:4]]
    return "for_statement" in kinds and "do_group" not in kinds


def _last_number(code: str) -> int:
    """Return the last argument that the code of a function reads by its number."""
    last = moved = 0
    shifts_again = _AGAIN.search(code) is not None
    for match in _NUMBERS.finditer(code):
        if match["number"]:
            last = max(last, moved + int(match["number"]))
        elif shifts_again:
            # A loop that reads arguments may read all of them.
            return len(code)
        else:
            moved += int(match["count"] or 1)
    return last

"""Why it counts in a script how many words some flags are: a flag that becomes two words would be read differently.

A shell divides the value of a variable into words where it is not in quotes, and gives a command all elements of an
array only where an index says so. A function may read its arguments by their numbers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
_EXPANSION = re.compile(r"\$\{?(\w+)(?![\w\[])", re.ASCII)
_SOME_ELEMENTS = re.compile(r"(?<!\w)([A-Za-z_]\w*)\[(?![@*]\])|\$\{(\w+)\[[@*]\]:(?![-+=?])", re.ASCII)
_NUMBERS = re.compile(r"\$\{?(?P<number>[1-9]\d*)|(?<![\w-])shift(?![\w-])(?:[ \t]+(?P<count>\d+))?")
_AGAIN = re.compile(r"(?<!\w)(?:while|until|for)(?!\w)")
_NO_COMMANDS = PRINTERS | SEARCHERS | {"eval"}
"""Commands that take their words as text, however many these are."""
_EXPANSIONS = ("simple_expansion", "expansion")


class WordCounts:
    """What a script says about the number of words of its variables and arguments."""

    def __init__(self, tree: ShellTree, fragments: Sequence[Fragment]) -> None:
        self._tree, self._fragments = tree, fragments

    def reason(self, line: CommandLine) -> str:
        """Return why the number of words of an object counts, empty if it does not."""
        return next(filter(None, map(self._of_fragment, line.fragments)), "")

    def _of_fragment(self, fragment: Fragment) -> str:
        variable = fragment.variable
        if not variable:
            return self._of_arguments(fragment)
        if fragment.form is Form.ARRAY:
            why = _ELEMENT if not self._is_zsh and variable in self._of_elements else ""
        else:
            why = self._of_word(variable) if len(fragment.words) == 1 else ""
        return (why or self._numbered.get(variable, "")).format(variable=variable)

    def _of_arguments(self, command: Fragment) -> str:
        """Return which function of the script counts the arguments of a command."""
        name = (command.words[0].text or "") if command.words else ""
        if (reach := self._reach.get(name)) is None:
            return ""
        return _NUMBERED.format(function=name) if any(flag.first <= reach for flag in command.flags) else ""

    def _of_word(self, variable: str) -> str:
        """Return why a variable with one word has to remain one word."""
        if self._is_zsh:
            return _ONE_WORD
        return self._single.get(variable, "") or (_SEPARATOR if self._sets_separator else "")

    @cached_property
    def _single(self) -> dict[str, str]:
        """Variable → why its value has to remain one word."""
        direct = dict.fromkeys(self._quoted, _ONE_WORD)
        for name, around in self._expansions:
            if _is_in_loop(around):
                direct[name] = _LOOP
            elif any(map(self._is_quoted, around)) and self._is_of_command(around):
                direct[name] = _ONE_WORD
        return self._with_contained(direct)

    @cached_property
    def _numbered(self) -> dict[str, str]:
        """Variable → which function counts the arguments that it has."""
        direct: dict[str, str] = {}
        for command in self._fragments if self._reach else ():
            name = (command.words[0].text or "") if command.words and not command.variable else ""
            for word in command.words[: self._reach.get(name, 0) + 1] if name else ():
                direct |= {word.variable: _NUMBERED.format(function=name)} if word.variable else {}
        return self._with_contained(direct)

    def _with_contained(self, reasons: Mapping[str, str]) -> dict[str, str]:
        """Return the reasons of variables, also for those whose values are in them."""
        contained: defaultdict[str, set[str]] = defaultdict(set)
        for fragment in self._fragments if reasons else ():
            contained[fragment.variable] |= {word.variable for word in fragment.words if word.variable}
        result, pending = dict(reasons), list(reasons)
        while pending:
            name = pending.pop()
            new = contained[name] - result.keys() if name else set()
            result |= dict.fromkeys(new, result[name])
            pending += new
        return result

    @cached_property
    def _of_elements(self) -> frozenset[str]:
        """The arrays of which the script uses single elements; without an index, that is the first one."""
        of_some = (match[1] or match[2] for match in _SOME_ELEMENTS.finditer(self._tree.text))
        of_first = (name for name, around in self._expansions if self._is_of_command(around, or_assigned=True))
        return frozenset((*of_some, *of_first))

    @cached_property
    def _expansions(self) -> list[tuple[str, list[Node]]]:
        """The expansions of variables without an index, each with the nodes around it from the innermost one."""
        names = {one.variable for one in self._fragments if one.variable}
        result = []
        for match in _EXPANSION.finditer(self._tree.text) if names else ():
            if match[1] not in names:
                continue
            byte = self._tree.byte(match.start())
            node = self._tree.root.descendant_for_byte_range(byte, byte + 1)
            around = []
            while node is not None:
                around.append(node)
                node = node.parent
            result.append((match[1], around))
        return result

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

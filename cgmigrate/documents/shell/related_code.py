"""The commands and assignments of a script that share a command line with a setting.

A script has many commands, and few of them concern a setting. So these are looked up from the places of the names of
settings and variables; the other nodes of the tree are not visited.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.tree import ShellTree, nodes_around
from cgmigrate.documents.shell.words import EXPANDED
from cgmigrate.text.remembered import remembered

if TYPE_CHECKING:
    from tree_sitter import Node

_WORD = re.compile(r"\w", re.ASCII)
_COMPUTED = re.compile(r"\$(?!\w|\{\w+\})|`", re.ASCII)
"""Matches what a shell computes in another way than by the value of a variable."""
_COMMAND, _ASSIGNMENT = "command", "variable_assignment"
_UNKNOWN = ""
"""The name of a variable that no script has."""


class ScriptText:
    """A script as it is searched for variables."""

    def __init__(self, tree: ShellTree) -> None:
        self.tree = tree
        self._plain: dict[str, bool] = {_UNKNOWN: False}

    def around(self, offset: int) -> Iterator[Node]:
        """Return the commands and assignments around a character."""
        byte = self.tree.byte(offset)
        node = self.tree.root.descendant_for_byte_range(byte, byte + 1)
        return (one for one in nodes_around(node) if one.type in (_COMMAND, _ASSIGNMENT))

    def variable(self, assignment: Node, tree: ShellTree | None = None) -> str:
        """Return the variable that an assignment sets."""
        return (tree or self.tree).written(assignment).partition("=")[0].rstrip("+")

    @remembered
    def assignments(self, variable: str) -> list[Node]:
        """Return the assignments that set a variable."""
        every = [node for offset in self._offsets(variable) for node in self._beginning_at(offset)]
        return [node for node in every if self.variable(node) == variable]

    def _beginning_at(self, offset: int) -> list[Node]:
        byte = self.tree.byte(offset)
        return [node for node in self.around(offset) if node.type == _ASSIGNMENT and node.start_byte == byte]

    def expands(self, node: Node) -> set[str]:
        """Return the variables that a node expands."""
        span = self.tree.span(node)
        starts, names = self._expanded
        return set(names[bisect_left(starts, span.start) : bisect_left(starts, span.end)])

    def expanding(self, variables: Iterable[str]) -> Iterator[Node]:
        """Yield the commands and assignments that expand one of some variables."""
        for variable in variables:
            for offset in self._expansions.get(variable, ()):
                yield from self.around(offset)

    @cached_property
    def _expanded(self) -> tuple[list[int], list[str]]:
        """Where variables are expanded, and which."""
        matches = list(EXPANDED.finditer(self.tree.text))
        return [match.start() for match in matches], [match[1] for match in matches]

    @cached_property
    def _expansions(self) -> dict[str, list[int]]:
        result: defaultdict[str, list[int]] = defaultdict(list)
        for start, name in zip(*self._expanded, strict=True):
            result[name].append(start)
        return result

    def _offsets(self, variable: str) -> list[int]:
        """Return where assignments of a variable may begin; few variables are looked up."""
        text, result = self.tree.text, list[int]()
        for sign in ("=", "+="):
            at = text.find(variable + sign)
            while at >= 0:
                if not _WORD.match(text, at - 1 if at else len(text)):
                    result.append(at)
                at = text.find(variable + sign, at + 1)
        return sorted(result)

    def related(self, starts: Iterable[int]) -> tuple[list[Node], list[Node]]:
        """Return the commands and assignments that have a setting, expand a variable that has one, or are beside it.

        ``starts`` is where names of settings begin.
        """
        chosen: dict[int, Node] = {}
        new = _added(chosen, (node for start in starts for node in self.around(start)))
        names = set[str]()
        while new:
            variables = {self.variable(node) for node in new if node.type == _ASSIGNMENT} - names
            names |= variables
            new = _added(chosen, self.expanding(variables))
        new, names = list(chosen.values()), set()
        while new:
            beside = {name for node in new for name in self.expands(node)} - names
            names |= beside
            new = _added(chosen, (node for name in beside if name not in self for node in self.assignments(name)))
        nodes = sorted(chosen.values(), key=lambda node: (node.start_byte, -node.end_byte))
        return [node for node in nodes if node.type == _COMMAND], [node for node in nodes if node.type != _COMMAND]

    # --- variables without flags --------------------------------------------------------------------

    def __contains__(self, variable: object) -> bool:
        """Return whether a variable never contains a flag: none of its values has one, nor a variable that may."""
        if variable not in self._plain:
            self._find_plain(str(variable))
        return self._plain[str(variable)]

    def _find_plain(self, variable: str) -> None:
        """Find out about a variable and those in its values; one that contains itself is not plain."""
        stack, values = [variable], dict[str, set[str]]()
        self._plain[variable] = False
        while stack:
            name = stack[-1]
            if name not in values:
                self._plain[name] = False
                values[name] = self._variables_in_values(name)
                stack += [one for one in values[name] if one not in self._plain]
                continue
            self._plain[name] = all(self._plain[one] for one in values[name])
            stack.pop()

    def _variables_in_values(self, variable: str) -> set[str]:
        """Return the variables in the values of one, and ``_UNKNOWN`` if a value may have a flag or is not known."""
        assignments = self.assignments(variable)
        if not assignments or not all(map(self._is_plain, assignments)):
            return {_UNKNOWN}
        return {name for node in assignments for name in self.expands(node)}

    def _is_plain(self, assignment: Node) -> bool:
        """Return whether a value contains no flag, unless a variable in it does."""
        text = self.tree.written(assignment)
        return "--" not in text and not ("$" in text and _COMPUTED.search(text))


def _added(chosen: dict[int, Node], nodes: Iterable[Node]) -> list[Node]:
    """Add nodes to those that are chosen, and return the new ones."""
    new = []
    for node in nodes:
        if node.id not in chosen:
            chosen[node.id] = node
            new.append(node)
    return new

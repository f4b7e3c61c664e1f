"""Command lines that get the flags of others as arguments: in a function, or in a script of ``bash -c``, with ``$@``.

Of two equal flags the last one counts, so a flag that is deleted may bring the other one into effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.tree import ShellTree
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.shell.fragments import Fragment
    from cgmigrate.documents.shell.objects import CommandLine

PASSED_ON = "a command line with such flags gets those of another one as its arguments (`$@`)"
_ARGUMENTS = re.compile(r"\$\{?[@*1-9]")
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))


def passed_on(lines: Sequence[CommandLine], tree: ShellTree) -> frozenset[int]:
    """Return the numbers of the command lines that get flags of others as arguments, and of these others."""
    commands = [(number, one) for number, line in enumerate(lines) for one in line.commands]
    receiving = [(number, one.span) for number, one in commands if _expands_arguments(one, tree)]
    if not receiving or len(lines) < 2:
        return frozenset()
    result: set[int] = set()
    for number, command in commands:
        for span in _started_by(command, tree):
            inner = {other for other, one in receiving if span.start <= one.start and one.end <= span.end}
            result |= {*inner, number} if inner - {number} else set()
    return frozenset(result)


def _expands_arguments(command: Fragment, tree: ShellTree) -> bool:
    return _ARGUMENTS.search(tree.text, command.span.start, command.span.end) is not None


def _started_by(command: Fragment, tree: ShellTree) -> Iterator[Span]:
    """Yield the code that gets the words of a command as its arguments."""
    name = (command.words[0].text or "") if command.words else ""
    if name.rpartition("/")[2] in _SHELLS:
        yield command.span
    for node in tree.functions:
        function = node.child_by_field_name("name")
        if function is not None and tree.written(function) == name:
            yield tree.span(node)

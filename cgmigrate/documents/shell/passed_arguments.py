"""Command lines that get the flags of others as arguments: in a function, or in a script of ``bash -c``, with ``$@``.

Of two equal flags the last one counts, so a flag that is deleted may bring the other one into effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.documents.shell.fragments import Fragment
    from cgmigrate.documents.shell.objects import CommandLine
    from cgmigrate.text.spans import Span

PASSED_ON = "a command line with such flags gets those of another one as its arguments (`$@`)"
_ARGUMENTS = re.compile(r"\$\{?[@*1-9]")
_WORD = re.compile(r"[\w.:-]+")
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))


def passed_on(lines: Sequence[CommandLine], text: str, functions: Mapping[Span, str]) -> frozenset[int]:
    """Return the numbers of the command lines that get flags of others as arguments, and of these others.

    ``functions`` are the names of the functions of a script and of those in quotes, by where these are defined.
    """
    commands = [(number, one) for number, line in enumerate(lines) for one in line.commands]
    receiving = [(number, one.span) for number, one in commands if _expands_arguments(text, one.span)]
    if not receiving or len(lines) < 2:
        return frozenset()
    result: set[int] = set()
    for number, command in commands:
        for span in _started_by(command, text, functions):
            inner = {other for other, one in receiving if span.start <= one.start and one.end <= span.end}
            result |= {*inner, number} if inner - {number} else set()
    return frozenset(result)


def _expands_arguments(text: str, span: Span) -> bool:
    return _ARGUMENTS.search(text, span.start, span.end) is not None


def _started_by(command: Fragment, text: str, functions: Mapping[Span, str]) -> Iterator[Span]:
    """Yield the code that gets the words of a command as its arguments, through functions that pass them on, too."""
    name = (command.words[0].text or "") if command.words else ""
    if name.rpartition("/")[2] in _SHELLS:
        yield command.span
    waiting, known = [name], set[str]()
    while waiting:
        called = waiting.pop()
        known.add(called)
        for span in (span for span, one in functions.items() if one == called):
            yield span
            body = _WORD.findall(text, span.start, span.end) if _expands_arguments(text, span) else ()
            waiting += {one for one in functions.values() if one not in known and one in body}

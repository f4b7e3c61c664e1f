"""The command lines that get overrides, with their other words: these name the configuration that is overridden."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.fragments import Fragment, FragmentReader
from cgmigrate.documents.shell.objects import users_of
from cgmigrate.documents.shell.overrides import OverrideLine
from cgmigrate.documents.shell.words import Word
from cgmigrate.documents.sites import OverridingCommand

if TYPE_CHECKING:
    from cgmigrate.documents.shell.objects import CommandLine
    from cgmigrate.text.spans import Span

_SCRIPTS = re.compile(r"(?:\S*/)?([\w.-]+\.(?:sh|bash|slurm|sbatch|sub|zsh))")


def script_named(word: str) -> str:
    """Return the name of the script that a word is, empty for other words."""
    match = _SCRIPTS.fullmatch(word)
    return match[1] if match else ""


def commands_of(
    lines: Sequence[OverrideLine], fragments: Sequence[Fragment], reader: FragmentReader
) -> Mapping[int, tuple[OverridingCommand, ...]]:
    """Return the command lines that surely get some overrides, by the number of these."""
    seen: Counter[tuple[str, ...]] = Counter()
    result: dict[int, list[OverridingCommand]] = {}
    overrides = {one.span for line in lines for one in line.overrides}
    for parts in users_of(fragments, reader.plain_variables):
        numbers = [number for number, line in enumerate(lines) if line.fragment in parts]
        if not numbers:
            continue
        every = (word for part in parts for word in part.words if word.span not in overrides)
        words = tuple(text for word in every for text in _texts(word, reader))
        for number in numbers:
            result.setdefault(number, []).append(OverridingCommand(words, (seen[words],)))
        seen[words] += 1
    return {number: tuple(commands) for number, commands in result.items()}


def _texts(word: Word, reader: FragmentReader) -> Iterator[str]:
    """Yield what a command gets of a word, as far as that is known."""
    if word.text is not None:
        yield word.text
    elif (known := reader.known_words(word)) is not None:
        yield from known
    else:
        yield reader.with_known_variables(word)


# --- arguments that are passed on -----------------------------------------------------------------

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

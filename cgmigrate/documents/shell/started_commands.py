"""The command lines that get overrides, with their other words: these name the configuration that is overridden."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from cgmigrate.documents.shell.fragments import Fragment, FragmentReader
from cgmigrate.documents.shell.objects import users_of
from cgmigrate.documents.shell.overrides import OverrideLine
from cgmigrate.documents.shell.words import Word
from cgmigrate.documents.sites import OverridingCommand

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

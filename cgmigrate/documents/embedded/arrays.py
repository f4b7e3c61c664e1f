"""Commands that are written as arrays of strings in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from cgmigrate.documents.code import Code
from cgmigrate.text.spans import Span

_STRING = re.compile(r'"(?P<content>(?:[^"\\]|\\.)*)"')
_PLAIN = re.compile(r"[\w./:=,@%+^-]+", re.ASCII)
_UNKNOWN = '"$_"'
"""A word that the shell computes."""


@dataclass(frozen=True, slots=True)
class CommandArray:
    """The words of an array as shell code. ``words`` is where the contents of those strings are that are read."""

    code: Code
    words: tuple[Span, ...]
    texts: tuple[str, ...]


def command_array(arguments: Code, file: str, names: Collection[int]) -> CommandArray | None:
    """Return the command that an array is, None if the arguments are no array of strings.

    ``names`` is where names of settings begin. Raises ValueError if a string has one and is written with escapes.
    """
    one_line = _without_continuations(arguments)
    try:
        texts = json.loads(one_line.text)
    except ValueError:
        return None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    parts: list[Code] = []
    words: list[Span] = []
    for match in _STRING.finditer(one_line.text):
        word = _word(one_line, match, is_first=not parts, names=names)
        if parts:
            parts.append(_separator(parts[-1], word, file))
        parts.append(word)
        content = one_line[slice(*match.span("content"))]
        if content and word.text != _UNKNOWN:
            words.append(Span(content.starts[0], content.ends[-1]))
    return CommandArray(Code.joined(parts), tuple(words), tuple(texts))


def _without_continuations(code: Code) -> Code:
    pieces, start = [], 0
    for match in re.finditer(r"\\\n", code.text):
        pieces.append(code[start : match.start()])
        start = match.end()
    return Code.joined([*pieces, code[start:]])


def _word(code: Code, match: re.Match[str], *, is_first: bool, names: Collection[int]) -> Code:
    content = code[slice(*match.span("content"))]
    if _PLAIN.fullmatch(content.text) and not (is_first and "=" in content.text):
        return content
    if "\\" not in content.text and "'" not in content.text:
        # The quotes of the shell have no character in the file: between those of the array is the word itself.
        start = content.starts[0] if content else code.ends[match.start()]
        end = content.ends[-1] if content else start
        return Code.written_as("'", start, start) + content + Code.written_as("'", end, end)
    if any(start in names for start in content.starts):
        raise ValueError("a string with escapes")
    return Code.added(_UNKNOWN)


def _separator(before: Code, after: Code, file: str) -> Code:
    """Return the blank between two words, which are quotes and a comma in the file."""
    start, end = before.ends[-1], after.starts[0]
    if start < 0 or end < 0 or not re.fullmatch(r'"?[\s\\`]*,[\s\\`]*"?', file[start:end]):
        return Code.added(" ")
    return Code.written_as(" ", start, end)

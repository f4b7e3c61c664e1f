"""References to variables of make, in the form that a shell expands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from cgmigrate.documents.code import Code

_NAME = re.compile(r"\$(?:\((?P<round>[A-Za-z_]\w*)\)|\{(?P<curly>[A-Za-z_]\w*)\})", re.ASCII)
_CLOSING = {"(": ")", "{": "}"}
_COMPUTED = "{_}"
"""What is behind the `$` of a word that make computes."""


def names_in(text: str) -> Iterator[str]:
    """Yield the variables that a text refers to, those in calls of functions included."""
    for match in re.finditer(r"(?<!\$)(?:\$\$)*\$(?:[({](?:call[ \t]+)?(\w+)|(\w))", text, re.ASCII):
        yield match[1] or match[2]


def shell_code(code: Code, variables: Collection[str]) -> Code:
    """Return what make passes to a shell: references to some variables are expansions, and `$$` is `$`.

    What make computes otherwise is a word that is not known.
    """
    parts, start = [], 0
    while (at := code.text.find("$", start)) >= 0:
        parts.append(code[start:at])
        part, start = _reference(code, at, variables)
        parts.append(part)
    return Code.joined([*parts, code[start:]])


def _reference(code: Code, at: int, variables: Collection[str]) -> tuple[Code, int]:
    """Return what is at a `$`, and where the text behind it begins."""
    following = code.text[at + 1 : at + 2]
    if not following or following == "\n":
        return code[at : at + 1], at + 1
    if following == "$":
        return Code.written_as("$", code.starts[at], code.ends[at + 1]), at + 2
    match = _NAME.match(code.text, at)
    if match and (match["round"] or match["curly"]) in variables:
        end = match.end()
        first = Code.written_as("{", code.starts[at + 1], code.ends[at + 1])
        last = Code.written_as("}", code.starts[end - 1], code.ends[end - 1])
        return Code.joined([code[at : at + 1], first, code[at + 2 : end - 1], last]), end
    end = _end(code.text, at + 1)
    name = f"{{{following}}}" if following in variables else _COMPUTED
    return Code.written_as("$", code.starts[at], code.ends[end - 1]) + Code.added(name), end


def _end(text: str, at: int) -> int:
    """Return the end of a reference whose text begins at an offset: a letter, or what brackets enclose."""
    opening = text[at]
    closing = _CLOSING.get(opening)
    if closing is None:
        return at + 1
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == opening) - (text[end] == closing)
        if not depth:
            return end + 1
    return len(text)

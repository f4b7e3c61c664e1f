"""Variables and arguments that a script uses as one word: a flag in them may not become two.

The text is searched: what looks like such a use counts as one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from cgmigrate.documents.shell.fragments import Fragment, FragmentForm
from cgmigrate.documents.shell.tree import ShellTree

_ONE_WORD = "the script may use `{variable}` as one word"
_NUMBERED = "the function `{function}` reads its arguments by their numbers"
_SHOWN = re.compile(r"(?<![\w.-])(?:echo|printf|eval|-[nz])[ \t][^;|&\n]*")
"""Words that are text for people, a test, or code."""
_QUOTED = re.compile(r'(?<!=)"\$\{?(\w+)[^"\s\[]*"', re.ASCII)
_LOOP = re.compile(r"(?<!\w)for\s+\w+\s+in\s([^;\n]*)")
_VARIABLE = re.compile(r"\$\{?(\w+)\b(?!\[)", re.ASCII)
_SOME_ELEMENTS = re.compile(r"(?<!\w)(\w+)\[(?![@*]\])|\$\{(\w+)\[[@*]\]:(?![-+=?])", re.ASCII)
_ALIAS = re.compile(r"(?<!\w)(\w+)=[\"']?\$\{?(\w+)", re.ASCII)
_UNDIVIDED = re.compile(r"(?<![\w$])IFS=(?!\$?'[^'\n]* |\"?\$\w|\S*[ \t]+read\b)|\A#![^\n]*\bzsh\b")
"""What keeps a shell from dividing the value of a variable at blanks; a separator for one `read` does not."""
_NUMBERS = re.compile(r"\$\{?(?P<number>[1-9]\d*)|(?<![\w-])shift(?![\w-])(?:[ \t]+(?P<count>\d+))?")
_AGAIN = re.compile(r"(?<!\w)(?:while|until|for)(?!\w)")


class SingleWords:
    """What a script uses as one word."""

    def __init__(self, tree: ShellTree, fragments: Sequence[Fragment]) -> None:
        self._tree, self._fragments = tree, fragments

    def reason(self, fragment: Fragment) -> str:
        """Return why a word of a fragment has to remain one, empty if it may become two."""
        variable = fragment.variable
        if not variable:
            function = (fragment.words[0].text or "") if fragment.words else ""
            is_numbered = any(flag.first <= self._reach.get(function, -1) for flag in fragment.flags)
            return _NUMBERED.format(function=function) if is_numbered else ""
        if fragment.form is FragmentForm.ARRAY:
            is_single = variable in self._elements
        else:
            is_single = len(fragment.words) == 1 and (variable in self._single or bool(self._undivided))
        return _ONE_WORD.format(variable=variable) if is_single or variable in self._numbered else ""

    @cached_property
    def _text(self) -> str:
        return _SHOWN.sub("", self._tree.text)

    @cached_property
    def _undivided(self) -> bool:
        return _UNDIVIDED.search(self._tree.text) is not None

    @cached_property
    def _single(self) -> set[str]:
        looped = (name for loop in _LOOP.finditer(self._text) for name in _VARIABLE.findall(loop[1]))
        return self._with_aliases({*_QUOTED.findall(self._text), *looped})

    @cached_property
    def _elements(self) -> set[str]:
        """The arrays of which single elements are used; without an index, that is the first one."""
        return {*_VARIABLE.findall(self._text), *(name for pair in _SOME_ELEMENTS.findall(self._text) for name in pair)}

    @cached_property
    def _numbered(self) -> set[str]:
        """The variables that are arguments which a function reads by their numbers."""
        return self._with_aliases(set(self._numbered_variables()))

    def _numbered_variables(self) -> Iterator[str]:
        for command in self._fragments if self._reach else ():
            name = (command.words[0].text or "") if command.words and not command.variable else ""
            yield from (word.variable for word in command.words[: self._reach.get(name, -1) + 1] if word.variable)

    def _with_aliases(self, names: set[str]) -> set[str]:
        """Return variables with those whose values are in them."""
        inside: defaultdict[str, set[str]] = defaultdict(set)
        for name, value in _ALIAS.findall(self._text):
            inside[name].add(value)
        pending = list(names)
        while pending:
            new = inside[pending.pop()] - names
            names |= new
            pending += new
        return names

    @cached_property
    def _reach(self) -> dict[str, int]:
        """Name of a function → the last of its arguments that it reads by a number."""
        parts = ((node.child_by_field_name("name"), node.child_by_field_name("body")) for node in self._tree.functions)
        written = self._tree.written
        return {written(name): _last_number(written(body)) for name, body in parts if name and body}


def _last_number(code: str) -> int:
    """Return the last argument that the code of a function reads by its number."""
    last = moved = 0
    for match in _NUMBERS.finditer(code):
        if match["number"]:
            last = max(last, moved + int(match["number"]))
        elif _AGAIN.search(code):
            # A loop that reads arguments may read all of them.
            return len(code)
        else:
            moved += int(match["count"] or 1)
    return last

"""A list of arguments as a command line: its items are words, and new words are new items."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cgmigrate.documents.code import CannotMapError, CodeText
from cgmigrate.documents.nesting import NestedText
from cgmigrate.documents.overrides import without_shell_quotes
from cgmigrate.documents.yaml.scalar_code import scalar_code
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.text.edits import Edit

WORD = re.compile(r"[\w./:=,@%+^\[\]-]+", re.ASCII)
"""An item that is one word, and that a shell would pass on as it is, or with brackets."""
_OVERRIDE = re.compile(r"[+~]{0,2}[\w-]+(?:\.[\w-]+)+=[^']*")
"""An item that is an override, whatever characters are in its value."""
_NEW = re.compile(r"[\w./=,+\[\]-]+(?: [\w./=,+\[\]-]+)*", re.ASCII)
_BULLET = re.compile(r"[ \t]*-[ \t]+")
_UNKNOWN = '"$_"'
"""A word that is not followed."""
_EMPTY = "the list would be empty"
_NEEDS_QUOTES = "a value with brackets needs quotes in this list"
_INSIDE = "the change is not inside one item of the list"


@dataclass(frozen=True, eq=False, slots=True)
class ListPart(NestedText):
    """A list as a part: ``items`` are its scalars."""

    items: tuple[Node, ...] = ()

    def has(self, offset: int) -> bool:
        """Return whether a character of the file is one of the part, or a quote of one."""
        return any(start <= offset < end for start, end in zip(self.code.starts, self.code.ends, strict=True))

    def edit(self, edit: Edit, file: str) -> Edit:
        """Return the edit of the file that makes an edit of the part. Raises CannotMapError."""
        span = self.code.replaced(edit.start, edit.end)
        start, end = span.start, span.end
        if not edit.text:
            if start <= self.items[0].start and end >= self.items[-1].end:
                raise CannotMapError(_EMPTY)
            whole = not self._around(start) and not self._around(end)
            return Edit(*((start, end) if whole else self._between_quotes(start, end)), "")
        text = without_shell_quotes(edit.text)
        if not _NEW.fullmatch(text.strip(" ")):
            raise CannotMapError(_INSIDE)
        if " " not in text:
            self._check_brackets(text, self._around(start) or self._around(end), file)
            return Edit(*self._between_quotes(start, end), text)
        return self._as_items(start, end, text, file)

    def _check_brackets(self, text: str, item: Node | None, file: str) -> None:
        """Raise CannotMapError if a list of one line would read the brackets in new text as its own."""
        is_read = file[self.span.start] == "[" and not (item and item.style)
        if is_read and not set(text).isdisjoint("[],"):
            raise CannotMapError(_NEEDS_QUOTES)

    def _around(self, offset: int) -> Node | None:
        """Return the item that an offset is inside of."""
        return next((one for one in self.items if one.start < offset < one.end), None)

    def _between_quotes(self, start: int, end: int) -> tuple[int, int]:
        """Return a part of the file without the quotes around what is in it. Raises CannotMapError."""
        first, last = self._around(start), self._around(end)
        ending = next((one for one in self.items if one.end == end), None)
        if start == end:
            # An insertion behind an item is in it.
            at = start if first or not ending or not ending.style else start - 1
            return at, at
        opening = first or next((one for one in self.items if one.start == start), None)
        closing = last or ending
        if opening is None or closing is None or opening.style != closing.style:
            raise CannotMapError(_INSIDE)
        quote = 1 if opening.style else 0
        return start if first else start + quote, end if last else end - quote

    def _as_items(self, start: int, end: int, text: str, file: str) -> Edit:
        """Return the edit that writes each word as an item of its own, quoted like the one it replaces or follows."""
        first = next((one for one in self.items if one.start == start), None)
        last = next((one for one in self.items if one.end == end), None)
        if last is None or (first is None and start != end):
            raise CannotMapError(_INSIDE)
        self._check_brackets(text, first or last, file)
        quote = (first or last).style or ""
        separator = self._separator(file)
        items = separator.join(f"{quote}{word}{quote}" for word in text.split())
        return Edit(start, end, (separator if start == end else "") + items)

    def _separator(self, file: str) -> str:
        """Return what is between two items. Raises CannotMapError."""
        start = self.items[0].start
        before = file[file.rfind("\n", 0, start) + 1 : start]
        if file[self.span.start] == "[":
            between = file[self.items[0].end : self.items[1].start] if self.items[1:] else ", "
            return between if not between.replace(",", "", 1).strip() else ", "
        if not _BULLET.fullmatch(before):
            raise CannotMapError("where a new item would be is not certain")
        return ("\r\n" if "\r\n" in file else "\n") + before


@dataclass(frozen=True, slots=True)
class ListCode:
    """A list as the words of a command.

    ``is_quoted`` says that the code has quotes around an item, so only a shell reads it as the list is.
    """

    code: CodeText
    is_quoted: bool

    @property
    def as_script(self) -> CodeText:
        """The code as a command whose first word is not known."""
        return CodeText.added(f"{_UNKNOWN} ") + self.code


def list_code(node: Node, text: str, names: Sequence[int]) -> ListCode | None:
    """Return a list as the words of a command, None if an item with the flag of a setting is not followed.

    ``names`` is where flags of settings begin.
    """
    parts: list[CodeText] = []
    for before, item in zip([None, *node.items], node.items, strict=False):
        word = _item(item, text)
        if word is None and _has(item, names):
            return None
        if before is not None:
            is_clear = "#" not in text[before.end : item.start]
            parts.append(CodeText.written_as(" ", before.end, item.start) if is_clear else CodeText.added(" "))
        parts.append(word or CodeText.added(_UNKNOWN))
    return ListCode(CodeText.joined(parts), any("'" in part.text for part in parts))


def _has(item: Node, names: Sequence[int]) -> bool:
    return any(item.start <= name < item.end for name in names)


def _item(item: Node, text: str) -> CodeText | None:
    """Return an item as a word, None for several; its quotes belong to the first and last characters."""
    code = scalar_code(item, text)
    if code is None or item.anchor or "\n" in text[item.start : item.end]:
        return None
    if not WORD.fullmatch(code.text):
        return _quoted(code, item) if _OVERRIDE.fullmatch(code.text) else None
    if not item.style:
        return code
    starts, ends = list(code.starts), list(code.ends)
    starts[0], ends[-1] = item.start, item.end
    return CodeText(code.text, starts, ends)


def _quoted(code: CodeText, item: Node) -> CodeText:
    """Return an item in quotes of a shell: those of the item, or else quotes that have no character in the file."""
    width = 1 if item.style else 0
    opening = CodeText.written_as("'", item.start, item.start + width)
    return opening + code + CodeText.written_as("'", item.end - width, item.end)

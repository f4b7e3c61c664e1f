"""A list of arguments as a command line: its items are words, and new words are new items."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cgmigrate.documents.code import CannotMapError, Code
from cgmigrate.documents.nesting import Part
from cgmigrate.documents.overrides import without_shell_quotes
from cgmigrate.documents.yaml.scalar_code import scalar_code
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

WORD = re.compile(r"[\w./:=,@%+^\[\]-]+", re.ASCII)
"""An item that is one word, and that a shell would pass on as it is, or with brackets."""
_SEVERAL = re.compile(r"--[\w-]+(?:[ =][\w./:=,@%+^-]+)*(?: [\w./:=,@%+^-]+)*", re.ASCII)
"""An item of several words, which whoever uses the list divides."""
_OVERRIDE = re.compile(r"[+~]{0,2}[\w-]+(?:\.[\w-]+)+=[^']*")
"""An item that is an override, whatever characters are in its value."""
_NEW = re.compile(r"[\w./=+-]+(?: [\w./=+-]+)*", re.ASCII)
_NEW_WITH_BRACKETS = re.compile(r"[\w./=,+\[\]-]+(?: [\w./=,+\[\]-]+)*", re.ASCII)
"""New words of a list whose items may have brackets."""
_BULLET = re.compile(r"[ \t]*-[ \t]+")
_UNKNOWN = '"$_"'
"""A word that is not followed."""
_EMPTY = "the list would be empty"
_NEEDS_QUOTES = "a value with brackets needs quotes in this list"
_INSIDE = "the change is not inside one item of the list"
_BOTH_DIVIDED = "an item has several words, and another list has the rest of the command line"


@dataclass(frozen=True, eq=False, slots=True)
class ListPart(Part):
    """A list as a part: ``items`` are its scalars. ``is_divided`` says that an item may have several words."""

    items: tuple[Node, ...] = ()
    is_divided: bool = False

    def joined_with(self, rest: Node) -> JoinedPart:
        """Return it as a part with the list that has the other words of its command line."""
        halves = (self, replace(self, span=Span(rest.start, rest.end), items=tuple(rest.items)))
        span = Span(min(one.span.start for one in halves), max(one.span.end for one in halves))
        blocked_by = _BOTH_DIVIDED if self.is_divided else ""
        return JoinedPart(
            self.number,
            span,
            self.code,
            self.name,
            is_whole=self.is_whole,
            has_comments=False,
            blocked_by=blocked_by,
            halves=halves,
        )

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
        if not (_NEW if self.is_divided else _NEW_WITH_BRACKETS).fullmatch(text.strip(" ")):
            raise CannotMapError(_INSIDE)
        if self.is_divided or " " not in text:
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


@dataclass(frozen=True, eq=False, slots=True)
class JoinedPart(Part):
    """Two values with the words of one command line, such as `command` and `args` of a container."""

    halves: tuple[Part, ...] = ()

    @property
    def pieces(self) -> Sequence[Span]:
        """The spans of the lists, in the order of the command line."""
        return [one.span for one in self.halves]

    def has(self, offset: int) -> bool:
        """Return whether a character of the file is one of the lists, or a quote in them."""
        return self.halves[0].has(offset)

    def edit(self, edit: Edit, file: str) -> Edit:
        """Return the edit of the file that makes an edit of the part. Raises CannotMapError."""
        text, start, end = self.code.text, edit.start, edit.end
        if not edit.text and start < end and self.code.is_added(start) and text[end : end + 1] in (" ", ""):
            # The blank between the lists is in neither of them.
            edit = Edit(start + 1, min(end + 1, len(text)), "")
        span = self.code.replaced(edit.start, edit.end)
        half = next((one for one in self.halves if one.span.start <= span.start and span.end <= one.span.end), None)
        if half is None:
            raise CannotMapError(_INSIDE)
        return half.edit(edit, file)


@dataclass(frozen=True, slots=True)
class ListCode:
    """A list as the words of a command. ``is_divided`` says that its items may have several words.

    ``is_quoted`` says that the code has quotes around an item, so only a shell reads it as the list is.
    """

    code: Code
    is_divided: bool
    is_quoted: bool

    def followed_by(self, rest: ListCode) -> ListCode:
        """Return both lists as one command."""
        code = self.code + Code.added(" ") + rest.code
        return ListCode(code, self.is_divided or rest.is_divided, self.is_quoted or rest.is_quoted)

    @property
    def as_script(self) -> Code:
        """The code as a command whose first word is not known."""
        return Code.added(f"{_UNKNOWN} ") + self.code


def list_code(node: Node, text: str, names: Sequence[int]) -> ListCode | None:
    """Return a list as the words of a command, None if an item with the flag of a setting is not followed.

    ``names`` is where flags of settings begin.
    """
    # An item with such a flag and its value would be one word to the program, which does not know it.
    divided = any(_has(item, names) and _SEVERAL.fullmatch(item.value) and " " in item.value for item in node.items)
    parts: list[Code] = []
    for before, item in zip([None, *node.items], node.items, strict=False):
        word = _item(item, text, divided)
        if word is None and _has(item, names):
            return None
        if before is not None:
            is_clear = "#" not in text[before.end : item.start]
            parts.append(Code.written_as(" ", before.end, item.start) if is_clear else Code.added(" "))
        parts.append(word or Code.added(_UNKNOWN))
    return ListCode(Code.joined(parts), divided, any("'" in part.text for part in parts))


def _has(item: Node, names: Sequence[int]) -> bool:
    return any(item.start <= name < item.end for name in names)


def _item(item: Node, text: str, divided: bool) -> Code | None:
    """Return an item as a word, or as several; its quotes belong to the first and last characters."""
    code = scalar_code(item, text)
    if code is None or item.anchor or "\n" in text[item.start : item.end]:
        return None
    if not (WORD.fullmatch(code.text) or (divided and _SEVERAL.fullmatch(code.text))):
        return _quoted(code, item) if not divided and _OVERRIDE.fullmatch(code.text) else None
    if not item.style:
        return code
    starts, ends = list(code.starts), list(code.ends)
    starts[0], ends[-1] = item.start, item.end
    return Code(code.text, starts, ends)


def _quoted(code: Code, item: Node) -> Code:
    """Return an item in quotes of a shell: those of the item, or else quotes that have no character in the file."""
    width = 1 if item.style else 0
    opening = Code.written_as("'", item.start, item.start + width)
    return opening + code + Code.written_as("'", item.end - width, item.end)

"""A file with parts in other syntaxes: a document of the file itself, and one of each part.

A part is a text that a program gets out of the file: a here-document, or a code block of a page. Its
document is that of its own syntax; spans and edits are mapped to those of the file. A fix is checked twice: the part is
read again as its document, and the file around the parts is read again with the parts as they were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cgmigrate.documents.code import CannotMapError, CodeText
from cgmigrate.documents.comments import Comment
from cgmigrate.documents.sites import UNREADABLE, CannotEditError, Document, Inside, Problem, Site, Use
from cgmigrate.megatron.settings import Missing, Settings
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.spans import Span

_Item = TypeVar("_Item")
_OTHER_PARTS = "the parts in other syntaxes would be others"


def as_written(text: str) -> str:
    """Return new code as it is."""
    return text


@dataclass(frozen=True, eq=False, slots=True)
class NestedText:
    """A text in another syntax inside a file.

    ``number`` is its place among the texts of the file that may be parts, ``span`` is where all of it is. ``name`` is
    that of a file in its syntax. ``is_whole`` says that no other text belongs to its command lines. ``escaped``
    returns new code as the file writes it, and raises CannotMapError.
    """

    number: int
    span: Span
    code: CodeText
    name: str
    is_whole: bool = True
    escaped: Callable[[str], str] = as_written

    def use(self, use: Use) -> Use:
        """Return a use in the code as one in the file."""
        return replace(use, span=self.code.span(use.span))

    def edit(self, edit: Edit, file: str) -> Edit:
        """Return the edit of the file that makes an edit of the part. Raises CannotMapError."""
        edit = self._between_line_breaks(edit)
        span = self.code.replaced(edit.start, edit.end)
        text = self.escaped(edit.text)
        if "\n" in text:
            text = text.replace("\n", ("\r\n" if "\r\n" in file else "\n") + self._indent(edit.start, file))
        return Edit(span.start, span.end, text)

    def _between_line_breaks(self, edit: Edit) -> Edit:
        """Return a deletion of whole lines with the line break above them instead of the one at their end.

        The file indents each line behind a line break, so the indentation of the deleted lines is deleted, too.
        """
        text = self.code.text
        is_lines = not edit.text and edit.start and text[edit.start - 1] == "\n" and text[edit.end - 1] == "\n"
        return Edit(edit.start - 1, edit.end - 1, "") if is_lines and edit.end > edit.start else edit

    def _indent(self, at: int, file: str) -> str:
        """Return what the file has in front of the line with a character of the part."""
        first = self.code.text.rfind("\n", 0, at) + 1
        if first >= len(self.code.starts):
            raise CannotMapError("the end of the text would change")
        start = self.code.starts[first]
        indent = file[file.rfind("\n", 0, start) + 1 : start]
        if indent.strip(" \t>"):
            raise CannotMapError("a new line would be needed")
        return indent


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part with its document; ``first_site`` is the index of its first site in the file."""

    part: NestedText
    document: Document
    first_site: int

    @property
    def problem(self) -> str:
        """Why the part cannot be read, empty if it can."""
        return next((one.message for one in self.document.problems if one.kind in UNREADABLE), "")


class NestingDocument(Document):
    """A file with parts in other syntaxes; see ``sites.Document``.

    ``outer`` is the document of the file without them. ``read`` reads an edited text in the same way, with the parts
    that have some numbers.
    """

    def __init__(
        self,
        outer: Document,
        parts: Sequence[tuple[NestedText, Document]],
        read: Callable[[str, Collection[int]], Document],
    ) -> None:
        self.outer = outer
        super().__init__(outer.text, outer.path, outer.catalogue)
        self.comment_form = outer.comment_form
        self.top_level, self.builds_on = list(outer.top_level), outer.builds_on
        self.sites = list(outer.sites)
        self._read = read
        self._parts: list[ReadPart] = []
        self.skipped: list[tuple[Use, str]] = []
        for part, document in parts:
            one = ReadPart(part, document, len(self.sites))
            self._parts.append(one)
            if not one.problem:
                self.sites += [self._site(site, one) for site in document.sites]
                self.problems += [self._problem(problem, part) for problem in document.problems]
                self.skipped += [(part.use(use), owner) for use, owner in document.skipped]
        outside = self._outside(outer.problems, [one.span.start for one in outer.problems])
        self.problems = [*map(self._outer_problem, outside), *self.problems]
        starts = [use.span.start for use, _ in outer.skipped]
        self.skipped = [*self._outside(outer.skipped, starts), *self.skipped]

    # --- reading ------------------------------------------------------------------------------------

    def _outside(self, items: Sequence[_Item], starts: Sequence[int]) -> list[_Item]:
        """Return the items that are in no part that is read; ``starts`` is where each begins."""
        parts = [one.part for one in self._parts if not one.problem]
        return [
            item
            for item, start in zip(items, starts, strict=True)
            if not any(part.code.position(start) is not None for part in parts)
        ]

    def _outer_problem(self, problem: Problem) -> Problem:
        """Return a problem of the file; one in a part that cannot be read says why."""
        if problem.index >= 0:
            problem = replace(problem, index=problem.index + self._inner_sites)
        start = problem.span.start
        around = (one for one in self._parts if one.part.span.start <= start < one.part.span.end)
        why = next((one.problem for one in around if one.problem), "")
        return replace(problem, message=f"{problem.message}: {why}") if why else problem

    def _site(self, site: Site, one: ReadPart) -> Site:
        """Return a site of a part as one of the file."""
        first, part = one.first_site, one.part
        written = tuple(part.use(use) for use in site.written)
        return replace(
            site,
            index=site.index + first,
            span=Span(min(use.span.start for use in written), max(use.span.end for use in written))
            if written
            else part.span,
            written=written,
            inherits=tuple(index + first for index in site.inherits),
            linked=tuple(index + first for index in site.linked),
            inside=Inside(part.number, tuple(one.document.top_level), site.inside),
            commands=tuple(replace(command, place=(part.number, *command.place)) for command in site.commands),
        )

    def _problem(self, problem: Problem, part: NestedText) -> Problem:
        """Return a problem of a part as one of the file: it is not rewritten."""
        advice = problem.advice or (f"write `{problem.replacement}`" if problem.replacement else "")
        return Problem(problem.kind, part.code.span(problem.span), problem.message, advice=advice)

    @property
    def uses(self) -> Sequence[Use]:
        """The appearances in the code around the parts; see ``sites.Document``."""
        return self.outer.uses

    def comments(self) -> Sequence[Comment]:
        """Return the comments of the file, and those in its parts; see ``comments.Commented``."""
        outer = self.outer.comments()
        inside = [
            replace(comment, span=one.part.code.span(comment.span))
            for one in self._parts
            if not one.problem
            for comment in one.document.comments()
        ]
        outside = self._outside(outer, [comment.span.start for comment in outer])
        return sorted([*outside, *inside], key=lambda comment: comment.span.start)

    def joined_lines(self) -> Sequence[Span]:
        """Return the parts of several lines that no comment can be in; see ``comments.Commented``."""
        parts = [one for one in self._parts if not one.problem]
        spans = [one.part.span for one in parts]
        outer = [span for span in self.outer.joined_lines() if not any(_overlap(span, one) for one in spans)]
        return [*outer, *(one.part.code.span(span) for one in parts for span in one.document.joined_lines())]

    # --- one site -----------------------------------------------------------------------------------

    @property
    def _inner_sites(self) -> int:
        """The number of sites in parts: they are between the sites of the file and the problems that have a fix."""
        return len(self.sites) - len(self.outer.sites)

    def _outer_index(self, index: int) -> int:
        """Return the index that a site or problem of the file has in the document without the parts."""
        return index if index < len(self.outer.sites) else index - self._inner_sites

    def _part_of(self, index: int) -> ReadPart | None:
        """Return the part of a site, None for a site of the file around the parts."""
        at = bisect_right(self._parts, index, key=lambda one: one.first_site) - 1
        return self._parts[at] if at >= 0 and index < len(self.sites) else None

    def enclosing(self, offset: int, /) -> str:
        """Return the function around an offset, in the file and in its part; see ``sites.Document``."""
        names = [self.outer.enclosing(offset)]
        for one in self._parts:
            if one.part.span.start <= offset < one.part.span.end:
                inner = one.part.code.position(offset)
                names += [one.document.enclosing(inner)] if inner is not None else []
        return ".".join(filter(None, names))

    def value_beside(self, index: int, section: Sequence[str], keys: Sequence[str], /) -> object:
        """Return a value of the configuration that a site belongs to; see ``sites.Document``."""
        one = self._part_of(index)
        if one is None:
            return self.outer.value_beside(index, section, keys)
        value = one.document.value_beside(index - one.first_site, section, keys)
        return Missing.UNKNOWN if value is Missing.ABSENT and not one.part.is_whole else value

    def variable_at(self, offset: int, name: str, /) -> object:
        """Return the value of a variable of the environment, in a part or around it; see ``sites.Document``."""
        for one in self._parts:
            inner = one.part.code.position(offset)
            if inner is not None and not one.problem:
                value = one.document.variable_at(inner, name)
                return self.outer.variable_at(one.part.span.start, name) if value is Missing.ABSENT else value
        return self.outer.variable_at(offset, name)

    def risk(self, index: int, /) -> str:
        """Return why the fix of a site is not safe; see ``sites.Document``."""
        one = self._part_of(index)
        if one is None:
            return self.outer.risk(self._outer_index(index))
        return one.document.risk(index - one.first_site) or self.outer.risk(-1)

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as it would be written at a site; see ``sites.Document``."""
        one = self._part_of(site)
        if one is None:
            return self.outer.spelled(site, name, value)
        return one.document.spelled(site - one.first_site, name, value)

    # --- writing ------------------------------------------------------------------------------------

    def _divided(self, rewrites: Mapping[int, Settings]) -> tuple[dict[int, Settings], dict[int, dict[int, Settings]]]:
        """Return the rewrites of the file around the parts, and those of each part by its number."""
        outer: dict[int, Settings] = {}
        inner: defaultdict[int, dict[int, Settings]] = defaultdict(dict)
        for index, settings in rewrites.items():
            one = self._part_of(index)
            if one is None:
                outer[self._outer_index(index)] = settings
            else:
                inner[one.part.number][index - one.first_site] = settings
        return outer, inner

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that make the rewrites; see ``sites.Document``."""
        outer, inner = self._divided(rewrites)
        result = self._outer_edits(outer) if outer else []
        for one in self._parts:
            if own := inner.get(one.part.number):
                result += self._edits_of(one, own)
        return self._in_order(result, rewrites)

    def _outer_edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        try:
            return self.outer.edits(rewrites)
        except CannotEditError as error:
            is_site = error.site < len(self.outer.sites)
            raise CannotEditError(error.site if is_site else error.site + self._inner_sites, str(error)) from error

    def _edits_of(self, one: ReadPart, own: Mapping[int, Settings]) -> list[Edit]:
        try:
            return [one.part.edit(edit, self.text) for edit in one.document.edits(own)]
        except CannotMapError as error:
            raise CannotEditError(one.first_site + min(own), str(error)) from error
        except CannotEditError as error:
            raise CannotEditError(one.first_site + error.site, str(error)) from error

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        again = self._read(edited, [one.part.number for one in self._parts])
        if not isinstance(again, NestingDocument) or len(again._parts) != len(self._parts):
            return _OTHER_PARTS
        outer, inner = self._divided(rewrites)
        restored: list[Edit] = []
        for one, other in zip(self._parts, again._parts, strict=True):
            if (one.part.number, one.part.name) != (other.part.number, other.part.name):
                return _OTHER_PARTS
            if reason := one.document.check(other.document.text, inner.get(one.part.number, {})):
                return reason
            was, now = one.part.span, other.part.span
            restored.append(Edit(now.start, now.end, self.text[was.start : was.end]))
        restored = _without_inner(restored)
        if reason := self.outer.check(apply(edited, restored), outer):
            return reason
        self._again = again
        return ""

    def quotes(self, rewrites: Mapping[int, Settings]) -> dict[int, Mapping[str, str]]:
        """Return the settings of rewritten sites as the text that was checked last has them."""
        outer, inner = self._divided(rewrites)
        result = dict(self.outer.quotes(outer)) if outer else {}
        for one in self._parts:
            if own := inner.get(one.part.number):
                quoted = one.document.quotes(own)
                result |= {one.first_site + index: quotes for index, quotes in quoted.items()}
        return result


def outer_of(document: Document) -> Document:
    """Return the document of a file without the parts of it in other syntaxes."""
    return document.outer if isinstance(document, NestingDocument) else document


def _without_inner(edits: Sequence[Edit]) -> list[Edit]:
    """Return edits in the order of the text, without those inside of others."""
    result: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if not result or edit.start >= result[-1].end:
            result.append(edit)
    return result


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end

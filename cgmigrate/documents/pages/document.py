"""A page of documentation: its code blocks are documents of their own syntaxes, all else is text for people.

A fix of a page is about one block of code. A block is an example, and no whole configuration: what it does not set may
be set elsewhere. The code around it is not known either, so what reads a setting in it is a note.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cgmigrate.documents import sites
from cgmigrate.documents.command_line_advice import by_hand
from cgmigrate.documents.comments import Comment, CommentForm
from cgmigrate.documents.pages.blocks import CodeBlock
from cgmigrate.documents.pages.outline import Outline
from cgmigrate.documents.pages.readers import ReadBlock, read_block
from cgmigrate.documents.pages.snippets import CannotMapError
from cgmigrate.documents.sites import (
    HISTORY,
    CannotEditError,
    Example,
    Problem,
    ProblemKind,
    Role,
    Site,
    Use,
)
from cgmigrate.documents.text_document import TextDocument
from cgmigrate.documents.uses import Appearance, appearances_in
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import ENABLE, Missing, Settings
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.spans import Span

_IMPORT = re.compile(r"^[ \t]*(?:>>> )?(?:from|import)[ \t]+(?P<module>[\w.]+)", re.MULTILINE)
_MEGATRON = re.compile(r"megatron|nemo", re.IGNORECASE)
NO_LANGUAGES: Mapping[int, str] = {}
_HARNESS = "a program with options of its own, spelled with underscores"


@dataclass(frozen=True, slots=True)
class _Part:
    """A code block that is read: ``first_site`` is the index of its first site in the page."""

    number: int
    read: ReadBlock
    first_site: int


class PageDocument(TextDocument):
    """A page of documentation; see ``sites.Document``. Without a catalogue, the settings are those that ship.

    ``keeps_all`` says that the page documents the past, and that its names stay as they are. ``languages`` are those
    of code blocks that are read in any case, by number: those of a page that was edited.
    """

    comment_form = CommentForm("<!--", "-->", inside="#")

    def __init__(
        self,
        text: str,
        path: str = "",
        catalogue: Catalogue | None = None,
        *,
        keeps_all: bool = False,
        languages: Mapping[int, str] = NO_LANGUAGES,
    ) -> None:
        super().__init__(text, path, catalogue)
        self.skipped: list[tuple[Use, str]] = []
        self.keeps_all = keeps_all
        self._again: PageDocument | None = None
        self._blocks: list[CodeBlock] = []
        self._parts: list[_Part] = []
        deprecated = self.catalogue.deprecated
        self._names = [one for one in appearances_in(text, self.catalogue) if one.setting in deprecated]
        if keeps_all:
            self.skipped = [(one.use(Role.MENTION), HISTORY) for one in self._names]
        elif self._names or languages:
            self._read(languages)

    # --- reading ------------------------------------------------------------------------------------

    @staticmethod
    def blocks_of(text: str) -> list[CodeBlock]:
        """Return the code blocks of a text."""
        raise NotImplementedError

    def _read(self, languages: Mapping[int, str]) -> None:
        self._blocks = type(self).blocks_of(self.text)
        self._starts = [block.span.start for block in self._blocks]
        self._outline = Outline(self.text, (block.span for block in self._blocks), self.catalogue)
        by_block: dict[int, list[Appearance]] = {number: [] for number in languages if number < len(self._blocks)}
        for name in self._names:
            by_block.setdefault(self._block_at(name.span.start), []).append(name)
        for number, names in sorted(by_block.items()):
            if number < 0:
                for name in names:
                    self._read_mention(name, "")
            else:
                self._read_block(number, names, languages.get(number, ""))

    def _block_at(self, offset: int) -> int:
        """Return the number of the code block with an offset, -1 if it is in none."""
        at = bisect_right(self._starts, offset) - 1
        return at if at >= 0 and offset < self._blocks[at].span.end else -1

    def _read_block(self, number: int, names: Sequence[Appearance], language: str) -> None:
        block = self._blocks[number]
        code = self.text[block.span.start : block.span.end]
        is_former = self._outline.shows_former(block.span) or self._outline.names_both(code)
        if block.language == "diff" or (is_former and not language):
            self.skipped += [(one.use(Role.MENTION), HISTORY) for one in names]
            return
        read, why = read_block(block, self.text, self.catalogue, language)
        if read is None:
            for name in names:
                self._read_mention(name, why)
            return
        output = [name for name in names if read.snippet.inner_offset(name.span.start) is None]
        for name in output:
            self._read_mention(name, "it is output of a command")
        read = replace(read, output_has_names=bool(output))
        part = _Part(number, read, len(self.sites))
        self._parts.append(part)
        self.sites += [self._site(site, part) for site in read.document.sites]
        self.problems += [self._problem(problem, read) for problem in read.document.problems]
        self.skipped += [(self._use(use, read), owner) for use, owner in read.document.skipped]

    @cached_property
    def _modules(self) -> tuple[str, ...]:
        """The modules that a code block in Python imports: the next one uses them."""
        spans = [block.span for block in self._blocks if block.language == "python"]
        imports = (match for span in spans for match in _IMPORT.finditer(self.text, span.start, span.end))
        return tuple(dict.fromkeys(match["module"] for match in imports))

    def _site(self, site: Site, part: _Part) -> Site:
        """Return a site of a block as one of the page."""
        first, read = part.first_site, part.read
        origin = site.origin
        if origin is not None and not origin.imports:
            origin = replace(origin, imports=self._modules)
        return replace(
            site,
            index=site.index + first,
            span=read.snippet.span(site.span),
            written=tuple(self._use(use, read) for use in site.written),
            inherits=tuple(index + first for index in site.inherits),
            linked=tuple(index + first for index in site.linked),
            blocked_by=site.blocked_by or read.blocked_by(site),
            origin=origin,
            # An example of a file is a part of one; that of a command is a whole command.
            overrides=site.overrides or (site.origin is None and site.programs is None),
            example=Example(part.number, tuple(read.document.top_level)),
        )

    def _use(self, use: Use, read: ReadBlock) -> Use:
        return replace(use, span=read.snippet.span(use.span))

    def _problem(self, problem: Problem, read: ReadBlock) -> Problem:
        """Return a problem of a block as one of the page: it is not rewritten."""
        advice = problem.advice or (f"write `{problem.replacement}`" if problem.replacement else "")
        return Problem(problem.kind, read.snippet.span(problem.span), problem.message, advice=advice)

    def _read_mention(self, name: Appearance, why: str) -> None:
        """Record a name that is no setting of a block: ``why`` says why its block is not read."""
        is_harness = name.key.startswith("--") and "_" in name.key
        is_common = name.setting == ENABLE and not self._is_about_megatron
        if is_harness or is_common:
            self.skipped.append((name.use(Role.MENTION), _HARNESS if is_harness else sites.UNKNOWN_OWNER))
        elif not why and self._outline.keeps(name):
            self.skipped.append((name.use(Role.MENTION), HISTORY))
        else:
            where = f"is in a code block that is not read: {why}" if why else "is named in the text"
            message = f"`{name.key}` {where}"
            advice = by_hand(name.key, self.catalogue) if name.key.startswith("--") else ""
            self.problems.append(Problem(ProblemKind.NAME_IN_DOCUMENTATION, name.span, message, advice=advice))

    @cached_property
    def _is_about_megatron(self) -> bool:
        return bool(_MEGATRON.search(self.text)) or any(name.setting != ENABLE for name in self._names)

    @property
    def uses(self) -> Sequence[Use]:
        """Every appearance of a setting; see ``sites.Document``."""
        inside = [self._use(use, part.read) for part in self._parts for use in part.read.document.uses]
        known = {use.span.start for use in inside}
        others = [one.use(Role.MENTION) for one in self._names if one.span.start not in known]
        return sorted([*inside, *others], key=lambda use: use.span.start)

    def comments(self) -> Sequence[Comment]:
        """Return the comments of the page, and those in its blocks; see ``comments.Commented``."""
        inside = [
            Comment(comment.text, part.read.snippet.span(comment.span), comment.alone)
            for part in self._parts
            for comment in part.read.document.comments()
        ]
        own = [
            Comment(match.group(), Span(*match.span()), self._is_alone(match.start()))
            for match in re.finditer(r"<!--(?:(?!-->).)*-->", self.text)
            if not self._blocks or self._block_at(match.start()) < 0
        ]
        return sorted([*own, *inside], key=lambda comment: comment.span.start)

    def _is_alone(self, offset: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, offset) + 1 : offset].strip()

    def joined_lines(self) -> Sequence[Span]:
        """Return the parts of several lines that no comment can be in; see ``comments.Commented``."""
        return [part.read.snippet.span(span) for part in self._parts for span in part.read.document.joined_lines()]

    # --- one site -----------------------------------------------------------------------------------

    def _part_of(self, index: int) -> tuple[_Part, int]:
        """Return the part of a site, and the index of the site there."""
        # Of several parts that begin at one index, all but the last have no sites.
        part = self._parts[bisect_right(self._parts, index, key=lambda one: one.first_site) - 1]
        return part, index - part.first_site

    def enclosing(self, offset: int, /) -> str:
        """Return the class and function around an offset of a block; see ``sites.Document``."""
        part = self._part_by_number.get(self._block_at(offset)) if self._parts else None
        inner = part.read.snippet.inner_offset(offset) if part else None
        return part.read.document.enclosing(inner) if part and inner is not None else ""

    @cached_property
    def _part_by_number(self) -> Mapping[int, _Part]:
        return {part.number: part for part in self._parts}

    def value_beside(self, index: int, section: Sequence[str], keys: Sequence[str], /) -> object:
        """Return a value of the configuration that a site belongs to; see ``sites.Document``."""
        if index >= len(self.sites):
            return Missing.UNKNOWN
        part, inner = self._part_of(index)
        value = part.read.document.value_beside(inner, section, keys)
        return Missing.UNKNOWN if value is Missing.ABSENT else value

    def risk(self, index: int, /) -> str:
        """Return why the fix of a site is not safe; see ``sites.Document``."""
        if index < 0 or index >= len(self.sites):
            return ""
        part, inner = self._part_of(index)
        return part.read.risk(inner)

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as it would be written at a site; see ``sites.Document``."""
        part, inner = self._part_of(site)
        return part.read.document.spelled(inner, name, value)

    # --- writing ------------------------------------------------------------------------------------

    def _by_part(self, rewrites: Mapping[int, Settings]) -> Iterator[tuple[_Part, dict[int, Settings]]]:
        """Yield the parts with a rewrite, each with its own rewrites."""
        by_number: defaultdict[int, dict[int, Settings]] = defaultdict(dict)
        for index, settings in sorted(rewrites.items()):
            part, inner = self._part_of(index)
            by_number[part.number][inner] = settings
        for number, own in by_number.items():
            yield self._part_by_number[number], own

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that make the rewrites; see ``sites.Document``."""
        result = []
        for part, inner in self._by_part(rewrites):
            try:
                result += [part.read.snippet.edit(edit) for edit in part.read.document.edits(inner)]
            except CannotMapError as error:
                raise CannotEditError(part.first_site + min(inner), str(error)) from error
            except CannotEditError as error:
                raise CannotEditError(part.first_site + error.site, str(error)) from error
        return result

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        if any(not own and self.sites[index].programs is None for index, own in rewrites.items()):
            return "an example would set nothing any more"
        languages = {part.number: part.read.language for part in self._parts}
        again = self._again = type(self)(edited, self.path, self.catalogue, languages=languages)
        after = again._blocks
        if [block.language for block in after] != [block.language for block in self._blocks]:
            return "the page would have other code blocks"
        expected = dict[int, str]()
        for part, inner in self._by_part(rewrites):
            document = part.read.document
            text = apply(document.text, document.edits(inner))
            if reason := document.check(text, inner):
                return reason
            expected[part.number] = text
        for number, (one, other) in enumerate(zip(self._blocks, after, strict=True)):
            if number in expected:
                snippet = other.snippet(edited)
                if snippet is None or not _is_same_code(snippet.text, expected[number]):
                    return "a code block would be read differently"
            elif _code(one, self.text) != _code(other, edited):
                return "another code block would change"
        is_same = _around(self._blocks, self.text) == _around(after, edited)
        return "" if is_same else "the text around the code blocks would change"

    @property
    def edited(self) -> PageDocument | None:
        """The document of the text that was checked last; see ``sites.Document``."""
        return self._again

    def quotes(self, rewrites: Mapping[int, Settings]) -> dict[int, Mapping[str, str]]:
        """Return the settings of rewritten sites as the text that was checked last has them."""
        return {
            part.first_site + index: quoted
            for part, inner in self._by_part(rewrites)
            for index, quoted in part.read.document.quotes(inner).items()
        }


def _code(block: CodeBlock, text: str) -> list[str]:
    return [text[one.first : one.after] for one in block.lines]


def _around(blocks: Sequence[CodeBlock], text: str) -> list[str]:
    """Return the texts between the code blocks."""
    result, end = [], 0
    for block in blocks:
        result.append(text[end : block.span.start])
        end = block.span.end
    return [*result, text[end:]]


def _is_same_code(one: str, other: str) -> bool:
    """Return whether two texts are the same apart from the indentation that all lines of each have."""
    from textwrap import dedent

    return dedent(one) == dedent(other)

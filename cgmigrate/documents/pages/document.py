"""A page of documentation: its code blocks are documents of their own syntaxes, all else is text for people.

A fix of a page is about one block of code. A block is an example, and no whole configuration: what it does not set may
be set elsewhere. The code around it is not known either, so what reads a setting in it is a note.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from cgmigrate.documents import sites
from cgmigrate.documents.command_line_advice import by_hand
from cgmigrate.documents.comments import CommentForm
from cgmigrate.documents.nesting import NestingDocument, ReadPart
from cgmigrate.documents.pages.blocks import CodeBlock
from cgmigrate.documents.pages.outline import Outline
from cgmigrate.documents.pages.readers import BlockPart, ReadBlock, read_block
from cgmigrate.documents.sites import HISTORY, Document, Example, Problem, ProblemKind, Role, Site, Use
from cgmigrate.documents.unread import UnreadDocument
from cgmigrate.documents.uses import Appearance, appearances_in
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import ENABLE, Settings
from cgmigrate.text.spans import Span

_IMPORT = re.compile(r"^[ \t]*(?:>>> )?(?:from|import)[ \t]+(?P<module>[\w.]+)", re.MULTILINE)
_COMMENT = re.compile(r"<!--(?:(?!-->).)*-->")
_MEGATRON = re.compile(r"megatron|nemo", re.IGNORECASE)
NO_LANGUAGES: Mapping[int, str] = {}
_SUFFIX = re.compile(r"\.(?:json|jsonl|ya?ml|txt|bin|model|py)\b")
_FILE = "a file"
_HARNESS = "a program with options of its own, spelled with underscores"


class Prose(UnreadDocument):
    """A page without the code blocks that are read; these are in ``read``, by number.

    ``keeps_all`` says that the page documents the past, and that its names stay as they are. ``languages`` are those
    of code blocks that are read in any case, by number: those of a page that was edited.
    """

    comment_form = CommentForm("<!--", "-->", inside="#")

    def __init__(self, page: PageDocument, languages: Mapping[int, str], *, keeps_all: bool) -> None:
        Document.__init__(self, page.text, page.path, page.catalogue)
        self.mentions: list[tuple[Use, str]] = []
        self.blocks: list[CodeBlock] = []
        self.read: dict[int, ReadBlock] = {}
        deprecated = self.catalogue.deprecated
        self._names = [one for one in appearances_in(self.text, self.catalogue) if one.setting in deprecated]
        if keeps_all:
            self.mentions = [(one.use(Role.MENTION), HISTORY) for one in self._names]
        elif self._names or languages:
            self.blocks = page.blocks_of(self.text)
            self._read(languages)
        self.skipped = self.mentions

    def _read(self, languages: Mapping[int, str]) -> None:
        self._starts = [block.span.start for block in self.blocks]
        self._outline = Outline(self.text, (block.span for block in self.blocks), self.catalogue)
        by_block: dict[int, list[Appearance]] = {number: [] for number in languages if number < len(self.blocks)}
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
        return at if at >= 0 and offset < self.blocks[at].span.end else -1

    def _read_block(self, number: int, names: Sequence[Appearance], language: str) -> None:
        block = self.blocks[number]
        code = self.text[block.span.start : block.span.end]
        is_former = self._outline.shows_former(block.span) or self._outline.names_both(code)
        if block.language == "diff" or (is_former and not language):
            self.mentions += [(one.use(Role.MENTION), HISTORY) for one in names]
            return
        read, why = read_block(block, self.text, self.catalogue, language)
        if read is None:
            for name in names:
                self._read_mention(name, why)
            return
        output = [name for name in names if read.code.position(name.span.start) is None]
        for name in output:
            self._read_mention(name, "it is output of a command")
        self.read[number] = replace(read, output_has_names=bool(output))

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """The modules that a code block in Python imports: the next one uses them."""
        spans = [block.span for block in self.blocks if block.language == "python"]
        imports = (match for span in spans for match in _IMPORT.finditer(self.text, span.start, span.end))
        return tuple(dict.fromkeys(match["module"] for match in imports))

    def _read_mention(self, name: Appearance, why: str) -> None:
        """Record a name that is no setting of a block: ``why`` says why its block is not read."""
        is_harness = name.key.startswith("--") and "_" in name.key
        is_common = name.setting == ENABLE and not self._is_about_megatron
        if _SUFFIX.match(self.text, name.span.end):
            self.mentions.append((name.use(Role.MENTION), _FILE))
        elif is_harness or is_common:
            self.mentions.append((name.use(Role.MENTION), _HARNESS if is_harness else sites.UNKNOWN_OWNER))
        elif not why and self._outline.keeps(name):
            self.mentions.append((name.use(Role.MENTION), HISTORY))
        else:
            since = self.catalogue[name.setting].deprecated_in
            message = f"`{name.key}` is deprecated{f' since megatron-core {since}' if since else ''}"
            message += f"; the code block is not read: {why}" if why else ""
            known = by_hand(name.key, self.catalogue, self.text, name.span.end)
            advice = f"{known}, or leave it where the text is about an older release or another name" if known else ""
            self.problems.append(Problem(ProblemKind.NAME_IN_DOCUMENTATION, name.span, message, advice=advice))

    @cached_property
    def _is_about_megatron(self) -> bool:
        return bool(_MEGATRON.search(self.text)) or any(name.setting != ENABLE for name in self._names)

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        spans = [Span(*match.span()) for match in _COMMENT.finditer(self.text)]
        return [span for span in spans if not self.blocks or self._block_at(span.start) < 0], []


class PageDocument(NestingDocument):
    """A page of documentation; see ``sites.Document`` and ``Prose``."""

    variable_at = Document.variable_at

    def __init__(
        self,
        text: str,
        path: str = "",
        catalogue: Catalogue | None = None,
        *,
        keeps_all: bool = False,
        languages: Mapping[int, str] = NO_LANGUAGES,
    ) -> None:
        Document.__init__(self, text, path, catalogue)
        self._prose = Prose(self, languages, keeps_all=keeps_all)
        blocks, read = self._prose.blocks, self._prose.read.items()
        parts = [(BlockPart.of(number, one, blocks[number]), one.document) for number, one in read]
        super().__init__(self._prose, parts, self._read_again)

    @staticmethod
    def blocks_of(text: str) -> list[CodeBlock]:
        """Return the code blocks of a text."""
        raise NotImplementedError

    def _read_again(self, edited: str, _numbers: Collection[int]) -> PageDocument:
        languages = {number: one.language for number, one in self._prose.read.items()}
        return type(self)(edited, self.path, self.catalogue, languages=languages)

    def _site(self, site: Site, one: ReadPart) -> Site:
        """Return a site of a block as one of the page."""
        origin = site.origin
        if origin is not None and not origin.imports:
            origin = replace(origin, imports=self._prose.modules)
        return replace(
            super()._site(site, one),
            blocked_by=site.blocked_by or self._prose.read[one.part.number].blocked_by(site),
            inside=site.inside,
            commands=site.commands,
            origin=origin,
            # An example of a file is a part of one; that of a command is a whole command.
            overrides=site.overrides or (site.origin is None and site.programs is None),
            example=Example(one.part.number, tuple(one.document.top_level)),
        )

    def risk(self, index: int, /) -> str:
        """Return why the fix of a site is not safe; see ``sites.Document``."""
        one = self._part_of(index)
        return self._prose.read[one.part.number].risk(index - one.first_site) if one else ""

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        if any(not own and self.sites[index].programs is None for index, own in rewrites.items()):
            return "an example would set nothing any more"
        return super().check(edited, rewrites)

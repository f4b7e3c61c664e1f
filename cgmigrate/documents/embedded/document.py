"""A file whose instructions are shell code: a Dockerfile or a makefile.

It is read as the shell script that its instructions amount to: a document in that syntax, whose spans and edits are
mapped to those of the file. What is no shell code is not rewritten; a deprecated flag in it is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from cgmigrate.documents.code import CannotMapError
from cgmigrate.documents.command_line_advice import by_hand, override_start, pattern_in_text
from cgmigrate.documents.comments import Comment, CommentForm
from cgmigrate.documents.embedded.layout import Layout
from cgmigrate.documents.overrides import without_shell_quotes
from cgmigrate.documents.shell.document import HARNESS, NOT_READ, OWN_OPTION, SEARCHED, ShellDocument
from cgmigrate.documents.sites import PROSE, CannotEditError, Problem, ProblemKind, Role, Site, Use
from cgmigrate.documents.text_document import TextDocument
from cgmigrate.documents.uses import Appearance, appearances_in
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Missing, Settings
from cgmigrate.text.edits import Edit, apply
from cgmigrate.text.spans import Span

_UNPARSED = "the grammar of the shell does not cover the file"
_TEMPLATE = re.compile(r"\{%|<%")
_IS_TEMPLATE = "the file is a template, which is rendered before it is read"
_ELSEWHERE = "an instruction that does not run a command"


class _Script(ShellDocument):
    """The script that the commands of a file are; whoever builds it may give its variables other values."""

    shows_values = False


class EmbeddedDocument(TextDocument):
    """A file with instructions; see ``sites.Document``. Without a catalogue, the settings are those that ship."""

    comment_form = CommentForm()

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        super().__init__(text, path, catalogue)
        self._again: EmbeddedDocument | None = None
        names = [one for one in appearances_in(text, self.catalogue) if one.setting in self.catalogue.name_set]
        self._layout = _layout(type(self).layout_of, text, tuple(one.span.start for one in names))
        self._script = self._layout.script
        self._word_starts = frozenset(word.start for word in self._layout.words)
        self._shell = _Script(self._script.text, "", self.catalogue)
        self.sites = [self._site(site) for site in self._shell.sites]
        self.problems = [self._problem(problem) for problem in self._shell.problems]
        self.skipped: list[tuple[Use, str]] = [(self._use(use), owner) for use, owner in self._shell.skipped]
        for name in names:
            if self._script.position(name.span.start) is None:
                self._read_other(name)

    # --- reading ------------------------------------------------------------------------------------

    @staticmethod
    def layout_of(text: str, names: Collection[int]) -> Layout:
        """Return the layout of a text; ``names`` is where names of settings begin."""
        raise NotImplementedError

    def _site(self, site: Site) -> Site:
        """Return a site of the script as one of the file."""
        written = tuple(self._use(use) for use in site.written)
        return replace(
            site,
            span=Span(min(use.span.start for use in written), max(use.span.end for use in written)),
            written=written,
            blocked_by=self._blocked_by(site),
        )

    def _blocked_by(self, site: Site) -> str:
        if self._shell.is_broken:
            return _UNPARSED
        if _TEMPLATE.search(self.text):
            return _IS_TEMPLATE
        variables = sorted(self._shell.variables_of(site.index))
        reasons = [self._layout.blocked[name] for name in variables if name in self._layout.blocked]
        starts = [self._use(use).span.start for use in site.written]
        spans = self._layout.blocked_spans
        reasons += [why for span, why in spans if any(span.start <= start < span.end for start in starts)]
        return next(iter(reasons), site.blocked_by)

    def _use(self, use: Use) -> Use:
        span = self._script.span(use.span)
        if span.start in self._word_starts:
            # A string of an array is shown with its quotes.
            span = Span(span.start - 1, span.end + 1)
        return replace(use, span=span)

    def _problem(self, problem: Problem) -> Problem:
        return replace(problem, span=self._script.span(problem.span))

    def _read_other(self, name: Appearance) -> None:
        """Note a name that is not in the script."""
        start = name.span.start
        match = pattern_in_text(self.catalogue).match(self.text, override_start(self.text, start))
        if any(span.start <= start < span.end for span in self._layout.comments):
            self.skipped.append((name.use(Role.MENTION), PROSE))
        elif match is None:
            is_flag = name.key.startswith("--")
            owner = (HARNESS if "_" in name.key else NOT_READ) if is_flag else OWN_OPTION
            self.skipped.append((name.use(Role.WRITE), owner))
        else:
            unread = (one.what for one in self._layout.unread if one.span.start <= start < one.span.end)
            written = match.group().lstrip("+~").rstrip("=")
            message = f"`{written}` is part of {next(unread, _ELSEWHERE)}, which is not rewritten"
            advice = by_hand(written, self.catalogue)
            self.problems.append(Problem(ProblemKind.COMMAND_LINE_IN_VALUE, name.span, message, advice=advice))

    @property
    def uses(self) -> Sequence[Use]:
        """Every appearance of a setting; see ``sites.Document``."""
        inside = [self._use(use) for use in self._shell.uses]
        known = {use.span.start for use in inside}
        others = [
            Use(self.catalogue.by_key[key], key, None, problem.span)
            for problem in self.problems
            if problem.span.start not in known
            for key in [self.text[problem.span.start : problem.span.end]]
        ]
        skipped = [use for use, _ in self.skipped if use.span.start not in known]
        return sorted([*inside, *others, *skipped], key=lambda use: use.span.start)

    def comments(self) -> Sequence[Comment]:
        """Return the comments of the file and of the code in it; see ``comments.Commented``."""
        inside = [replace(one, span=self._script.span(one.span)) for one in self._shell.comments()]
        own = [
            Comment(self.text[span.start : span.end], span, self._is_alone(span.start))
            for span in self._layout.comments
        ]
        return sorted([*own, *inside], key=lambda comment: comment.span.start)

    def _is_alone(self, offset: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, offset) + 1 : offset].strip()

    def joined_lines(self) -> Sequence[Span]:
        """Return the instructions of several lines; see ``comments.Commented``."""
        return self._layout.joined

    def enclosing(self, offset: int, /) -> str:
        """Return the name of the part of the file that an offset is in; see ``sites.Document``."""
        return next((name for span, name in self._layout.places if span.start <= offset < span.end), "")

    def value_beside(self, index: int, section: Sequence[str], keys: Sequence[str], /) -> object:
        """Return the value of another flag of the command line; see ``sites.Document``."""
        return self._shell.value_beside(index, section, keys)

    def variable_at(self, offset: int, name: str, /) -> object:
        """Return the value of a variable of the environment of a command; see ``sites.Document``."""
        # A string of an array begins with its quote.
        places = (self._script.position(at) for at in (offset, offset + 1))
        inner = next((place for place in places if place is not None), None)
        return Missing.UNKNOWN if inner is None else self._shell.variable_at(inner, name)

    def risk(self, index: int, /) -> str:
        """Return why a fix is not safe; see ``sites.Document``."""
        reason = self._shell.risk(index)
        if not reason or self._shell.is_override(index):
            return reason
        read = next(problem for problem in self.problems if problem.kind is ProblemKind.READ)
        return SEARCHED.format(line=self.text.count("\n", 0, read.span.start) + 1)

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as a flag; see ``sites.Document``."""
        return self._shell.spelled(site, name, value)

    # --- writing ------------------------------------------------------------------------------------

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that make the rewrites; see ``sites.Document``."""
        try:
            return [self._edit(edit) for edit in self._shell.edits(rewrites)]
        except CannotMapError as error:
            raise CannotEditError(min(rewrites), str(error)) from error

    def _edit(self, edit: Edit) -> Edit:
        span = self._script.replaced(edit.start, edit.end)
        return Edit(span.start, span.end, self._written(edit, span.start))

    def _written(self, edit: Edit, offset: int) -> str:
        """Return new code as the file writes it at an offset. Raises CannotMapError."""
        word = next((word for word in self._layout.words if word.start <= offset <= word.end), None)
        if word is None:
            line_break = "\r\n" if "\r\n" in self.text else "\n"
            return edit.text.replace("\\\n", f"{self._layout.escape}\n").replace("\n", line_break)
        is_inside = self._is_quoted(word) and not self._is_quote(edit.start - 1)
        text = edit.text if is_inside else without_shell_quotes(edit.text)
        if not set(text).isdisjoint("\"'\\\n"):
            raise CannotMapError("the change has quotes, which an array of strings writes otherwise")
        return text if is_inside else text.replace(" ", '", "')

    def _is_quoted(self, word: Span) -> bool:
        """Return whether a string of an array has quotes in the script."""
        first = self._script.position(word.start)
        return first is not None and first > 0 and self._is_quote(first - 1)

    def _is_quote(self, at: int) -> bool:
        """Return whether a character of the script is a quote that the file does not have."""
        return self._script.text[at] == "'" and self._script.is_added(at)

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        again = self._again = type(self)(edited, self.path, self.catalogue)
        script = apply(self._script.text, self._shell.edits(rewrites))
        if reason := self._shell.check(script, rewrites):
            return reason
        if again._script.text != script and not self._is_same(again._script.text, script, rewrites):
            return "the instructions would be read differently"
        if len(again.problems) != len(self.problems) or len(again._layout.unread) != len(self._layout.unread):
            return "other instructions would be read differently"
        return ""

    def _is_same(self, text: str, expected: str, rewrites: Mapping[int, Settings]) -> bool:
        """Return whether the script of an edited file, which is not the expected text, is the same for a shell.

        A text without rewrites has other comments. In an array, a new word has other quotes.
        """
        is_similar = not rewrites or without_shell_quotes(text) == without_shell_quotes(expected)
        return is_similar and not self._shell.check(text, rewrites)

    @property
    def edited(self) -> EmbeddedDocument | None:
        """The document of the text that was checked last; see ``sites.Document``."""
        return self._again


@lru_cache(maxsize=16)
def _layout(layout_of: Callable[[str, Collection[int]], Layout], text: str, names: tuple[int, ...]) -> Layout:
    """Return the layout of a text, which is read several times: before a fix, and for each check of one."""
    return layout_of(text, names)

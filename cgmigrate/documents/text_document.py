"""What the documents of all syntaxes have in common: their comments, and quotes of the text that was checked last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from cgmigrate.documents.comments import Comment, CommentForm, comments_at, lines_of_comments
from cgmigrate.documents.sites import UNREADABLE, CannotEditError, Document, Problem, Site, Use
from cgmigrate.megatron.catalogue import Catalogue, load
from cgmigrate.megatron.settings import Missing, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span


class TextDocument:
    """A document whose comments are known from its text; see ``sites.Document``."""

    comment_form = CommentForm()
    skipped: Sequence[tuple[Use, str]]
    _again: Document | None
    """The edited text that was checked last, read again."""

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        self.text, self.path = text, path
        self.catalogue = catalogue or load()
        self.sites: list[Site] = []
        self.problems: list[Problem] = []
        self.top_level: list[str] = []
        self.builds_on = ""
        self._again = None

    @property
    def edited(self) -> Document | None:
        """The document of the text that was checked last; see ``sites.Document``."""
        return self._again

    @property
    def uses(self) -> Sequence[Use]:
        """None: only Python code has uses; see ``sites.Document``."""
        return ()

    def comments(self) -> Sequence[Comment]:
        """Return the comments; see ``comments.Commented``."""
        return comments_at(self.text, self._comments[0])

    def variable_at(self, _offset: int, _name: str, /) -> object:
        """Return that the value of a variable of the environment is not known; see ``sites.Document``."""
        return Missing.UNKNOWN

    def enclosing(self, _offset: int, /) -> str:
        """Return nothing: a syntax without functions; see ``sites.Document``."""
        return ""

    def risk(self, _index: int, /) -> str:
        """Return nothing: no other code sees the objects of the file; see ``sites.Document``."""
        return ""

    def joined_lines(self) -> Sequence[Span]:
        """Return the parts of several lines that no comment can be in; see ``comments.Commented``."""
        return self._comments[1]

    @cached_property
    def _comments(self) -> tuple[list[Span], list[Span]]:
        """The spans of comments, and of the parts of several lines that no comment can be in."""
        if any(problem.kind in UNREADABLE for problem in self.problems):
            return lines_of_comments(self.text, self.comment_form), []
        return self._read_comments()

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        """Return what `_comments` has, for a text that can be read."""
        raise NotImplementedError

    def _in_order(self, edits: list[Edit], rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return edits in the order of the text. Raises CannotEditError if two of them overlap."""
        edits.sort(key=attrgetter("start", "end"))
        if any(one.end > other.start for one, other in pairwise(edits)):
            raise CannotEditError(min(rewrites), "two changes replace the same text")
        return edits

    def quotes(self, rewrites: Mapping[int, Settings]) -> Quotes:
        """Return the settings as the text that was checked last has them; see ``sites.Document``."""

        return quotes_of(self.sites, self._again, rewrites) if self._again else {}


Quotes = Mapping[int, Mapping[str, str]]
"""Index of a site → field → the text of that setting."""


def quotes_of(sites: Sequence[Site], after: Document, edited: Mapping[int, Settings]) -> dict[int, dict[str, str]]:
    """Return the text of each setting of the edited ones among some sites, as ``after`` has it.

    A site that loses all its settings is no site afterwards, so sites are paired by their paths, in order.
    """
    after_by_path = _by_path(site for site in after.sites if site.own)
    result: dict[int, dict[str, str]] = {}
    for path, alike in _by_path(site for site in sites if edited.get(site.index, site.own)).items():
        for site, counterpart in zip(alike, after_by_path[path], strict=False):
            own = edited.get(site.index)
            if own is not None and own.keys() == counterpart.own.keys():
                written = counterpart.written
                result[site.index] = {one.setting: after.text[one.span.start : one.span.end] for one in written}
    return result


def _by_path(sites: Iterable[Site]) -> defaultdict[tuple[str, ...], list[Site]]:
    result: defaultdict[tuple[str, ...], list[Site]] = defaultdict(list)
    for site in sites:
        result[site.path].append(site)
    return result

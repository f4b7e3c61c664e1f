"""A notebook without its code: JSON with cells of text, metadata and outputs, which stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cgmigrate.documents.comments import Comment, CommentForm
from cgmigrate.documents.notebook.cells import Cell, code_cells
from cgmigrate.documents.sites import PROSE, Problem, ProblemKind, Role, Use
from cgmigrate.documents.text_document import TextDocument
from cgmigrate.documents.uses import Appearance, appearances_in
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Missing, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_NO_NOTEBOOK = "a file that is no notebook in Python"
_UNREAD = "`{key}` is in a cell that is not read: it is neither Python nor a command of a shell"
_UNREAD_LINE = "`{key}` is in a line for IPython, which is not read"


class NotebookDocument(TextDocument):
    """The outputs, texts and metadata of a notebook; see ``sites.Document``."""

    comment_form = CommentForm()

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        super().__init__(text, path, catalogue)
        self.skipped: list[tuple[Use, str]] = []
        self._again: NotebookDocument | None = None
        cells = code_cells(text)
        self.cells: list[Cell] = cells or []
        self.names: list[int] = []
        """Where names of settings begin in code cells."""
        for name in appearances_in(text, self.catalogue):
            if name.setting in self.catalogue.name_set:
                self._read(name, PROSE if cells is not None else _NO_NOTEBOOK)

    def _read(self, name: Appearance, owner: str) -> None:
        cell = next((one for one in self.cells if one.span.start <= name.span.start < one.span.end), None)
        if cell is None:
            self.skipped.append((name.use(Role.MENTION), owner))
            return
        self.names.append(name.span.start)
        if not cell.reads(name.span.start) and name.setting in self.catalogue.deprecated:
            is_whole = cell.python is None and not cell.commands
            message = (_UNREAD if is_whole else _UNREAD_LINE).format(key=name.key)
            self.problems.append(Problem(ProblemKind.NAME_IN_TEXT, name.span, message))

    @property
    def uses(self) -> Sequence[Use]:
        """Every appearance of a setting; see ``sites.Document``."""
        others = [
            Use(self.catalogue.by_key[key], key, None, problem.span, Role.MENTION)
            for problem in self.problems
            for key in [self.text[problem.span.start : problem.span.end]]
        ]
        return sorted([*others, *(use for use, _ in self.skipped)], key=lambda use: use.span.start)

    def comments(self) -> Sequence[Comment]:
        """Return no comments: JSON has none; see ``comments.Commented``."""
        return ()

    def joined_lines(self) -> Sequence[Span]:
        """Return the whole file; see ``comments.Commented``."""
        return [Span(0, len(self.text))]

    def enclosing(self, _offset: int, /) -> str:
        """Return nothing: there is no function around a cell; see ``sites.Document``."""
        return ""

    def value_beside(self, _index: int, _section: Sequence[str], _keys: Sequence[str], /) -> object:
        """Return nothing: the file around the cells sets nothing; see ``sites.Document``."""
        return Missing.UNKNOWN

    def risk(self, _index: int, /) -> str:
        """Return nothing: there are no sites; see ``sites.Document``."""
        return ""

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as a dictionary has it; see ``sites.Document``."""
        assert site >= len(self.sites), "it has no sites"
        return f'"{name}": {value}'

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return no edits: there are no sites; see ``sites.Document``."""
        assert not rewrites, "it has no sites"
        return []

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Return how an edited text differs outside of the code cells, empty when it does not."""
        self._again = NotebookDocument(edited, self.path, self.catalogue)
        return "" if edited == self.text and not rewrites else "more than the code of the notebook would change"

    @property
    def edited(self) -> NotebookDocument | None:
        """The document of the text that was checked last; see ``sites.Document``."""
        return self._again

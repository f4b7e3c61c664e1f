"""A JSON file: the command lines in its values are parts, as they are in YAML; all other text stays.

Such are the `args` of a debugger's launch file, of a Kubernetes or Ray job, and of tasks of an editor.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from cgmigrate.documents.command_line_advice import by_hand
from cgmigrate.documents.comments import Comment, CommentForm
from cgmigrate.documents.json.tree import json_roots
from cgmigrate.documents.nesting import Part
from cgmigrate.documents.sites import Problem, ProblemKind, Role, Use
from cgmigrate.documents.text_document import TextDocument
from cgmigrate.documents.uses import Appearance, appearances_in
from cgmigrate.documents.yaml.parts import parts_in
from cgmigrate.documents.yaml.tree import Node, closing_order
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Missing, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_NO_COMMAND_LINE = "a text of a JSON file, in which only command lines are read"
_KEY = "`{name}` is a key of an object, which is not read as a command line, so it is not rewritten"
_UNREAD = "`{name}` is part of a value that is not read as a command line, so it is not rewritten"


class JsonDocument(TextDocument):
    """The keys and values of a JSON file; see ``sites.Document``."""

    comment_form = CommentForm("//")

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        super().__init__(text, path, catalogue)
        self.skipped: list[tuple[Use, str]] = []
        self._again: JsonDocument | None = None
        names = [name for name in appearances_in(text, self.catalogue) if name.setting in self.catalogue.name_set]
        has_keys = _keys(self.catalogue).search(text) is not None
        self.roots: list[Node] = json_roots(text) if has_keys or any(map(self._is_argument, names)) else []
        self._words = {one.start + 1: one for node in closing_order(self.roots) for one in node.items}
        for name in names:
            self._read(name)
        self._read_keys()

    def _is_argument(self, name: Appearance) -> bool:
        """Return whether a name is a flag, or that of an override."""
        before = self.text[max(0, name.span.start - 1) : name.span.start]
        return name.key.startswith("--") or (before == "." and self.text.startswith("=", name.span.end))

    def _read(self, name: Appearance) -> None:
        """Note a name: a string that begins with a deprecated flag is a word of a command line, others are text."""
        node = self._words.get(name.span.start)
        is_word = node is not None and node.kind == "scalar" and name.key.startswith("--") and "_" not in name.key
        if is_word and name.setting in self.catalogue.deprecated:
            message, advice = _UNREAD.format(name=name.key), by_hand(name.key, self.catalogue)
            self.problems.append(Problem(ProblemKind.COMMAND_LINE_IN_VALUE, name.span, message, advice=advice))
        elif self._is_argument(name):
            # A note of the run names the keys.
            self.skipped.append((name.use(Role.MENTION), _NO_COMMAND_LINE))

    def _read_keys(self) -> None:
        """Report the keys that are flags without their dashes, which a launcher adds.

        With hyphens, they are Megatron-LM's only.
        """
        for match in _keys(self.catalogue).finditer(self.text):
            flag = f"--{match['flag']}"
            if match.start("flag") in self._words:
                message, advice = _KEY.format(name=match["flag"]), by_hand(flag, self.catalogue)
                span = Span(*match.span("flag"))
                self.problems.append(Problem(ProblemKind.COMMAND_LINE_IN_VALUE, span, message, advice=advice))

    @property
    def uses(self) -> Sequence[Use]:
        """Every appearance of a setting; see ``sites.Document``."""
        keys = [(self.text[one.span.start : one.span.end], one.span) for one in self.problems]
        others = [Use(self.catalogue.by_key[f"--{key.lstrip('-')}"], key, None, span) for key, span in keys]
        return sorted([*others, *(use for use, _ in self.skipped)], key=lambda use: use.span.start)

    def comments(self) -> Sequence[Comment]:
        """Return no comments: most readers of JSON know none; see ``comments.Commented``."""
        return ()

    def joined_lines(self) -> Sequence[Span]:
        """Return the whole file; see ``comments.Commented``."""
        return [Span(0, len(self.text))]

    def enclosing(self, _offset: int, /) -> str:
        """Return nothing: there are no functions; see ``sites.Document``."""
        return ""

    def value_beside(self, _index: int, _section: Sequence[str], _keys: Sequence[str], /) -> object:
        """Return nothing: the file around the command lines has no sites; see ``sites.Document``."""
        return Missing.UNKNOWN

    def variable_at(self, offset: int, name: str, /) -> object:
        """Return the value of a variable of the environment; see ``sites.Document``."""
        from cgmigrate.documents.yaml.environment import variable_at

        return variable_at(self.roots, offset, name)

    def risk(self, _index: int, /) -> str:
        """Return nothing: there are no sites; see ``sites.Document``."""
        return ""

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as an object has it; see ``sites.Document``."""
        assert site >= len(self.sites), "it has no sites"
        return f'"{name}": {value}'

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return no edits: there are no sites; see ``sites.Document``."""
        assert not rewrites, "it has no sites"
        return []

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Return how an edited text differs outside of the command lines, empty when it does not."""
        self._again = JsonDocument(edited, self.path, self.catalogue)
        return "" if edited == self.text and not rewrites else "more than the command lines of the file would change"

    @property
    def edited(self) -> JsonDocument | None:
        """The document of the text that was checked last; see ``sites.Document``."""
        return self._again


@lru_cache(maxsize=8)
def _keys(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of keys that are deprecated flags without their dashes."""
    flags = [flag.removeprefix("--") for name in catalogue.deprecated if (flag := catalogue[name].flag)]
    either = "|".join(map(re.escape, sorted((one for one in flags if "-" in one), key=len, reverse=True)))
    return re.compile(rf'"(?P<flag>{either})"[ \t\r\n]*:')


def parts_of(document: JsonDocument, numbers: Collection[int] | None) -> list[Part]:
    """Return the command lines in values: those with some numbers, or those with flags of settings."""
    return parts_in(document.roots, document.text, document.catalogue, numbers)

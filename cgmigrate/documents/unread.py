"""Text of kinds that are not read: it is searched for what looks like a deprecated setting, and never rewritten."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from cgmigrate.documents.command_line_advice import by_hand, instead_of_key
from cgmigrate.documents.comments import CommentForm
from cgmigrate.documents.sites import Document, Problem, ProblemKind
from cgmigrate.megatron.catalogue import FLAG_BEGINS, Catalogue
from cgmigrate.megatron.settings import ENABLE
from cgmigrate.text.spans import Span

_MESSAGE = "sets `{key}`; cgmigrate does not read this kind of file"
_PROSE = (".txt", ".text")
"""Files for people as often as for programs: only a line that begins with a flag is a setting."""
_NOTEBOOK = ".ipynb"
_CELLS = frozenset(("code", "markdown", "raw"))
_COMMENT = re.compile(r'\A"?(?:;|\*|<!--|--\s)|(?:\A|[\s"])(?:#|//)')
"""Begins a comment, in a line without its indentation or in one of a notebook."""
_LONGEST = 4096
"""Characters of a line before a name that are read."""
_SUPPRESSES = re.compile(r"(?:#|//)[^\n\r]*cgmigrate:[^\n\r]*")
_MEGATRON = re.compile(r"megatron|nemo|(?:model|transformer_config)\w*\.enable_cuda_graph", re.IGNORECASE)
"""Shows that `enable_cuda_graph`, which other systems have, too, is Megatron's."""


class UnreadDocument(Document):
    """A text of another kind, without sites; see ``sites.Document``."""

    comment_form = CommentForm()

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        super().__init__(text, path, catalogue)
        self.skipped = ()
        for key, span in settings_in(text, path, self.catalogue):
            setting = self.catalogue.by_key[key]
            is_flag = key.startswith("--")
            advice = (
                by_hand(key, self.catalogue, text, span.end) if is_flag else instead_of_key(setting, self.catalogue)
            )
            message, settings = _MESSAGE.format(key=key), frozenset((setting,))
            self.problems.append(Problem(ProblemKind.UNREAD_KIND, span, message, advice=advice, settings=settings))

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        return [Span(*match.span()) for match in _SUPPRESSES.finditer(self.text)], []


def settings_in(text: str, path: str, catalogue: Catalogue) -> list[tuple[str, Span]]:
    """Return the deprecated settings that a text seems to set: the first place of each spelling.

    These are `NAME =`, `NAME:`, `"NAME":` and flags, outside of comments and, in a notebook, in cells of code.
    """
    places: dict[str, Span] = {}
    code = code_in_notebook(text) if path.endswith(_NOTEBOOK) else None
    only_flags = path.endswith(_PROSE)
    for match in _pattern(catalogue).finditer(text):
        start, key = match.start(), match["flag"] or match["name"]
        line = re.split(r"\n|\\n", text[max(start - _LONGEST, 0) : start])[-1].lstrip()
        is_set = not (line or match["name"]) if only_flags else not _COMMENT.search(line)
        if is_set and key not in places and (code is None or any(span.start <= start < span.end for span in code)):
            places[key] = Span(*match.span("flag" if match["flag"] else "name"))
    if ENABLE in places and len(places) == 1 and not _MEGATRON.search(text):
        return []
    return list(places.items())


def code_in_notebook(text: str) -> list[Span] | None:
    """Return where a notebook has the lines of its cells of code, None for a text that is no notebook.

    What is said in other cells runs nothing, and outputs are results.
    """
    try:
        sources = list(_code_in(json.loads(text)))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    spans: list[Span] = []
    end = 0
    for source in sources:
        for written in (json.dumps(source)[1:-1], json.dumps(source, ensure_ascii=False)[1:-1]):
            if (start := text.find(written, end)) >= 0:
                end = start + len(written)
                spans.append(Span(start, end))
                break
    return spans


def _code_in(notebook: Mapping[str, Any]) -> Iterator[str]:
    """Yield the strings of the cells of code. Raises ValueError, KeyError and TypeError for what is no notebook."""
    cells = notebook["cells"]
    if not cells or notebook.keys() & {"worksheets"} or not {one["cell_type"] for one in cells} <= _CELLS:
        raise ValueError("these are no cells")
    for one in cells:
        if one["cell_type"] == "code":
            source = one["source"]
            if not isinstance(source, (str, list)) or "input" in one:
                raise TypeError("this is no cell")
            yield from [source] if isinstance(source, str) else source


@lru_cache(maxsize=8)
def _pattern(catalogue: Catalogue) -> re.Pattern[str]:
    names, flags = catalogue.alternatives(deprecated=True), catalogue.alternatives(deprecated=True, flags=True)
    return re.compile(
        rf"{FLAG_BEGINS}(?P<flag>{flags})(?![\w-])"
        rf"|(?<![A-Za-z0-9_-])(?P<name>{names})(?![A-Za-z0-9_-])\\?[\"']?[ \t]*(?:[:?+]?=(?!=)|:(?![:=]))"
    )

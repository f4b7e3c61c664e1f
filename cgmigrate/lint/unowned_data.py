"""Dictionaries of tests with settings of which the file does not show the owner: other code may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.python.modules import is_test
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.linking.python.references import References
    from cgmigrate.linking.python.table_entries import Position, TableEntries
    from cgmigrate.linking.python.words import Words

NO_ENTRIES: Mapping[int, TableEntries] = {}


def unowned_in_test(path: str, file: ExaminedFile) -> list[Site]:
    """Return the sites of a test with deprecated settings of which the file does not show the owner."""
    if not is_test(path):
        return []
    deprecated = file.document.catalogue.deprecated
    return [
        site
        for site, owner in zip(file.sites, file.owners, strict=True)
        if owner.ecosystem is None and site.origin is not None and deprecated & site.own.keys()
    ]


def table_entries(path: str, file: ExaminedFile, references: References, words: Words) -> dict[int, TableEntries]:
    """Return the dictionaries of a test that only set settings on objects, by the sites that they are."""
    from cgmigrate.linking.python.table_entries import TableSearch

    unowned = unowned_in_test(path, file)
    module = references.modules.read(path) if unowned else None
    if module is None:
        return {}
    search = TableSearch(module, references, words.files_with)
    every = {site.index: search.at(_position(file.document, site.span)) for site in unowned}
    return {index: one for index, one in every.items() if one is not None}


def _position(document: Document, span: Span) -> Position:
    """Return where a span begins."""
    text = document.text
    return text.count("\n", 0, span.start) + 1, len(text[text.rfind("\n", 0, span.start) + 1 : span.start].encode())


def lines_of(document: Document, span: Span) -> tuple[int, int]:
    """Return the first and the last line of a span."""
    first = document.text.count("\n", 0, span.start) + 1
    return first, first + document.text.count("\n", span.start, span.end)

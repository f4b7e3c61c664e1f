"""The spans of a document's sites."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.documents.sites import Document
from cgmigrate.text.spans import Span


def spans_of(document: Document, indices: Sequence[int]) -> frozenset[Span]:
    """Where diagnostics about some sites, or problems that can be written, stand."""
    chosen = frozenset(indices)
    sites = [written.span for site in document.sites if site.index in chosen for written in site.written]
    return frozenset([*sites, *(problem.span for problem in document.problems if problem.index in chosen)])

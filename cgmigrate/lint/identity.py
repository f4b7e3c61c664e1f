"""The identity of a diagnostic: its rule, its file and its place, in words that stay when lines move.

The place of a setting is what encloses it and its name: the keys of the mappings around it, or the class and function
and the object. The place of anything else is its text. Of several diagnostics of a rule with the same place, all but
the first have a number. Values, messages and fixes are no part of it: a diagnostic stays the same when they change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from cgmigrate.documents.sites import Document
from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.lint.kinds import UNREADABLE
from cgmigrate.text.spans import Span

_LONGEST = 80
"""Characters of a text that a place quotes."""
_DIGITS = 10
"""Digits of the name of a fix."""


def set_id(name: str) -> str:
    """Return the name of an edit set from what distinguishes it."""
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:_DIGITS]


def with_places(diagnostics: Iterable[LintDiagnostic], document: Document) -> list[LintDiagnostic]:
    """Return the diagnostics of a document in the order of the text, each with its place.

    They have to be all of them, suppressed ones included: otherwise their numbers depend on what is suppressed.
    """
    settings = {
        written.span: (*site.path, written.key) for site in reversed(document.sites) for written in site.written
    }
    seen: Counter[tuple[str, str]] = Counter()
    result = []
    for diagnostic in sorted(diagnostics, key=lambda diagnostic: diagnostic.span.start):
        place = _place(diagnostic, document, settings.get(diagnostic.span))
        seen[diagnostic.rule, place] += 1
        number = seen[diagnostic.rule, place]
        result.append(replace(diagnostic, place=f"{place} ({number})".lstrip() if number > 1 else place))
    return result


def _place(diagnostic: LintDiagnostic, document: Document, setting: tuple[str, ...] | None) -> str:
    if diagnostic.reports in UNREADABLE:
        return ""
    around = document.enclosing(diagnostic.span.start)
    name = ".".join(setting) if setting else _words(document.text, diagnostic.span)
    return f"{around}: {name}" if around else name


def _words(text: str, span: Span) -> str:
    return " ".join(text[span.start : span.end].split())[:_LONGEST]


def fingerprint(file: str, diagnostic: LintDiagnostic) -> str:
    """Return the identity of a diagnostic as 32 hexadecimal digits; ``file`` is the path in the repository."""
    import hashlib

    identity = "\0".join((file, diagnostic.rule, diagnostic.place))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]

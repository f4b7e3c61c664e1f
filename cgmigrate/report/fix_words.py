"""A fix in the words of the formats for services: what it writes, who applies it, and what it changes as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cgmigrate.report.overview import together_with

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import LintDiagnostic
    from cgmigrate.report import Reported


def fix_words(reported: Reported) -> Iterator[tuple[str, str]]:
    """Yield the fix of a diagnostic, each sentence with its label; nothing if there is none."""
    diagnostic = reported.diagnostic
    if diagnostic.fix_text:
        labels = {"safe": "fix", "not analysed": "fix, not analysed"}
        yield labels.get(str(diagnostic.applicability), "fix with --unsafe-fixes"), diagnostic.fix_text
    if diagnostic.fix and reported.other_files:
        yield "note", together_with(reported.other_files, diagnostic.fix.id)


def whole_fixes(diagnostics: Iterable[LintDiagnostic]) -> dict[str, str]:
    """Return all that each fix does in a file, by its id; each diagnostic of the file has a part of its fix."""
    parts: dict[str, dict[str, None]] = {}
    for one in sorted(diagnostics, key=lambda one: one.span.start):
        if one.fix and one.fix_text:
            parts.setdefault(one.fix.id, {})[one.fix_text] = None
    return {ident: ", ".join(texts) for ident, texts in parts.items()}


def capital(label: str) -> str:
    """Return a label with a capital, the rest as it is: an option stays in small letters."""
    return label[:1].upper() + label[1:]

"""A fix in the words of the formats for services: what it writes, who applies it, and what it changes as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cgmigrate.report.overview import together_with

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import LintDiagnostic
    from cgmigrate.report import Reported


def fix_words(reported: Reported) -> tuple[tuple[str, str], ...]:
    """Return the fix of a diagnostic, each sentence with its label; empty if there is none."""
    diagnostic = reported.diagnostic
    words: list[tuple[str, str]] = []
    if diagnostic.fix_text:
        labels = {"safe": "fix", "not analysed": "fix, not analysed"}
        label = labels.get(str(diagnostic.applicability), "fix with --unsafe-fixes")
        words.append((label, diagnostic.fix_text))
    if diagnostic.fix and reported.other_files:
        words.append(("note", together_with(reported.other_files, diagnostic.fix.id)))
    return tuple(words)


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

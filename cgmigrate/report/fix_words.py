"""A fix in the words of the formats for services: what it writes, who applies it, and what it changes as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cgmigrate.report import Related, Reported
from cgmigrate.report.overview import together_with
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import LintDiagnostic


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


# --- related places -------------------------------------------------------------------------------

MOST_PLACES = 10
"""Places that are named; of more, their number."""
MOST_LABELS = 4
"""Places in the file of the diagnostic that are shown as parts of the text."""


def also(places: Sequence[Related]) -> str:
    """Return the places in one line, empty if there are none: ``conf/a.yaml:3 (CG101), conf/b.yaml:4 (CG106)``."""
    rules: dict[str, list[str]] = {}
    for one in places:
        rules.setdefault(f"{one.path}:{one.start.line}", []).append(one.rule)
    named = [f"{place} ({', '.join(dict.fromkeys(codes))})" for place, codes in rules.items()]
    more = len(named) - MOST_PLACES
    return ", ".join([*named[:MOST_PLACES], *([f"and {more} more"] if more > 0 else [])])


def with_places(reported: Reported) -> tuple[tuple[str, str], ...]:
    """Return the remarks of a diagnostic, each with its label, and the other places of its set."""
    places = also(reported.related)
    return (*reported.diagnostic.remarks, *((("also", places),) if places else ()))


def labelled(reported: Reported) -> list[Related]:
    """Return the places that are shown as parts of the text, beside the diagnostic's own."""
    own = [one for one in reported.related if one.path == reported.path and one.start != reported.start]
    return own[:MOST_LABELS]


def more_places(reported: Reported) -> str:
    """Return how many other places a set has, in parentheses; empty if it has none."""
    lines = {(one.path, one.start) for one in reported.related} - {(reported.path, reported.start)}
    return f" (and {counted(len(lines), 'more place')})" if lines else ""

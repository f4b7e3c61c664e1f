"""reviewdog's format: diagnostics that it posts as comments on a pull request, with suggestions to commit.

Columns count bytes of UTF-8. Only a safe fix in a single file is suggested, once, at the first of its diagnostics: a
person may commit every suggestion with a click. reviewdog posts a suggestion only if its lines are the diagnostic's,
so such a diagnostic has the lines of its fix.
"""

from __future__ import annotations

import json
from typing import Any

from cgmigrate.lint.severity import Severity
from cgmigrate.report import Place, Related, Reported, RunReport, TextReplacement
from cgmigrate.report.fix_words import capital, fix_words, with_places
from cgmigrate.report.rule_pages import public_page_of
from cgmigrate.text.escaping import in_json

_SEVERITY = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}


def render(report: RunReport) -> str:
    """Return the document, indented."""
    suggested: set[tuple[str, str]] = set()
    document = {
        "source": {"name": "cgmigrate"},
        "diagnostics": [_diagnostic(reported, suggested) for reported in report.diagnostics],
    }
    return in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _diagnostic(reported: Reported, suggested: set[tuple[str, str]]) -> dict[str, Any]:
    """Return a diagnostic; ``suggested`` has the path and id of fixes that an earlier one suggests."""
    diagnostic = reported.diagnostic
    words = (*fix_words(reported), *with_places(reported))
    lines = [diagnostic.message, *(f"{capital(label)}: {text}" for label, text in words)]
    result: dict[str, Any] = {
        "message": "\n".join(lines),
        "location": {"path": reported.named, "range": _range(reported.text, reported.start, reported.end)},
        "severity": _SEVERITY[diagnostic.severity],
        "code": {"value": diagnostic.rule},
    }
    if page := public_page_of(diagnostic.rule):
        result["code"]["url"] = page
    if reported.related:
        result["related_locations"] = [_related(one) for one in reported.related]
    fix = (reported.path, diagnostic.fix.id if diagnostic.fix else "")
    if reported.applied and reported.replacements and not reported.other_files and fix not in suggested:
        suggested.add(fix)
        whole = _as_one(reported.text, reported.replacements)
        extent = _range(reported.text, whole.start, whole.end)
        result["location"]["range"] = extent
        result["suggestions"] = [{"range": extent, "text": whole.text}]
    return result


def _related(one: Related) -> dict[str, Any]:
    # A place without columns is the whole line: columns in bytes need its text.
    extent = {"start": {"line": one.start.line}, "end": {"line": one.end.line}}
    return {
        "message": f"{one.rule}: {one.message}",
        "location": {"path": one.in_repository or one.path, "range": extent},
    }


def _as_one(text: str, replacements: tuple[TextReplacement, ...]) -> TextReplacement:
    """Return several replacements as one from the start of the first to the end of the last."""
    ordered = sorted(replacements, key=lambda one: (one.start.line, one.start.column))
    pieces, at = [], _offset(text, ordered[0].start)
    for one in ordered:
        pieces += [text[at : _offset(text, one.start)], one.text]
        at = _offset(text, one.end)
    return TextReplacement(ordered[0].start, ordered[-1].end, "".join(pieces))


def _range(text: str, start: Place, end: Place) -> dict[str, Any]:
    return {"start": _position(text, start), "end": _position(text, end)}


def _position(text: str, place: Place) -> dict[str, int]:
    offset = _offset(text, place)
    before = text[offset - place.column + 1 : offset]
    return {"line": place.line, "column": len(before.encode("utf-8", "replace")) + 1}


def _offset(text: str, place: Place) -> int:
    """Return the offset of a place in a text."""
    start = 0
    for _ in range(place.line - 1):
        start = text.index("\n", start) + 1
    return start + place.column - 1

"""One JSON document: the run, its diagnostics, and the edits of their fixes.

``version`` is the version of this format. It increases when a field is removed or changes its meaning, not when a field
is added.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cgmigrate import __version__
from cgmigrate.lint.severity import Severity
from cgmigrate.report import Place, Related, Reported, RunReport, readable
from cgmigrate.text.escaping import in_json

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Fix

VERSION = 2


def render(report: RunReport) -> str:
    """Return the document, indented."""
    releases = dict.fromkeys(reported.releases for reported in report.diagnostics if reported.releases)
    document = {
        "version": VERSION,
        "tool": {"name": "cgmigrate", "version": __version__},
        "releases": [{"from": source, "to": target} for source, target in releases],
        "summary": {
            "files": report.files,
            "files_with_findings": report.files_with_diagnostics,
            "findings": len(report.diagnostics),
            "errors": report.count(Severity.ERROR),
            "warnings": report.count(Severity.WARNING),
            "notes": report.count(Severity.NOTE),
            "fixable": sum(reported.applied for reported in report.diagnostics),
        },
        "fixes": _fixes(report),
        "findings": [as_data(reported, report) for reported in report.diagnostics],
        "troubles": [{"path": t.path, "reason": t.reason, "error": t.missing} for t in report.input_errors],
        "notes": list(report.notes),
        "check_again": report.check_command,
    }
    return in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def as_data(reported: Reported, report: RunReport) -> dict[str, Any]:
    """Return a diagnostic as plain data; ``fix`` is null if there is no fix."""
    diagnostic = reported.diagnostic
    source, target = reported.releases or (None, None)
    return {
        "path": reported.path,
        **_from(reported.start),
        **_to(reported.end),
        "place": diagnostic.place,
        "rule": diagnostic.rule,
        "name": report.rules[diagnostic.rule].name,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "fix": _fix(diagnostic.fix, reported) if diagnostic.fix else None,
        "because": diagnostic.because,
        "blocked_by": diagnostic.blocked_by,
        "help": diagnostic.help,
        # The three fields above as one text, for readers that are older than these fields.
        "reason": "; ".join(text for _, text in diagnostic.reasons),
        "notes": list(diagnostic.notes),
        "related": [_related(one) for one in reported.related],
        "from": source,
        "to": target,
        "fingerprint": reported.fingerprint,
    }


def _fix(fix: Fix, reported: Reported) -> dict[str, Any]:
    """Return a fix. It has edits only if it changes a single file: no program may apply a part of it."""
    replacements = () if reported.other_files else reported.replacements
    return {
        "id": fix.id,
        "safety": fix.applicability,
        "description": reported.diagnostic.fix_text,
        "proof": reported.proof,
        "files": list(map(readable, fix.paths)),
        "edits": [{**_from(r.start), **_to(r.end), "text": r.text} for r in replacements],
    }


def _fixes(report: RunReport) -> list[dict[str, Any]]:
    """Return each fix once, with its edits in all files: they are written together or not at all."""
    fixes: dict[str, dict[str, Any]] = {}
    for reported in report.diagnostics:
        if (fix := reported.diagnostic.fix) is not None:
            new = {"id": fix.id, "safety": fix.applicability, "because": list(fix.because), "files": {}}
            edits = [{**_from(one.start), **_to(one.end), "text": one.text} for one in reported.replacements]
            fixes.setdefault(fix.id, new)["files"][reported.path] = edits
    return list(fixes.values())


def _related(one: Related) -> dict[str, Any]:
    return {"path": one.path, **_from(one.start), **_to(one.end), "rule": one.rule, "message": one.message}


def _from(place: Place) -> dict[str, int]:
    return {"line": place.line, "column": place.column}


def _to(place: Place) -> dict[str, int]:
    return {"end_line": place.line, "end_column": place.column}

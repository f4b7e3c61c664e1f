"""One JSON document: what was run, what was found, and every fix letter by letter.

``version`` is that of this form. It rises when a field goes or changes its meaning; new fields may come without.
"""

from __future__ import annotations

import json
from typing import Any

from cgmigrate import __version__
from cgmigrate.report import Place, Report, Reported
from cgmigrate.text.escaping import in_json

VERSION = 1


def render(report: Report) -> str:
    """The document, indented, in the order that a person reads it."""
    releases = dict.fromkeys(reported.releases for reported in report.findings if reported.releases)
    document = {
        "version": VERSION,
        "tool": {"name": "cgmigrate", "version": __version__},
        "releases": [{"from": source, "to": target} for source, target in releases],
        "summary": {
            "files": report.files,
            "files_with_findings": report.files_with_findings,
            "findings": len(report.findings),
            "errors": report.count("error"),
            "warnings": report.count("warning"),
            "fixable": sum(reported.applied for reported in report.findings),
        },
        "findings": [as_data(reported, report) for reported in report.findings],
        "troubles": [{"path": t.path, "reason": t.reason, "error": t.missing} for t in report.troubles],
        "notes": list(report.notes),
    }
    return in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def as_data(reported: Reported, report: Report) -> dict[str, Any]:
    """One finding as plain data; ``fix`` is null where a person has to decide."""
    finding = reported.finding
    source, target = reported.releases or (None, None)
    return {
        "path": reported.path,
        **_from(reported.start),
        **_to(reported.end),
        "rule": finding.rule,
        "name": report.rules[finding.rule].name,
        "severity": finding.severity,
        "message": finding.message,
        "fix": {
            "safety": finding.safety,
            "description": finding.fix,
            "edits": [{**_from(r.start), **_to(r.end), "text": r.text} for r in reported.replacements],
        }
        if finding.safety
        else None,
        "because": finding.because,
        "blocked_by": finding.blocked_by,
        "help": finding.help,
        # One text for readers of the first form of version 1, which had no fields of their own for these.
        "reason": "; ".join(text for _, text in finding.reasons),
        "notes": list(finding.notes),
        "from": source,
        "to": target,
        "fingerprint": reported.fingerprint,
    }


def _from(place: Place) -> dict[str, int]:
    return {"line": place.line, "column": place.column}


def _to(place: Place) -> dict[str, int]:
    return {"end_line": place.line, "end_column": place.column}

"""GitLab's Code Quality report: an array of diagnostics.

GitLab compares the fingerprints of two pipelines to show which diagnostics are new and which are fixed.
"""

from __future__ import annotations

import json
from typing import Any

from cgmigrate.lint.severity import Severity
from cgmigrate.report import Reported, RunReport
from cgmigrate.report.fix_words import fix_words, with_places
from cgmigrate.text.escaping import in_json

_SEVERITY = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: RunReport) -> str:
    """Return the array, indented."""
    issues = [_issue(reported) for reported in report.diagnostics]
    return in_json(json.dumps(issues, indent=2, ensure_ascii=False)) + "\n"


def _issue(reported: Reported) -> dict[str, Any]:
    diagnostic, start, end = reported.diagnostic, reported.start, reported.end
    # GitLab shows only the description, in one line.
    parts = [f"{diagnostic.rule}: {diagnostic.message}"]
    parts += [f"{label}: {text}" for label, text in (*fix_words(reported), *with_places(reported))]
    return {
        "description": " | ".join(parts),
        "check_name": diagnostic.rule,
        "fingerprint": reported.fingerprint,
        "severity": _SEVERITY[diagnostic.severity],
        "location": {
            "path": reported.named,
            "lines": {"begin": start.line, "end": end.line},
            "positions": {
                "begin": {"line": start.line, "column": start.column},
                "end": {"line": end.line, "column": end.column},
            },
        },
    }

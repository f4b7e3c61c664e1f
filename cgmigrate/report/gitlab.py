"""GitLab's Code Quality report: an array, empty when all is well.

GitLab compares the fingerprints of two pipelines to say what is new and what is settled.
"""

from __future__ import annotations

import json
from typing import Any

from cgmigrate.report import Report, Reported
from cgmigrate.text.escaping import in_json

_SEVERITY = {"error": "major", "warning": "minor"}


def render(report: Report) -> str:
    """The array, indented."""
    issues = [_issue(reported) for reported in report.diagnostics]
    return in_json(json.dumps(issues, indent=2, ensure_ascii=False)) + "\n"


def _issue(reported: Reported) -> dict[str, Any]:
    diagnostic, start, end = reported.diagnostic, reported.start, reported.end
    # GitLab shows neither the name of the check nor anything but this line.
    said = [f"{diagnostic.rule}: {diagnostic.message}"]
    said += [f"{'fix' if reported.applied else 'fix with --unsafe-fixes'}: {diagnostic.fix}"] if diagnostic.fix else []
    said += [f"{label}: {text}" for label, text in diagnostic.reasons]
    return {
        "description": " | ".join(said),
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

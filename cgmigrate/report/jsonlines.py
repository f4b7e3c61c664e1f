"""One line with a JSON object for each diagnostic, for tools that read line by line."""

from __future__ import annotations

import json

from cgmigrate.report import Report
from cgmigrate.report.json import as_data
from cgmigrate.text.escaping import in_json


def render(report: Report) -> str:
    """Return the diagnostics of the JSON format, one a line; empty without diagnostics."""
    lines = (json.dumps(as_data(reported, report), ensure_ascii=False) for reported in report.diagnostics)
    return in_json("".join(line + "\n" for line in lines))

"""One JSON object a line for each diagnostic, for tools that read as it comes; nothing when there is none."""

from __future__ import annotations

import json

from cgmigrate.report import Report
from cgmigrate.report.json import as_data
from cgmigrate.text.escaping import in_json


def render(report: Report) -> str:
    """The diagnostics of the JSON format, a line each."""
    lines = (json.dumps(as_data(reported, report), ensure_ascii=False) for reported in report.diagnostics)
    return in_json("".join(line + "\n" for line in lines))

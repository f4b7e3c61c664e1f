"""Workflow commands that GitHub Actions shows as annotations beside the changed lines.

The form and its escapes: actions/toolkit, ``packages/core/src/command.ts``. GitHub shows ten annotations of each
level a step and drops the rest without a word, so a first line says how many there are.
"""

from __future__ import annotations

from cgmigrate.report import Report, Reported
from cgmigrate.report.text import headline
from cgmigrate.text.escaping import in_line, in_text

SHOWN = 10
"""Annotations of one level that GitHub shows for one step."""


def render(report: Report) -> str:
    """The summary and a command for each diagnostic; nothing when there is none."""
    if not report.diagnostics:
        return ""
    summary = report.summary()
    if max(report.count("error"), report.count("warning")) > SHOWN:
        summary += f" GitHub shows {SHOWN} errors and {SHOWN} warnings of a step; the log has them all."
    first = f"::notice title=cgmigrate::{_data(summary)}\n"
    return first + "".join(map(_command, report.diagnostics))


def _command(reported: Reported) -> str:
    diagnostic, start, end = reported.diagnostic, reported.start, reported.end
    properties = {"title": f"cgmigrate ({diagnostic.rule})", "file": reported.named, "line": start.line}
    if start.line == end.line:
        # GitHub takes columns only where a diagnostic stays in its line.
        properties |= {"col": start.column, "endLine": end.line, "endColumn": end.column}
    else:
        properties |= {"endLine": end.line}
    # The log shows a command's message only, so it says the place again.
    said = [headline(reported)]
    if diagnostic.fix:
        said.append(f"{'fix' if reported.applied else 'fix with --unsafe-fixes'}: {diagnostic.fix}")
    said += [f"{label}: {text}" for label, text in diagnostic.reasons]
    level = "error" if diagnostic.severity == "error" else "warning"
    told = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {told}::{_data(chr(10).join(said))}\n"


def _data(text: str) -> str:
    return in_text(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(in_line(text)).replace(":", "%3A").replace(",", "%2C")

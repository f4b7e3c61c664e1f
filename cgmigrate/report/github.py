"""Workflow commands, which GitHub Actions shows as annotations beside the changed lines.

Their syntax and escapes are those of actions/toolkit, ``packages/core/src/command.ts``. GitHub silently drops all but
ten annotations of each level in a step, so the first line says how many there are.
"""

from __future__ import annotations

from cgmigrate.lint.severity import Severity
from cgmigrate.report import Reported, RunReport
from cgmigrate.report.concise import MARK, headline
from cgmigrate.report.fix_words import fix_words, with_places
from cgmigrate.report.overview import fixes
from cgmigrate.text.escaping import in_line, in_text

SHOWN = 10
"""The number of annotations of one level that GitHub shows for a step."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: RunReport) -> str:
    """Return the summary and a command for each diagnostic; empty without diagnostics."""
    if not report.diagnostics:
        return ""
    summary = f"{report.summary()} Fixes: {fixes(report.diagnostics, MARK)}."
    if max(map(report.count, Severity)) > SHOWN:
        summary += f" GitHub shows {SHOWN} errors and {SHOWN} warnings of a step; the log has them all."
    first = f"::notice title=cgmigrate::{_data(summary)}\n"
    return first + "".join(map(_command, report.diagnostics))


def _command(reported: Reported) -> str:
    diagnostic, start, end = reported.diagnostic, reported.start, reported.end
    properties = {"title": f"cgmigrate ({diagnostic.rule})", "file": reported.named, "line": start.line}
    if start.line == end.line:
        # GitHub accepts columns only for annotations of one line.
        properties |= {"col": start.column, "endLine": end.line, "endColumn": end.column}
    else:
        properties |= {"endLine": end.line}
    # The log shows only the message of a command, so the message repeats the place.
    words = (*fix_words(reported), *with_places(reported))
    lines = [headline(reported), *(f"{label}: {text}" for label, text in words)]
    level = _LEVELS[diagnostic.severity]
    arguments = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {arguments}::{_data(chr(10).join(lines))}\n"


def _data(text: str) -> str:
    return in_text(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(in_line(text)).replace(":", "%3A").replace(",", "%2C")

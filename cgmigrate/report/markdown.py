"""A table for a comment on a pull request, or for the summary of a GitHub job (``$GITHUB_STEP_SUMMARY``)."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from cgmigrate.lint.severity import Severity
from cgmigrate.report import Report, Reported
from cgmigrate.report.overview import fixes, together_with
from cgmigrate.report.related import with_places
from cgmigrate.text.escaping import in_line

LONGEST = 60_000
"""The most characters of the report. GitHub refuses comments with more than 65,536."""

_HEAD = "| | where | rule | what | then |\n|---|---|---|---|---|\n"
_MARK = "🔧"
"""What marks a diagnostic that `cgmigrate fix` resolves."""
_SIGN = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}


def render(report: Report) -> str:
    """Return a heading, the summary, and a row for each diagnostic."""
    available = f" Fixes: {fixes(report.diagnostics, _MARK)}." if report.diagnostics else ""
    head = f"### cgmigrate\n\n{report.summary()}{available}\n"
    head += "".join(f"\n- could not read {_code(t.path)}: {_cell(t.reason)}" for t in report.input_errors if t.missing)
    head = head.rstrip("\n") + "\n"
    if not report.diagnostics:
        return head
    rows: list[str] = []
    room = LONGEST - len(head)
    for reported in report.diagnostics:
        row = _row(reported)
        room -= len(row)
        if room < 0:
            break
        rows.append(row)
    more = len(report.diagnostics) - len(rows)
    return head + "\n" + _HEAD + "".join(rows) + (f"\n… and {more} more.\n" if more else "")


def _row(reported: Reported) -> str:
    diagnostic = reported.diagnostic
    then = []
    if diagnostic.fix_text:
        then.append(diagnostic.fix_text if reported.applied else f"with `--unsafe-fixes`: {diagnostic.fix_text}")
    if diagnostic.fix and reported.other_files:
        then.append(together_with(reported.other_files, diagnostic.fix.id))
    then += [f"{label}: {text}" for label, text in with_places(reported)]
    mark = f"{_MARK} " if reported.applied else ""
    cells = [
        _SIGN[diagnostic.severity],
        _place(reported),
        diagnostic.rule,
        _cell(diagnostic.message),
        mark + "<br>".join(map(_cell, then)),
    ]
    return "| " + " | ".join(cells) + " |\n"


def _place(reported: Reported) -> str:
    """Return the path and line; in a GitHub job, as a link to the line of the commit."""
    shown = _code(f"{reported.named}:{reported.start.line}")
    parts = [os.environ.get(name) for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")]
    if reported.in_repository is None or not all(parts):
        return shown
    server, repository, commit = parts
    url = f"{server}/{repository}/blob/{commit}/{quote(reported.in_repository)}#L{reported.start.line}"
    return f"[{shown}]({url})"


def _code(text: str) -> str:
    """Return a code span; text with backticks gets a longer fence."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{_in_one_line(text)}{pad}{fence}".replace("|", r"\|")


def _cell(text: str) -> str:
    """Return text for a cell: code spans unchanged, and HTML and emphasis outside of them escaped."""
    parts = re.split(r"(`[^`]*`)", _in_one_line(text))
    parts[::2] = [re.sub(r"([\\*_\[\]<>])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts).replace("|", r"\|")


def _in_one_line(text: str) -> str:
    # A line feed of a message becomes a space; other control characters are escaped.
    return in_line(" ".join(part for part in re.split(r"[ \t\n]+", text) if part))

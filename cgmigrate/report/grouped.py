"""Diagnostics by file, after an overview of the run."""

from __future__ import annotations

from itertools import groupby

from cgmigrate.report import Report, Reported
from cgmigrate.report.concise import MARK, rule_and_message
from cgmigrate.report.folding import folded
from cgmigrate.report.overview import overview
from cgmigrate.report.style import PLAIN, Style
from cgmigrate.text.escaping import in_line


def render(report: Report, style: Style = PLAIN) -> str:
    """Return the overview, then each file with a line a diagnostic; nothing when there is none."""
    if not report.diagnostics:
        return ""
    by_file = groupby(folded(report.diagnostics), lambda reported: reported.path)
    return overview(report, style, MARK) + "\n".join(_file(path, list(group), style) for path, group in by_file)


def _file(path: str, group: list[Reported], style: Style) -> str:
    places = [f"{reported.start.line}:{reported.start.column}" for reported in group]
    longest = max(map(len, places))
    rows = [
        f"  {place:<{longest}}  {' '.join(rule_and_message(reported, style).split(chr(10)))}\n"
        for place, reported in zip(places, group, strict=True)
    ]
    return f"{style.paint(in_line(path), 'path')}:\n{''.join(rows)}"

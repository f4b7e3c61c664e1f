"""Code that sets a deprecated name and reads it further down: both have to change together, so neither is rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cgmigrate.documents.python.site_nodes import SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.python.use_report import Read, UseReport
from cgmigrate.documents.sites import FOLLOWS_OBJECT, Problem


def withhold_reads_after(place: SiteNodes, source: PythonSource, report: UseReport) -> str:
    """Withhold the fixes of reads behind a place; return why the place is not rewritten either, empty if it may be."""
    deprecated = source.catalogue.deprecated
    lines = {item.field: getattr(item.node, "lineno", 0) for item in place.items if item.field in deprecated}
    if place.form is not SiteForm.ASSIGNMENTS or not lines:
        return ""
    function, why = source.function_of(place.items[0].node), ""
    for read in report.reads.get((id(function), place.object), ()):
        if read.line > min(lines.values()):
            why = why or f"line {read.line} reads the setting and has to change with it"
            at = read.index - report.first_index
            report.problems[at] = _without_fix(report.problems[at], read, lines)
    return why


def _without_fix(problem: Problem, read: Read, lines: Mapping[str, int]) -> Problem:
    """Return a problem with its fix withheld; ``lines`` are those of the settings assigned above the read."""
    advice = problem.advice or (f"write `{problem.replacement}`" if problem.replacement else "")
    if_proved = problem.if_proved or (problem.replacement if problem.risk in ("", FOLLOWS_OBJECT) else "")
    problem = replace(problem, replacement="", risk="", advice=advice, if_proved=if_proved)
    if line := lines.get(read.name):
        message = f"`{read.object}.{read.name}` is deprecated; this read is right only as long as line {line} sets it"
        blocked_by = f"line {line} assigns `{read.name}`; both have to change together"
        return replace(problem, message=message, blocked_by=blocked_by)
    other, line = min(lines.items(), key=lambda item: item[1])
    blocked_by = f"line {line} assigns `{other}` of the same object; both have to change together"
    return replace(problem, blocked_by=blocked_by)

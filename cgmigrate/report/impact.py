"""What a release changes in a project: a line for each rule, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.lint.rules import Rule, RuleKind
from cgmigrate.lint.severity import Severity
from cgmigrate.report import Reported, RunReport
from cgmigrate.report.folding import folded
from cgmigrate.text.plurals import counted

_HARMS = ("changes silently", "stops at the start", "stops later", "warns", "cannot be judged")
"""What happens after the upgrade where nothing is done, worst first."""
_FIXES: dict[Applicability | None, str] = {**{one: str(one) for one in Applicability}, None: "by hand"}


def render(report: RunReport) -> str:
    """Return a line for each rule: what happens, code, name, how many places, and how many of them are fixed."""
    by_rule: dict[str, list[Reported]] = {}
    for reported in folded(report.diagnostics):
        # Of rules that one fix resolves together, the first one decides.
        by_rule.setdefault(reported.diagnostic.rule.partition(",")[0], []).append(reported)
    rows = sorted(
        (_harm(report.rules[code], every), -len(every), code, report.rules[code].name, _places(every), _fixed(every))
        for code, every in by_rule.items()
    )
    widths = [max((len(str(row[column])) for row in rows), default=0) for column in (2, 3, 4)]
    return "".join(
        f"{_HARMS[row[0]]:18}  {row[2]:{widths[0]}}  {row[3]:{widths[1]}}  {row[4]:>{widths[2]}}  {row[5]}\n"
        for row in rows
    )


def _harm(rule: Rule, every: Sequence[Reported]) -> int:
    if rule.kind in (RuleKind.FILE, RuleKind.NO_EFFECT):
        return 4 if rule.kind is RuleKind.FILE else 0
    if any(case.stage == "capture" for case in rule.cases):
        return 2
    is_error = rule.kind is RuleKind.REJECTED or any(one.diagnostic.severity is Severity.ERROR for one in every)
    return 1 if is_error else 3


def _places(every: Sequence[Reported]) -> str:
    files = len({reported.path for reported in every})
    return f"{counted(len(every), 'place')} in {counted(files, 'file')}"


def _fixed(every: Sequence[Reported]) -> str:
    """Return how many fixes are safe, unsafe, or a person's."""
    counts = Counter(reported.diagnostic.applicability for reported in every)
    return ", ".join(f"{counts[kind]} {word}" for kind, word in _FIXES.items() if counts[kind])

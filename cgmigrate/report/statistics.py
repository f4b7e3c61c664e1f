"""The number of diagnostics of each rule, the most frequent rule first."""

from __future__ import annotations

from collections import Counter

from cgmigrate.report import RunReport


def render(report: RunReport) -> str:
    """Return a line for each rule: count, code, [*] if `cgmigrate fix` fixes some, name."""
    counts = Counter(reported.diagnostic.rule for reported in report.diagnostics)
    fixable = {reported.diagnostic.rule for reported in report.diagnostics if reported.applied}
    return "".join(
        f"{count:>5}  {code}  {'[*]' if code in fixable else '   '}  {report.rules[code].name}\n"
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )

"""One line a diagnostic, as compilers write it and editors read it: ``path:line:column: CODE [*] message``."""

from __future__ import annotations

from cgmigrate.report import Report, Reported
from cgmigrate.report.folding import folded
from cgmigrate.report.text import Style, headline, plain


def render(report: Report) -> str:
    """All diagnostics, a line each."""
    return "".join(map(one, folded(report.diagnostics)))


def one(reported: Reported, style: Style = plain) -> str:
    """One diagnostic as a line, also where the reader's own words have several."""
    return " ".join(headline(reported, style).split("\n")) + "\n"

"""One line a diagnostic, as compilers write it and editors read it: ``path:line:column: CODE [*] message``."""

from __future__ import annotations

from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.report import Reported, RunReport
from cgmigrate.report.fix_words import more_places
from cgmigrate.report.folding import folded
from cgmigrate.report.style import PLAIN, StreamStyle
from cgmigrate.text.escaping import in_line, in_text

MARK = "[*]"
"""What marks a diagnostic that `cgmigrate fix` resolves."""


def render(report: RunReport, style: StreamStyle = PLAIN) -> str:
    """Return all diagnostics, a line each."""
    return "".join(one(reported, style) for reported in folded(report.diagnostics))


def one(reported: Reported, style: StreamStyle = PLAIN) -> str:
    """Return one diagnostic as a line, also where the reader's own words have several."""
    return " ".join(headline(reported, style).split("\n")) + "\n"


def headline(reported: Reported, style: StreamStyle = PLAIN) -> str:
    """Return where, which rule, whether `cgmigrate fix` settles it, and what is wrong."""
    at = reported.start
    place = f"{style.paint(in_line(reported.path), 'path')}:{at.line}:{at.column}"
    return f"{place}: {rule_and_message(reported, style)}"


def rule_and_message(reported: Reported, style: StreamStyle = PLAIN) -> str:
    """Return the codes, the mark of a safe fix, and what is wrong."""
    diagnostic = reported.diagnostic
    codes = ", ".join(rule.code for rule in reported.rules)
    mark = f" {MARK}" if diagnostic.applicability is Applicability.SAFE else ""
    places = more_places(reported)
    return f"{style.paint(codes, diagnostic.severity)}{mark} {in_text(diagnostic.message)}{places}"

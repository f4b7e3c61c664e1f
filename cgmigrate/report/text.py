"""Diagnostics for a person: where, what, the line with the part underlined, and the fix in short."""

from __future__ import annotations

from collections.abc import Callable

from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.report import Report, Reported
from cgmigrate.report.folding import folded
from cgmigrate.text.escaping import cells, in_line, in_text

WIDTH = 100
"""Columns of a source line that are shown; longer lines are cut around the underlined part."""

Style = Callable[[str, str], str]
"""(text, kind) → the text, coloured or not."""


def plain(text: str, kind: str) -> str:
    """No colours."""
    return text


def render(report: Report) -> str:
    """All diagnostics, an empty line after each."""
    return "".join(map(one, folded(report.diagnostics)))


def one(reported: Reported, style: Style = plain) -> str:
    """One diagnostic as lines of text, with an empty line at the end."""
    diagnostic = reported.diagnostic
    out = [headline(reported, style), *_excerpt(reported, style)]
    if diagnostic.fix:
        label = "fix" if diagnostic.applicability is Applicability.SAFE else "fix with --unsafe-fixes"
        out.append(f"    {style(label, 'fix')}: {in_text(diagnostic.fix)}")
    out += [f"    {style(label, 'decide')}: {in_text(text)}" for label, text in diagnostic.reasons]
    out += [f"    {style('note', 'note')}: {in_text(note)}" for note in diagnostic.notes]
    return "\n".join(out) + "\n\n"


def headline(reported: Reported, style: Style = plain) -> str:
    """Where, which rule, whether `cgmigrate fix` settles it, and what is wrong."""
    diagnostic, at = reported.diagnostic, reported.start
    mark = " [*]" if diagnostic.applicability is Applicability.SAFE else ""
    place = f"{style(in_line(reported.path), 'path')}:{at.line}:{at.column}"
    return f"{place}: {style(diagnostic.rule, 'rule')}{mark} {in_text(diagnostic.message)}"


def _excerpt(reported: Reported, style: Style) -> list[str]:
    if not reported.text:
        return []
    start, end = reported.start, reported.end
    source = reported.text.split("\n", start.line)[start.line - 1].rstrip("\r")
    first = start.column - 1
    last = end.column - 1 if end.line == start.line else len(source)
    last = min(max(last, first + 1), max(len(source), first + 1))
    cut = max(0, first - WIDTH // 2) if len(source) > WIDTH else 0
    shown = cells(source[cut : cut + WIDTH])
    dots = ("…" if cut else "", "…" if len(source) > cut + WIDTH else "")
    # Tabs stay tabs in the underline, or it would not stand below the text.
    lead = "".join(char if char == "\t" else " " for char in dots[0] + "".join(shown[: first - cut]))
    marked = len("".join(shown[first - cut : last - cut]))
    number = f"{start.line:>5}"
    return [
        f"{number} | {dots[0]}{''.join(shown)}{dots[1]}".rstrip(),
        f"{' ' * len(number)} | {lead}{style('^' * max(1, marked), 'mark')}",
    ]

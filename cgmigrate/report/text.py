"""Findings for a person: where, what, the line with the part underlined, and the fix in short."""

from __future__ import annotations

from collections.abc import Callable

from cgmigrate.documents import Span
from cgmigrate.examination import SAFE, UNSAFE, Finding

WIDTH = 100
"""Columns of a source line that are shown; longer lines are cut around the underlined part."""

Style = Callable[[str, str], str]
"""(text, kind) → the text, coloured or not."""


def plain(text: str, kind: str) -> str:
    """No colours."""
    return text


def render(path: str, text: str, finding: Finding, style: Style = plain) -> str:
    """Return one finding as lines of text, with a line break at the end."""
    line, column = position(text, finding.span.start)
    mark = " [*]" if finding.safety == SAFE else ""
    out = [f"{style(path, 'path')}:{line}:{column}: {style(finding.rule, 'rule')}{mark} {finding.message}"]
    out += _excerpt(text, finding.span, line, style)
    if finding.fix:
        label = "fix" if finding.safety == SAFE else "fix with --unsafe-fixes"
        out.append(f"    {style(label, 'fix')}: {finding.fix}")
    if finding.why_not:
        label = "risk" if finding.safety == UNSAFE else "to decide"
        out.append(f"    {style(label, 'decide')}: {finding.why_not}")
    out += [f"    {style('note', 'note')}: {note}" for note in finding.notes]
    return "\n".join(out) + "\n"


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, as editors count them (only ``\\n`` ends a line)."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def _excerpt(text: str, span: Span, line: int, style: Style) -> list[str]:
    if not text:
        return []
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.start)
    source = text[start : len(text) if end < 0 else end].rstrip("\r")
    first = span.start - start
    last = min(max(span.end - start, first + 1), max(len(source), first + 1))
    cut = max(0, first - WIDTH // 2) if len(source) > WIDTH else 0
    shown = source[cut : cut + WIDTH]
    dots = ("…" if cut else "", "…" if len(source) > cut + WIDTH else "")
    # Tabs stay tabs in the underline, or it would not stand below the text.
    lead = "".join(char if char == "\t" else " " for char in dots[0] + source[cut:first])
    number = f"{line:>5}"
    return [
        f"{number} | {dots[0]}{shown}{dots[1]}".rstrip(),
        f"{' ' * len(number)} | {lead}{style('^' * max(1, min(last, cut + WIDTH) - first), 'mark')}",
    ]

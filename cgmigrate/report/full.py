"""Diagnostics as rustc and ruff show them: the rule, the place, the marked lines, the fix and what to know about it."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten

from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.report import Reported, RunReport
from cgmigrate.report.excerpt import Gutter, Mark, excerpt
from cgmigrate.report.fix_words import also, labelled
from cgmigrate.report.folding import folded
from cgmigrate.report.inline_diff import Hunk, diff, hunks_of
from cgmigrate.report.overview import MANY, overview, together_with
from cgmigrate.report.style import PLAIN, StreamStyle
from cgmigrate.text.escaping import in_line

_SHORT, _MOST_REPEATED = 60, 120
"""Characters of a reason that is repeated, and of the beginning of a longer one."""
_MOST_REASONS = 2


def render(report: RunReport, style: StreamStyle = PLAIN) -> str:
    """Return all diagnostics, an empty line after each; of a large run the overview comes first."""
    diagnostics, seen = folded(report.diagnostics), dict[tuple[str, str], str]()
    first = overview(report, style) if len(diagnostics) > MANY else ""
    return first + "".join(one(reported, style, seen) for reported in diagnostics)


def one(reported: Reported, style: StreamStyle = PLAIN, seen: dict[tuple[str, str], str] | None = None) -> str:
    """Return one diagnostic as lines of text, with an empty line at the end.

    ``seen`` has the places of long remarks that are shown already.
    """
    hunks = hunks_of(reported.text, reported.edits)
    gutter = Gutter(len(str(_last_line(reported, hunks))), style)
    lines = [_title(reported, style), _place(reported, gutter)]
    if reported.text:
        lines += excerpt(reported.text, _marks(reported), gutter)
    lines += _fix(reported, hunks, gutter)
    lines += _remarks(reported, style, {} if seen is None else seen)
    return "\n".join(lines) + "\n\n"


def _title(reported: Reported, style: StreamStyle) -> str:
    """Return the severity, the rule and what is wrong, in one line."""
    diagnostic = reported.diagnostic
    codes = ", ".join(rule.code for rule in reported.rules)
    head = style.paint(f"{diagnostic.severity}[{codes}]", diagnostic.severity)
    names = ", ".join(rule.name for rule in reported.rules)
    return f"{head} {in_line(names)}: {_in_one_line(diagnostic.message)}"


def _place(reported: Reported, gutter: Gutter) -> str:
    path = gutter.style.paint(in_line(reported.path), "path")
    return f"{gutter.arrow()} {path}:{reported.start.line}:{reported.start.column}"


def _last_line(reported: Reported, hunks: list[Hunk]) -> int:
    """Return the largest line number that is shown."""
    # An excerpt shows at most one line below its last mark.
    last = [reported.end.line + 1]
    last += [label.end.line + 1 for label in reported.labels] + [one.end.line + 1 for one in labelled(reported)]
    last = [min(max(last), reported.text.count("\n") + 1)]
    last += [hunk.old + len(hunk.removed) - 1 for hunk in hunks]
    last += [hunk.new + len(hunk.added) - 1 for hunk in hunks]
    return max(last)


def _marks(reported: Reported) -> list[Mark]:
    main = Mark(reported.start, reported.end, reported.label, reported.diagnostic.severity)
    others = {(label.start, label.end): label.text for label in reported.labels}
    others = {(one.start, one.end): f"{one.rule}, has to change with it" for one in labelled(reported)} | others
    return [main, *(Mark(start, end, text, "label", "-") for (start, end), text in others.items())]


def _fix(reported: Reported, hunks: list[Hunk], gutter: Gutter) -> Iterator[str]:
    """Yield the fix in words with its applicability, and the lines that it changes."""
    diagnostic = reported.diagnostic
    if not diagnostic.fix_text:
        return
    is_analysed = diagnostic.applicability is not Applicability.NOT_ANALYSED
    parts = [str(diagnostic.applicability) if is_analysed else "not analysed: `cgmigrate fix` decides"]
    if diagnostic.applicability is Applicability.SAFE and reported.proof:
        parts[0] += f": {reported.proof}"
    elif diagnostic.applicability is Applicability.SAFE and reported.other_files:
        parts[0] += ": all that has the name changes together"
    if other := reported.fixed_with:
        same_line = other.line == reported.start.line
        parts.append(f"fixed together with {f'column {other.column}' if same_line else f'line {other.line}'}")
    if diagnostic.applicability is Applicability.UNSAFE:
        parts.append("use --unsafe-fixes")
    yield f"{_label('help', gutter.style)} {_in_one_line(diagnostic.fix_text)} ({', '.join(parts)})"
    yield from diff(hunks, gutter)
    if diagnostic.fix and reported.other_files:
        yield f"{_label('note', gutter.style)} {in_line(together_with(reported.other_files, diagnostic.fix.id))}"


def _remarks(reported: Reported, style: StreamStyle, seen: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield why a fix is unsafe or missing, what to write by hand, and the notes; a long reason, once a run."""
    place, is_repeated = f"{reported.path}:{reported.start.line}", False
    for label, text in reported.diagnostic.remarks:
        first_place = seen.setdefault((label, text), place) if len(text) > _SHORT else place
        if first_place != place and label in ("because", "blocked by"):
            is_repeated = True
            yield f"{_label(label, style)} {in_line(f'{_beginning(text)} (see {first_place})')}"
            continue
        if first_place != place and label == "note" and is_repeated:
            continue
        first, *others = _reasons(text, place) if label == "because" else text.split("\n")
        yield f"{_label(label, style)} {in_line(first)}".rstrip()
        # Indented, so that no line of a text looks like one of the report.
        yield from (f"{' ' * (len(label) + 2)}{in_line(line)}".rstrip() for line in others)
    if places := also(reported.related):
        yield f"{_label('also', style)} {in_line(places)}"


def _reasons(text: str, place: str) -> list[str]:
    """Return the first reasons of several, and how to see the others."""
    reasons = text.split("; ")
    if (more := len(reasons) - _MOST_REASONS) <= 0:
        return reasons
    return [*reasons[:_MOST_REASONS], f"{more} more: `cgmigrate explain {place}`"]


def _beginning(text: str) -> str:
    """Return the first part of a reason, or as many of its words as a line has."""
    # The first word may be a long path.
    place, space, rest = text.partition("; ")[0].partition(" ")
    return f"{place}{space}{shorten(rest, max(_MOST_REPEATED - len(place), _MOST_REPEATED // 2), placeholder=' …')}"


_KINDS = {"because": "unsafe", "blocked by": "unsafe", "note": "note"}


def _label(label: str, style: StreamStyle) -> str:
    return style.paint(label, _KINDS.get(label, "help")) + ":"


def _in_one_line(text: str) -> str:
    return in_line(" ".join(text.split("\n")))

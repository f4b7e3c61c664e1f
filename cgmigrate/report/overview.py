"""A run as a whole: diagnostics by rule and folder, releases, fixes, and the command to run next."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.report import Reported, RunReport
from cgmigrate.report.folding import folded
from cgmigrate.report.style import PLAIN, StreamStyle
from cgmigrate.text.columns import width
from cgmigrate.text.escaping import in_line
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.project.pins.resolution import Resolution

MANY = 50
"""Diagnostics that are shown without an overview before them."""
MOST_ROWS = 12
"""Rules, folders or releases that are listed; the rest is counted."""
_KINDS: dict[Applicability | None, str] = {**{one: str(one) for one in Applicability}, None: "to review"}
"""Applicability of a fix in words; None is also that of a fix that only a person applies."""
_MOST_NAMED = 3
"""Files of a set that are named; the rest is counted."""
_PLACE = re.compile(r"\S+:\d+ ")
"""The beginning of a reason that shows a place."""


def overview(report: RunReport, style: StreamStyle = PLAIN, mark: str = "") -> str:
    """Return the run in one screen, with an empty line at the end; ``mark`` is that of a safe fix."""
    diagnostics = folded(report.diagnostics)
    files = f"{report.files_with_diagnostics} of {counted(report.files, 'file')}"
    lines = [
        style.paint(f"{counted(len(diagnostics), 'diagnostic')} in {files}", "path"),
        *first(diagnostics),
        "",
        "By rule:",
        *_rows(_by_rule(diagnostics), "rule"),
        "",
        "By folder:",
        *_rows(_by_folder(diagnostics), "folder"),
        "",
        *last_lines(report, diagnostics, style, mark),
    ]
    return "\n".join(lines) + "\n\n"


def last_lines(
    report: RunReport, diagnostics: Sequence[Reported], style: StreamStyle = PLAIN, mark: str = ""
) -> list[str]:
    """Return the releases, the fixes, and the command to run next."""
    lines = releases(report.resolutions)
    if diagnostics:
        lines.append(f"Fixes: {fixes(diagnostics, mark)}")
    if report.next_command:
        lines.append(f"Next: {style.paint(in_line(report.next_command), 'help')}")
    return lines


def first(diagnostics: Iterable[Reported]) -> Iterator[str]:
    """Yield the place that makes most fixes unsafe or prevents them, if it is one for several."""
    reasons = ([*one.diagnostic.because.split("; "), one.diagnostic.blocked_by] for one in diagnostics)
    waiting = Counter(reason for every in reasons for reason in set(every) if _PLACE.match(reason))
    for reason, count in waiting.most_common(1):
        if count > 1:
            yield f"First: {in_line(reason)}; {count} fixes wait for it"


def releases(resolutions: Sequence[Resolution]) -> list[str]:
    """Return a line for each pair of releases that was used, with the reason."""
    lines = [f"Releases: {in_line(line)}" for line in dict.fromkeys(map(str, resolutions))]
    more = len(lines) - MOST_ROWS
    return lines if more <= 0 else [*lines[:MOST_ROWS], f"  and {counted(more, 'more pair')} of releases"]


def fixes(diagnostics: Iterable[Reported], mark: str = "") -> str:
    """Return how many diagnostics have a safe fix, an unsafe one, and none.

    ``mark`` is what the report shows beside a safe fix, empty if it shows nothing.
    """
    counts = Counter(map(_applicability, diagnostics))
    words = {
        Applicability.SAFE: f"safe ({mark})" if mark else "safe",
        Applicability.UNSAFE: "unsafe (--unsafe-fixes)",
        Applicability.NOT_ANALYSED: "not analysed",
        None: "needs review" if counts[None] == 1 else "need review",
    }
    return ", ".join(f"{counts[kind]} {text}" for kind, text in words.items() if counts[kind])


def together_with(paths: Sequence[str], group: str) -> str:
    """Return that a fix changes other files as well, code first, and how to apply it by itself."""
    paths = sorted(paths, key=lambda path: not path.endswith(".py"))
    named = ", ".join(paths[:_MOST_NAMED]) + (
        f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    )
    why = "they are merged, or the same code reads them"
    return f"changed together with {named}: {why} (`cgmigrate fix --group {group}` changes only these)"


def _applicability(reported: Reported) -> Applicability | None:
    kind = reported.diagnostic.applicability
    return kind if kind in _KINDS else None


def left_by_folder(diagnostics: Sequence[Reported]) -> list[str]:
    """Return the diagnostics without a fix, counted by folder and rule; empty for a single folder."""
    left: dict[str, Counter[str]] = {}
    for reported in diagnostics:
        if reported.diagnostic.fix is None:
            left.setdefault(_folder(reported), Counter()).update(rule.code for rule in reported.rules)
    if len(left) < 2:
        return []
    rows = [
        (sum(rules.values()), folder, ", ".join(f"{code} {count}" for code, count in rules.most_common(MOST_ROWS)))
        for folder, rules in left.items()
    ]
    return ["Needs review, by folder:", *_rows(rows, "folder")]


def _by_rule(diagnostics: Sequence[Reported]) -> list[tuple[int, str, str]]:
    counts: dict[str, Counter[Applicability | None]] = {}
    labels: dict[str, tuple[str, str]] = {}
    for reported in diagnostics:
        for rule in reported.rules:
            counts.setdefault(rule.code, Counter())[_applicability(reported)] += 1
            labels[rule.code] = (f"{rule.code}  {in_line(rule.name)}", rule.name)
    longest = max((len(name) for _, name in labels.values()), default=0)
    return [
        (
            sum(needs.values()),
            labels[code][0] + " " * (longest - len(labels[code][1])),
            ", ".join(f"{needs[key]} {words}" for key, words in _KINDS.items() if needs[key]),
        )
        for code, needs in sorted(counts.items())
    ]


def _by_folder(diagnostics: Sequence[Reported]) -> list[tuple[int, str, str]]:
    return [(count, folder, "") for folder, count in Counter(map(_folder, diagnostics)).items()]


def _folder(reported: Reported) -> str:
    return in_line(os.path.dirname(reported.path) or os.curdir)


def _rows(rows: Sequence[tuple[int, str, str]], what: str) -> Iterator[str]:
    """Yield rows of count, name and remark, the largest count first."""
    ordered = sorted(rows, key=lambda row: -row[0])
    shown = ordered[:MOST_ROWS]
    longest = max((width(name) for _, name, remark in shown if remark), default=0)
    for count, name, remark in shown:
        padding = " " * (longest - width(name)) if remark else ""
        yield f"{count:>6}  {name}{padding}  {remark}".rstrip()
    if more := ordered[MOST_ROWS:]:
        yield f"{sum(count for count, _, _ in more):>6}  in {counted(len(more), f'more {what}')}"

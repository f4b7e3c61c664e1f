"""Recall and precision, and what differs, in classes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgmigrate.lint.rules import RuleKind, load
from sweeping.cases import Case

RULES = load()
ABOUT_GRAPHS = re.compile(r"cuda.?graph|full.iteration|full scope|\bGraph\b", re.IGNORECASE)


@dataclass(frozen=True)
class Judged:
    """A case, what the release says to it, and what is reported without and with rules in preview."""

    case: Case
    verdict: dict[str, Any]
    by_default: list[dict[str, str]]
    previewed: list[dict[str, str]]

    @property
    def refused(self) -> str:
        """Why the release refuses the case."""
        return str(self.verdict["refused"])

    @property
    def because_of_graphs(self) -> bool:
        """Whether the release refuses the case, and would not without graphs."""
        return bool(self.refused) and (not self.verdict["control"] or bool(ABOUT_GRAPHS.search(self.refused)))

    def reported(self, warnings: bool, preview: bool = False) -> list[dict[str, str]]:
        """The diagnostics that count."""
        levels = {"error", "warning"} if warnings else {"error"}
        return [one for one in (self.previewed if preview else self.by_default) if one["severity"] in levels]

    def claims(self, warnings: bool, preview: bool = False) -> list[dict[str, str]]:
        """The diagnostics that claim a refusal at the start."""
        return [one for one in self.reported(warnings, preview) if claims_refusal(one)]


def claims_refusal(finding: dict[str, str]) -> bool:
    """Whether a diagnostic is about a refusal at the start, and not about a later failure or another capture."""
    rule = RULES[finding["rule"]]
    if rule.kind is RuleKind.NO_EFFECT:
        return "refuse" in finding["message"]
    cases = [case for case in rule.cases if _fits(case.message, finding["message"])]
    if rule.kind is RuleKind.COMPANION:
        return any(case.stage == "config" for case in cases or rule.cases)
    return any(case.stage != "capture" for case in cases or rule.cases) or not rule.cases


def _fits(template: str, message: str) -> bool:
    """Whether a message is one of a case; what is in braces differs from place to place."""
    parts = re.split(r"\{\w+\}", template)
    return re.fullmatch(".*".join(map(re.escape, parts)), message, re.DOTALL) is not None


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


@dataclass(frozen=True)
class Comparison:
    """The cases of one reader and release."""

    reader: str
    release: str
    rows: Sequence[Judged]

    def refused(self) -> list[Judged]:
        """Cases that the release refuses because of graphs."""
        return [row for row in self.rows if row.because_of_graphs]

    def accepted(self) -> list[Judged]:
        """Cases that the release accepts."""
        return [row for row in self.rows if not row.refused]

    def missed(self, warnings: bool, preview: bool = False) -> list[Judged]:
        """Cases that the release refuses and nothing reports."""
        return [row for row in self.refused() if not row.reported(warnings, preview)]

    def false(self, warnings: bool, preview: bool = False) -> list[Judged]:
        """Cases that the release accepts and something claims to be refused."""
        return [row for row in self.accepted() if row.claims(warnings, preview)]

    def scores(self, warnings: bool, preview: bool) -> tuple[str, str]:
        """Recall and precision."""
        caught = len(self.refused()) - len(self.missed(warnings, preview))
        return _share(caught, len(self.refused())), _share(caught, caught + len(self.false(warnings, preview)))

    def details(self, warnings: bool, examples: Path | None) -> str:
        """The classes of what differs, with an example of each."""
        lines = [f"== {self.reader}, {self.release}"]
        lines.append(f"{len(self.accepted())} accepted, {len(self.refused())} refused because of graphs")
        for preview in (False, True):
            with_preview = " (with --preview)" if preview else ""
            missed = _classes((_said(row.refused), row) for row in self.missed(warnings, preview))
            false = _classes(
                (f"{one['rule']} {_said(one['message'])}", row)
                for row in self.false(warnings, preview)
                for one in row.claims(warnings, preview)
            )
            lines += self._listed(f"missed{with_preview}", missed, examples)
            lines += self._listed(f"false alarm{with_preview}", false, examples)
        return "\n".join(lines)

    def _listed(self, kind: str, classes: dict[str, list[Judged]], examples: Path | None) -> list[str]:
        lines = []
        for number, (text, rows) in enumerate(sorted(classes.items(), key=lambda item: -len(item[1]))):
            smallest = min(rows, key=lambda row: len(row.case.text))
            place = ""
            if examples:
                name = re.sub(r"\W+", "-", f"{self.reader} {self.release} {kind} {number}").strip("-")
                file = examples / name / smallest.case.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(smallest.case.text, encoding="utf-8")
                place = f"  {file}"
            lines.append(f"  {kind} {len(rows)}: {text}{place}")
        return lines


def _said(text: str) -> str:
    """What a release or a rule says, without what differs from case to case."""
    return re.sub(r"`[^`]*`|'[^']*'|\d+", "#", text)[:150]


def _classes(pairs: Any) -> dict[str, list[Judged]]:
    classes: dict[str, list[Judged]] = defaultdict(list)
    for text, row in pairs:
        classes[text].append(row)
    return classes


def table(done: Sequence[Comparison], warnings: bool) -> str:
    """A line for each reader and release."""
    lines = ["", f"{'reader':26} release cases accepted refused recall precision | with --preview"]
    for one in done:
        recall, precision = one.scores(warnings, preview=False)
        again, also = one.scores(warnings, preview=True)
        counts = f"{len(one.rows):5} {len(one.accepted()):8} {len(one.refused()):7}"
        lines.append(f"{one.reader:26} {one.release:7} {counts} {recall:>6} {precision:>9} | {again:>6} {also:>6}")
    return "\n".join(lines)

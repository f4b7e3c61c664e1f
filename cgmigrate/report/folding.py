"""Findings about one setting that one fix settles are one place for a person: shown and counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Finding
    from cgmigrate.report import Reported


def places_of(findings: Iterable[Finding]) -> int:
    """How many places the findings of one file are, where those with the same fix count once."""
    return len({_place(finding) for finding in findings})


def folded(found: Sequence[Reported]) -> list[Reported]:
    """Findings as a person reads them: several codes for the same fix of one setting are one."""
    groups: dict[object, list[Reported]] = {}
    for reported in found:
        groups.setdefault((reported.path, _place(reported.finding)), []).append(reported)
    return [_as_one(group) for group in groups.values()]


def _place(finding: Finding) -> object:
    # Findings without a fix differ in what a person has to do.
    return (finding.site, finding.span, finding.fix, finding.safety) if finding.fix else finding


def _as_one(group: Sequence[Reported]) -> Reported:
    if len(group) == 1:
        return group[0]
    findings = [reported.finding for reported in group]
    together = replace(
        findings[0],
        rule=", ".join(dict.fromkeys(finding.rule for finding in findings)),
        message="; ".join(dict.fromkeys(finding.message for finding in findings)),
        because="; ".join(dict.fromkeys(finding.because for finding in findings if finding.because)),
        notes=tuple(dict.fromkeys(note for finding in findings for note in finding.notes)),
    )
    return replace(group[0], finding=together)

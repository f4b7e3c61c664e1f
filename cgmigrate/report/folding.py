"""Folding: several diagnostics of one setting that one fix resolves are shown and counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import LintDiagnostic
    from cgmigrate.report import Reported


def places_of(diagnostics: Iterable[LintDiagnostic]) -> int:
    """Return the number of diagnostics of a file, where those with the same fix of one setting count once."""
    return len({_place(diagnostic) for diagnostic in diagnostics})


def folded(diagnostics: Sequence[Reported]) -> list[Reported]:
    """Return the diagnostics, where those with the same fix of one setting are merged into one."""
    groups: dict[object, list[Reported]] = {}
    for reported in diagnostics:
        groups.setdefault((reported.path, _place(reported.diagnostic)), []).append(reported)
    return [_as_one(group) for group in groups.values()]


def _place(diagnostic: LintDiagnostic) -> object:
    if not diagnostic.fix_text:
        # Diagnostics without a fix are never merged: each needs a change of its own.
        return diagnostic
    return diagnostic.site, diagnostic.span, diagnostic.fix_text, diagnostic.applicability


def _as_one(group: Sequence[Reported]) -> Reported:
    if len(group) == 1:
        return group[0]
    diagnostics = [reported.diagnostic for reported in group]
    together = replace(
        diagnostics[0],
        rule=", ".join(dict.fromkeys(diagnostic.rule for diagnostic in diagnostics)),
        message="; ".join(dict.fromkeys(diagnostic.message for diagnostic in diagnostics)),
        because="; ".join(dict.fromkeys(diagnostic.because for diagnostic in diagnostics if diagnostic.because)),
        notes=tuple(dict.fromkeys(note for diagnostic in diagnostics for note in diagnostic.notes)),
    )
    return replace(group[0], diagnostic=together, rules=tuple(dict.fromkeys(r for one in group for r in one.rules)))

"""The files that a run may write: only those in its paths, also if links lead out of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cgmigrate.lint.diagnostics import Diagnostic, FilePlan
from cgmigrate.project.paths import is_below


def outside(path: str, paths: Iterable[str]) -> str:
    """Return the real path of a file that is in none of the paths, empty for one that is."""
    real = os.path.realpath(path)
    return "" if any(is_below(real, os.path.realpath(top)) for top in paths) else real


def withheld(diagnostics: Sequence[Diagnostic], place: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a file outside of the paths without their fixes; ``place`` is its real path."""
    return tuple(_withheld(diagnostic, place) if diagnostic.applicability else diagnostic for diagnostic in diagnostics)


def not_written(path: str, place: str) -> str:
    """Return the note about a file that gets no comments."""
    return f"{path}: no comment is written, since the file is outside of the paths ({place}); give its path"


def without_fixes(plan: FilePlan) -> FilePlan:
    """Return a plan that rewrites nothing."""
    return FilePlan(diagnostics=plan.diagnostics, skipped=plan.skipped)


def _withheld(diagnostic: Diagnostic, place: str) -> Diagnostic:
    return replace(
        diagnostic,
        fix="",
        applicability=None,
        because="",
        blocked_by=f"a link that leads out of the paths: the file is {place}",
        help="give the path of the file itself, or of this link, to have it rewritten",
        site=-1,
        edits=(),
    )

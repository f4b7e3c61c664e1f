"""What a run may write: only files in the paths that it was given, whatever links lead out of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cgmigrate.lint.diagnostics import Diagnostic, FilePlan
from cgmigrate.project.paths import is_below


def outside(path: str, paths: Iterable[str]) -> str:
    """The real path of a file that is in none of the paths, empty for one that is."""
    real = os.path.realpath(path)
    return "" if any(is_below(real, os.path.realpath(top)) for top in paths) else real


def withheld(diagnostics: Sequence[Diagnostic], place: str) -> tuple[Diagnostic, ...]:
    """Diagnostics of a file at a place outside of the paths: reported, without their fixes."""
    return tuple(_withheld(diagnostic, place) if diagnostic.applicability else diagnostic for diagnostic in diagnostics)


def not_written(path: str, place: str) -> str:
    """The note about a file that gets no comments."""
    return f"{path}: no comment is written, since the file is outside of the paths ({place}); give its path"


def without_fixes(examined: FilePlan) -> FilePlan:
    """An examination of which nothing is rewritten."""
    return FilePlan(diagnostics=examined.diagnostics, skipped=examined.skipped)


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

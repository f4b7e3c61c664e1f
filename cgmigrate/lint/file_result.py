"""The result of checking one file, and how a person chooses among its fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from cgmigrate.megatron.releases import Release

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Fix, LintDiagnostic
    from cgmigrate.lint.explanations import Details
    from cgmigrate.text.edits import Edit


class FixChooser(Protocol):
    """Asks a person which fixes to write; see ``cgmigrate.cli.interactive``."""

    quit: bool

    def choose(self, files: Sequence[FileResult], fixes: Sequence[Fix]) -> set[str]:
        """Return the ids of the fixes of some files that the user accepts."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file with settings: its diagnostics, and its text before and after the fixes.

    ``after`` is None if nothing is rewritten. ``fixed`` are the diagnostics that the rewrite settles, ``edits`` what
    it changes. ``releases`` are the source and the target, None for a file that could not be read. Neither ``known``
    diagnostics, which the baseline has, nor ``hidden`` ones, which comments suppress, are among ``diagnostics``.
    """

    path: str
    data: bytes
    text: str
    diagnostics: tuple[LintDiagnostic, ...]
    skipped: tuple[tuple[int, str, str], ...] = ()
    """Settings of other systems: line, name and owner."""
    after: str | None = None
    bom: bool = False
    fixed: tuple[LintDiagnostic, ...] = ()
    edits: tuple[Edit, ...] = ()
    releases: tuple[Release, Release] | None = None
    known: tuple[LintDiagnostic, ...] = ()
    hidden: tuple[LintDiagnostic, ...] = ()
    together: tuple[FileResult, ...] = ()
    """The other files that are written together with this one, or not at all."""
    declined: tuple[LintDiagnostic, ...] = ()
    """Diagnostics whose fix the user declined."""
    details: Details | None = None
    """What explains the diagnostics to a person, where the report shows it."""
    unread: str = ""
    """Why the file could not be read, whether a diagnostic says so or not; empty if it was read."""

    @property
    def light(self) -> FileResult:
        """The file without what keeps documents and other files in memory."""
        return replace(self, details=None, together=())

    @property
    def remaining(self) -> tuple[LintDiagnostic, ...]:
        """The diagnostics that the rewrite does not settle."""
        fixed = {(diagnostic.rule, diagnostic.place) for diagnostic in self.fixed}
        return tuple(other for other in self.diagnostics if (other.rule, other.place) not in fixed)

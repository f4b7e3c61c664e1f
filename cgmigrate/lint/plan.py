"""The plan of some files: their diagnostics and fixes, made once; reports and writing read it.

A fix is sound if the target release captures with the new settings what the source release captures with the old ones,
and if the edited text, parsed again, has these settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Document, Use
from cgmigrate.linking.merged_files import MergedSites
from cgmigrate.lint.candidates import Candidate, candidates_of
from cgmigrate.lint.diagnostics import Context, Fix, LintDiagnostic, SiteCase
from cgmigrate.lint.edit_sets import EditSet, FileGroup, Place, edit_sets_of, proposals_of
from cgmigrate.lint.examination import ExaminedFile, examine
from cgmigrate.lint.file_diagnostics import FileReport
from cgmigrate.lint.validation import EditedGroup, EditedText, UnwritableError, edited, validated, with_edits
from cgmigrate.lint.withholding import Limits
from cgmigrate.megatron.settings import Settings

if TYPE_CHECKING:
    from cgmigrate.linking.key_groups import KeyGroup

__all__ = ["Plan", "PlannedFile", "UnwritableError", "has_proposals", "make_plan", "plan_alone"]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file of a plan: its diagnostics, and what explains them."""

    path: str
    document: Document
    context: Context
    diagnostics: tuple[LintDiagnostic, ...]
    skipped: tuple[tuple[Use, str], ...]
    """Settings of other systems, each with its owner."""
    cases: Mapping[int, SiteCase]
    """The sites with a known owner, by index."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The diagnostics of some files and the fixes that can be written, in the order of the text."""

    files: tuple[PlannedFile, ...]
    fixes: tuple[Fix, ...]
    group: FileGroup
    cases: Mapping[Place, SiteCase]
    candidates: tuple[Candidate, ...]
    """The edit sets, withheld ones included."""
    _all: EditedGroup | None
    """The texts with all fixes applied, None if these cannot be written together."""

    @property
    def _sets(self) -> dict[str, EditSet]:
        """The edit sets that are written, by the id of the fix."""
        return {one.fix.id: one.edit_set for one in self.candidates if one.is_written}

    def settings(self, ids: Iterable[str], number: int = 0) -> dict[int, Settings]:
        """Return the own settings that some fixes write in a file of the plan, by index of the site."""
        result: dict[int, Settings] = {}
        sets = self._sets
        for one in ids:
            result |= sets[one].in_file(number)
        return result

    def edited(self, ids: Collection[str]) -> tuple[EditedText, ...]:
        """Return the files that some fixes change, with these fixes applied. Raises UnwritableError.

        A part of the fixes makes a text that is not yet validated, so it is parsed.
        """
        if not ids:
            return ()
        sets = self._sets
        if self._all is None or set(ids) != sets.keys():
            return tuple(edited(self.group, self.cases, [sets[one] for one in ids]).texts.values())
        return tuple(self._all.texts.values())


def make_plan(
    files: Sequence[ExaminedFile],
    limits: Sequence[Limits] = (),
    one_by_one: bool = False,
    merge: MergedSites | None = None,
    keys: KeyGroup | None = None,
) -> Plan:
    """Return the plan of files that belong together; ``merge`` says how several files are merged, and ``keys`` which
    of their keys move together. Raises CannotMoveError if they cannot.

    Candidates for fixes are made of all sites and problems; some are withheld, by the ``limits`` of each file; what
    remains is validated as text. ``one_by_one`` says that the edits of each fix alone are needed as well.
    """
    group = FileGroup.of(files, merge)
    limits = limits or [Limits() for _ in files]
    proposals, proposed = proposals_of(group)
    if keys is not None:
        from cgmigrate.lint.key_groups import moved_together

        group, proposals, proposed = moved_together(group, proposals, proposed, keys)
    sets, cases = edit_sets_of(group, proposals, proposed)
    candidates, together = validated(group, cases, candidates_of(group, sets, cases, limits))
    if one_by_one:
        candidates = with_edits(candidates, group, cases, together)
    return Plan(
        _planned_files(group, cases, candidates, limits),
        tuple(one.fix for one in candidates if one.is_written),
        group,
        cases,
        tuple(candidates),
        together,
    )


def has_proposals(file: ExaminedFile) -> bool:
    """Return whether a file has sites to rewrite, if other files and the text allow it."""
    return bool(proposals_of(FileGroup.of([file]))[0])


def plan_alone(path: str, document: Document, context: Context) -> Plan:
    """Return the plan of one file without limits."""
    return make_plan([examine(path, document, context)])


def _planned_files(
    group: FileGroup, cases: Mapping[Place, SiteCase], candidates: Sequence[Candidate], limits: Sequence[Limits]
) -> tuple[PlannedFile, ...]:
    """Return the files of a group with their diagnostics."""
    own: list[dict[int, SiteCase]] = [{} for _ in group.files]
    for (number, index), case in cases.items():
        own[number][index] = case
    decided: list[dict[int, Candidate]] = [{} for _ in group.files]
    for candidate in candidates:
        for number, index in candidate.edit_set.members:
            decided[number][index] = candidate
    return tuple(
        PlannedFile(
            file.path,
            file.document,
            file.context,
            FileReport(file, number, own[number], decided[number], limits[number].enabled).diagnostics(),
            file.skipped,
            own[number],
        )
        for number, file in enumerate(group.files)
    )

"""The plan of some files: their diagnostics and fixes, made once; reports and writing read it.

A fix is sound if the target release captures with the new settings what the source release captures with the old ones,
and if the edited text, parsed again, has these settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import SEVERAL_RELEASES, TESTS_OLD, Document, Problem, Use
from cgmigrate.linking.merged_files import MergedSites
from cgmigrate.lint.candidates import Candidate, candidates_of
from cgmigrate.lint.diagnostics import Context, Fix, LintDiagnostic, SiteCase
from cgmigrate.lint.edit_sets import EditSet, FileGroup, Place, edit_sets_of, proposals_of
from cgmigrate.lint.examination import ExaminedFile, examine
from cgmigrate.lint.problem_diagnostics import problem_diagnostic
from cgmigrate.lint.rules import Rule
from cgmigrate.lint.site_diagnostics import Enabled, SiteOutcome, diagnostics_of
from cgmigrate.lint.validation import EditedGroup, EditedText, UnwritableError, edited, validated, with_edits
from cgmigrate.lint.withholding import Limits
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Settings

if TYPE_CHECKING:
    from cgmigrate.linking.key_groups import KeyGroup


@dataclass(frozen=True, slots=True)
class FileReport:
    """A file of a group, and what was decided about its sites."""

    file: ExaminedFile
    number: int
    """Of the file in its group."""
    cases: Mapping[int, SiteCase]
    """By the index of the site."""
    decided: Mapping[int, Candidate]
    """The candidate that each site or problem of the file belongs to, by its index."""
    enabled: Enabled

    def diagnostics(self) -> tuple[LintDiagnostic, ...]:
        """Return the diagnostics of the file, in the order of the text."""
        diagnostics = [*self.file.diagnostics, *self._of_problems(), *self._of_sites()]
        with_help = [_with_help(one, self.file.context, self.file.document.catalogue) for one in diagnostics]
        return tuple(sorted(with_help, key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule)))

    def _of_problems(self) -> Iterator[LintDiagnostic]:
        for problem, rule in self.file.problems:
            yield self._of_problem(problem, rule, self.decided.get(problem.index))

    def _of_problem(self, problem: Problem, rule: Rule, candidate: Candidate | None) -> LintDiagnostic:
        if candidate is None:
            return problem_diagnostic(problem, rule, None, "")
        if candidate.write_error:
            return _of_withheld_set(problem_diagnostic(problem, rule, None, candidate.write_error), candidate)
        diagnostic = problem_diagnostic(problem, rule, candidate.fix, "")
        return self._withheld(diagnostic, candidate) if candidate.withheld else diagnostic

    def _of_sites(self) -> Iterator[LintDiagnostic]:
        for index, case in self.cases.items():
            yield from self._of_site(case, self.decided.get(index))

    def _of_site(self, case: SiteCase, candidate: Candidate | None) -> Iterator[LintDiagnostic]:
        context, place = self.file.context, (self.number, case.site.index)
        own = candidate.edit_set.rewrites.get(place) if candidate else None
        if candidate is None or (own is None and not candidate.write_error):
            for diagnostic in diagnostics_of(case, context, SiteOutcome(), self.enabled):
                is_withheld = case.withheld_set and diagnostic.blocked_by
                yield replace(diagnostic, withheld_set=case.withheld_set) if is_withheld else diagnostic
            return
        if candidate.write_error:
            blocked = case.block(f"the text cannot be changed safely: {candidate.write_error}")
            for diagnostic in diagnostics_of(blocked, context, SiteOutcome(unwritable=own), self.enabled):
                yield _of_withheld_set(diagnostic, candidate) if diagnostic.blocked_by else diagnostic
            return
        outcome = SiteOutcome(candidate.fix, own, candidate.quotes.get(place, {}))
        for diagnostic in diagnostics_of(case, context, outcome, self.enabled):
            yield self._withheld(diagnostic, candidate) if candidate.withheld and diagnostic.fix else diagnostic

    def _withheld(self, diagnostic: LintDiagnostic, candidate: Candidate) -> LintDiagnostic:
        """Return a diagnostic without the fix that is withheld, and with the reason."""
        assert candidate.withheld is not None
        return _of_withheld_set(candidate.withheld.explain(diagnostic, self.file.path), candidate)


def _of_withheld_set(diagnostic: LintDiagnostic, candidate: Candidate) -> LintDiagnostic:
    return replace(diagnostic, withheld_set=candidate.fix.id)


def _with_help(diagnostic: LintDiagnostic, context: Context, catalogue: Catalogue) -> LintDiagnostic:
    """Return a diagnostic that has neither a fix nor help with the help of its rule, if the target has its names."""
    if TESTS_OLD in diagnostic.blocked_by:
        return replace(diagnostic, help="leave it: the deprecated name is what this test is about")
    if SEVERAL_RELEASES in diagnostic.blocked_by and diagnostic.help:
        return replace(diagnostic, help=f"leave it if this branch is for older releases; else {diagnostic.help}")
    if diagnostic.fix or diagnostic.help:
        return diagnostic
    rule = context.rules.get(diagnostic.rule)
    is_known = rule is not None and not catalogue.has_newer(rule.help, context.target)
    return replace(diagnostic, help=rule.help) if rule is not None and is_known else diagnostic


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

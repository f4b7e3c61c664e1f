"""The diagnostics of one file, once it is decided which fixes are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from cgmigrate.documents.sites import SEVERAL_RELEASES, TESTS_OLD, Problem
from cgmigrate.lint.candidates import Candidate
from cgmigrate.lint.diagnostics import Context, LintDiagnostic, SiteCase
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.problem_diagnostics import problem_diagnostic
from cgmigrate.lint.rules import Rule
from cgmigrate.lint.site_diagnostics import Enabled, SiteOutcome, diagnostics_of
from cgmigrate.megatron.catalogue import Catalogue


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

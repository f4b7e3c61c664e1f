"""Diagnostics about what is no site: text that cannot be read, and names in code that change with the settings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cgmigrate.documents.sites import Document, Problem
from cgmigrate.lint.diagnostics import Applicability, Context, Diagnostic, FilePlan
from cgmigrate.lint.kinds import rule_for
from cgmigrate.lint.rules import Rule
from cgmigrate.lint.soundness import write_error
from cgmigrate.megatron.releases import SPLIT_IN


def enabled_problems(document: Document, context: Context) -> list[tuple[Problem, Rule]]:
    """Return the problems of a document with their rules, for the rules that are enabled and apply to the target."""
    return [
        (_without_suppressed_fix(problem, context), rule)
        for problem in document.problems
        if (rule := rule_for(problem.kind, context.rules)) is not None and rule.concerns(context.target)
    ]


def _without_suppressed_fix(problem: Problem, context: Context) -> Problem:
    return replace(problem, replacement="") if problem.span in context.suppressed else problem


@dataclass(frozen=True, slots=True)
class ProblemPlanner:
    """Plans the fixes of problems beside those of the sites.

    ``writable`` says that the rewrites of all sites and problems can be written together.
    """

    document: Document
    context: Context
    plan: FilePlan
    writable: bool

    def diagnostic(self, problem: Problem, rule: Rule) -> Diagnostic:
        """Return the diagnostic of a problem, and add its fix to the plan."""
        diagnostic = Diagnostic(
            rule.id, rule.severity, problem.span, problem.message, site=problem.index, reports=problem.kind
        )
        if not problem.replacement:
            return replace(diagnostic, blocked_by=problem.blocked_by, help=problem.advice)
        if not self.writable and (error := write_error(self.document, {problem.index: {}})):
            blocked_by = f"the text cannot be changed safely: {error}"
            return replace(diagnostic, blocked_by=blocked_by, help=f"write `{problem.replacement}` by hand")
        risk = self._risk(problem)
        (self.plan.unsafe if risk else self.plan.safe)[problem.index] = {}
        return replace(
            diagnostic,
            fix=problem.fix or f"write `{problem.replacement}`",
            applicability=Applicability.UNSAFE if risk else Applicability.SAFE,
            because=risk,
        )

    def _risk(self, problem: Problem) -> str:
        """Return why the fix of a problem is unsafe, empty if it is safe."""
        if problem.risk:
            return problem.risk
        if self.context.source >= SPLIT_IN:
            return f"the code already runs on megatron-core {self.context.source}, where it does something else"
        return self.document.risk(problem.index)

"""The plan of one document in tests: the settings that its fixes write, by index of the site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cgmigrate.documents.sites import Document, Use
from cgmigrate.lint.diagnostics import Applicability, Context, LintDiagnostic
from cgmigrate.lint.plan import Plan, plan_alone
from cgmigrate.megatron.settings import Settings


@dataclass(frozen=True)
class Examined:
    """A plan of one file, by the sites that are rewritten."""

    plan: Plan

    @property
    def diagnostics(self) -> Sequence[LintDiagnostic]:
        return self.plan.files[0].diagnostics

    @property
    def skipped(self) -> Sequence[tuple[Use, str]]:
        """The names that get no diagnostic, each with its owner."""
        return self.plan.files[0].skipped

    @property
    def safe(self) -> dict[int, Settings]:
        return self._settings(Applicability.SAFE)

    @property
    def unsafe(self) -> dict[int, Settings]:
        return self._settings(Applicability.UNSAFE)

    def together(self, index: int) -> tuple[int, ...]:
        """The sites that are rewritten together with one."""
        sets = [tuple(self.plan.settings([fix.id])) for fix in self.plan.fixes]
        return next((some for some in sets if index in some), (index,))

    def _settings(self, applicability: Applicability) -> dict[int, Settings]:
        return self.plan.settings(fix.id for fix in self.plan.fixes if fix.applicability is applicability)


def examine(document: Document, context: Context) -> Examined:
    """Return the plan of a document by itself."""
    return Examined(plan_alone("", document, context))

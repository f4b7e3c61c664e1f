"""Diagnostics about what is no site: text that cannot be read, and names in code that change with the settings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from cgmigrate.documents.sites import Document, Problem, ProblemKind
from cgmigrate.lint.diagnostics import Context, Fix, LintDiagnostic
from cgmigrate.lint.kinds import rule_for
from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import SPLIT_IN
from cgmigrate.megatron.settings import SCOPE

_OF_READERS = frozenset((ProblemKind.READ, ProblemKind.NAME_IN_TEXT, ProblemKind.DEFINITION, ProblemKind.ENUM_CLASS))
"""Kinds of problems whose fixes write names that megatron-core has since 0.18."""
_WORD = re.compile(r"(?:--)?\w[\w-]*")
"""A word of a text that may be a setting or a flag."""


def problems_of(document: Document, context: Context) -> list[tuple[Problem, Rule]]:
    """Return the problems of a document with their rules, for the rules that apply to the target.

    A setting that the target does not deprecate is no problem there.
    """
    catalogue = document.catalogue
    of_target = catalogue.deprecated_at(context.target)
    current = {one for one in catalogue.deprecated if one not in of_target or catalogue[one].is_gone_in(context.source)}
    return [
        (_with_target(problem, context, document.catalogue), rule)
        for problem in document.problems
        if (rule := rule_for(problem.kind, context.rules)) is not None
        and rule.concerns(context.target)
        and problem.concerns(context.source, context.target)
        and _is_installed(problem, context)
        and not ((settings := _settings_of(problem, document)) and settings <= current)
    ]


def _is_installed(problem: Problem, context: Context) -> bool:
    """Return whether the project surely has the release of a package for which it is a problem, if it is about one."""
    if problem.package_since is None:
        return True
    from cgmigrate.project.pins.package_pins import side_of

    return bool(context.path) and side_of(Path(context.path).parent, *problem.package_since) is False


def _settings_of(problem: Problem, document: Document) -> frozenset[str]:
    """Return the settings that a problem is about: those that the code names, or those that its text has."""
    if problem.settings:
        return problem.settings
    by_key = document.catalogue.by_key
    words = _WORD.findall(document.text[problem.span.start : problem.span.end])
    # A string may be a flag without its dashes.
    keys = (key for word in words for key in (word, f"--{word}"))
    return frozenset(by_key[key] for key in keys if key in by_key) & document.catalogue.deprecated


def _with_target(problem: Problem, context: Context, catalogue: Catalogue) -> Problem:
    """Return a problem without its fix or advice if the target lacks the names that these write."""
    if context.target >= SPLIT_IN or problem.kind not in _OF_READERS:
        return problem
    of_implementation = problem.settings and SCOPE not in problem.settings
    is_known = of_implementation and not catalogue.has_newer(problem.advice, context.target)
    return replace(problem, replacement="", if_proved="", advice=problem.advice if is_known else "")


def risk_of(problem: Problem, document: Document, context: Context) -> str:
    """Return why the fix of a problem is unsafe, empty if it is safe."""
    if problem.risk:
        return problem.risk
    if context.source >= SPLIT_IN:
        return f"the code already runs on megatron-core {context.source}, where it does something else"
    return "" if problem.is_built else document.risk(problem.index)


def problem_diagnostic(problem: Problem, rule: Rule, fix: Fix | None, write_error: str) -> LintDiagnostic:
    """Return the diagnostic of a problem; ``write_error`` says why its fix cannot be written."""
    diagnostic = LintDiagnostic(
        rule.id, rule.severity, problem.span, problem.message, site=problem.index, reports=problem.kind
    )
    if fix is not None:
        text = problem.fix or f"write `{problem.replacement or problem.if_proved}`"
        return replace(diagnostic, fix=fix, fix_text=text, because="; ".join(fix.because))
    if problem.replacement and write_error:
        blocked_by = f"the text cannot be changed safely: {write_error}"
        return replace(diagnostic, blocked_by=blocked_by, help=f"write `{problem.replacement}` by hand")
    return replace(diagnostic, blocked_by=problem.blocked_by, help=problem.advice)

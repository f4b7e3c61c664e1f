"""Applying the fixes of a plan that the user chose to the files of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.plan import Plan


@dataclass(frozen=True, slots=True)
class ChosenFixes:
    """The fixes that options allow, and those of them that are applied, by their ids."""

    offered: frozenset[str]
    chosen: frozenset[str]


def applied(files: Sequence[FileResult], plan: Plan, choice: ChosenFixes) -> list[FileResult]:
    """Return files with the chosen fixes applied. Raises UnwritableError."""
    texts = {text.path: text for text in plan.edited(choice.chosen)}
    result = []
    for checked in files:
        fixed = tuple(one for one in checked.diagnostics if one.fix and one.fix.id in choice.chosen)
        declined = choice.offered - choice.chosen
        checked = replace(
            checked, declined=tuple(one for one in checked.diagnostics if one.fix and one.fix.id in declined)
        )
        text = texts.get(checked.path)
        result.append(replace(checked, after=text.text, fixed=fixed, edits=text.edits) if text else checked)
    return _with_transactions(result, plan, choice)


def _with_transactions(files: Sequence[FileResult], plan: Plan, choice: ChosenFixes) -> list[FileResult]:
    """Return files, each with those that are written together with it since they share a fix."""
    group = {checked.path: {checked.path} for checked in files}
    for fix in plan.fixes:
        if fix.id in choice.chosen and len(fix.paths) > 1:
            united = set().union(*(group[path] for path in fix.paths))
            group |= dict.fromkeys(united, united)
    return [
        replace(checked, together=tuple(other.light for other in files if _joins(other, checked, group[checked.path])))
        for checked in files
    ]


def _joins(other: FileResult, checked: FileResult, group: set[str]) -> bool:
    return other.path != checked.path and other.path in group and other.after is not None

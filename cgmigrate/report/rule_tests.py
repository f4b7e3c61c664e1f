"""The results of rule tests, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.lint.rule_tests import Tested
from cgmigrate.text.plurals import counted


def tested_text(tested: Tested) -> str:
    """Return one line for a rule that passes, and all failures of one that fails."""
    if not tested.failures:
        return f"ok    {tested.title} ({counted(tested.examples, 'example')})\n"
    lines = [f"FAIL  {tested.title}", *(f"  {failure}" for failure in tested.failures)]
    return "\n".join(line.replace("\n", "\n  ") for line in lines) + "\n"


def totals(tested: Sequence[Tested]) -> str:
    """Return the last line: the number of rules and examples, and of failures."""
    rules, examples = counted(len(tested), "rule"), counted(sum(result.examples for result in tested), "example")
    failed = sum(bool(result.failures) for result in tested)
    outcome = f"{counted(failed, 'rule')} failed" if failed else "all pass"
    return f"Tested {rules}, {examples}: {outcome}."

"""What came of testing rules, as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.lint.rule_tests import Tested


def tested_text(tested: Tested) -> str:
    """One line for a rule whose examples hold; for another, what is wrong, one place after the other."""
    if not tested.failures:
        return f"ok    {tested.title} ({_count(tested.examples, 'example')})\n"
    lines = [f"FAIL  {tested.title}", *(f"  {failure}" for failure in tested.failures)]
    return "\n".join(line.replace("\n", "\n  ") for line in lines) + "\n"


def totals(tested: Sequence[Tested]) -> str:
    """The last line: how much was tested, and how much of it failed."""
    rules, examples = _count(len(tested), "rule"), _count(sum(result.examples for result in tested), "example")
    failed = sum(bool(result.failures) for result in tested)
    outcome = f"{_count(failed, 'rule')} failed" if failed else "all hold"
    return f"Tested {rules}, {examples}: {outcome}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

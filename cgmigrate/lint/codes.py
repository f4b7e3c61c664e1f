"""The codes that a run selects or ignores: each has to be the beginning of a rule's code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.lint.run import Run
    from cgmigrate.project.options import RunOptions


class UnknownCodeError(ValueError):
    """No rule has a code that begins like this."""


def check_codes(run: Run) -> None:
    """Refuse a code that selects no rule, since it would turn a gate off unnoticed.

    Raises UnknownCodeError and RuleError.
    """
    for code in codes_of(run.options):
        known = (run.rules(replace(run.options, rule_folders=folders)) for folders in _rule_folders(run))
        if not any(rule.startswith(code) for rules in known for rule in rules):
            raise UnknownCodeError(f"no rule's code begins with {code} (`cgmigrate rules` lists them)")


def codes_of(options: RunOptions) -> list[str]:
    """Return all codes that options name."""
    per_file = (code for _, codes in options.per_file_ignores for code in codes)
    named = options.select + options.extend_select + options.ignore + options.fixable + options.unfixable
    return [*named, *per_file]


def _rule_folders(run: Run) -> Iterator[tuple[str, ...]]:
    """Yield the rule folders of the working directory's configuration, then those of the paths' configurations."""
    assert run.configurations is not None
    own = run.options.rule_folders
    yield run.configurations.for_run().extend_rules + own
    names = (run.options.stdin[0],) if run.options.stdin else run.paths
    around = {name if os.path.isdir(name) else os.path.dirname(name) for name in names}
    for folder in sorted(map(os.path.abspath, around)):
        if of_folder := run.configurations.for_folder(folder).extend_rules:
            yield of_folder + own

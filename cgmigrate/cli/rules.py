"""``cgmigrate rules``: the rules that exist, and tests of a team's own rules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, command_errors
from cgmigrate.text.escaping import in_line, in_text

if TYPE_CHECKING:
    from cgmigrate.lint.rules import Rule


def list_rules(folders: tuple[str, ...], *, as_json: bool) -> None:
    """Print all rules, one a line, or as a JSON document."""
    show_rules(load_rules(folders).values(), as_json=as_json)


def show_rules(rules: Iterable[Rule], *, as_json: bool) -> None:
    """Print some rules, one a line, or as a JSON document."""
    if as_json:
        from cgmigrate.report.explained_json import rules_document

        click.echo(rules_document(rules), nl=False)
        return
    from cgmigrate.report.explain import rule_line

    for rule in rules:
        click.echo(in_line(rule_line(rule)))


def test_rules(folder: str | None) -> int:
    """Test the rules of a folder, by default those that ship; return the exit status."""
    from cgmigrate.lint.rule_tests import run_folder, run_shipped
    from cgmigrate.report.rule_tests import tested_text, totals

    tested = []
    with command_errors():
        for result in run_shipped() if folder is None else run_folder(Path(folder)):
            click.echo(in_text(tested_text(result)), nl=False)
            tested.append(result)
    click.echo(totals(tested), err=True)
    return DIAGNOSTICS if any(result.failures for result in tested) else CLEAN


def load_rules(folders: tuple[str, ...]) -> dict[str, Rule]:
    """Return all rules that ship, those of the configuration's folders, and those of ``folders``, by code."""
    from cgmigrate.lint.rules import load
    from cgmigrate.megatron.rule_data import is_of_upgrade, upgrade_rules

    with command_errors():
        own = [one for one in (*configured_folders(folders), *folders) if not is_of_upgrade(one)]
        return load([Path(folder) for folder in (upgrade_rules(), *own)])


def configured_folders(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of rules of the configuration. Raises ConfigurationError."""
    from cgmigrate.project.cascade import Configurations

    return Configurations(rule_folders=folders).for_run().extend_rules

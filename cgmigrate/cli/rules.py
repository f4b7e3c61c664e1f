"""``cgmigrate rules``: the rules that exist, and tests of a team's own rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, CommandError, command_errors
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


def test_rules(folder: str | None, mcore: Sequence[str] = ()) -> int:
    """Test the rules of a folder, by default those that ship; return the exit status.

    ``mcore`` are releases of megatron-core that build the settings of its entries; the installed one is added.
    """
    from cgmigrate.lint.rule_tests import run_folder, run_shipped
    from cgmigrate.report.explain import tested_text, totals

    tested = []
    with command_errors():
        for result in run_shipped() if folder is None else run_folder(Path(folder)):
            click.echo(in_text(tested_text(result)), nl=False)
            tested.append(result)
    click.echo(totals(tested), err=True)
    # A rule that cannot be read has no forms to compare.
    is_wrong = any(result.failures for result in tested) or _judge_packs(folder, mcore)
    return DIAGNOSTICS if is_wrong else CLEAN


def _judge_packs(folder: str | None, mcore: Sequence[str]) -> bool:
    """Print the verdicts of the releases on the entries of a folder; return whether one is wrong."""
    from cgmigrate.verify.mcore import MCoreError, homes_of, lacks_torch
    from cgmigrate.verify.pack_forms import packs_of
    from cgmigrate.verify.packs import WRONG, judge, summary

    with command_errors():
        packs = packs_of(folder)
    if not packs:
        return False
    try:
        homes = homes_of(mcore, lambda line: click.echo(in_line(line), err=True))
    except MCoreError as error:
        raise CommandError(str(error)) from error
    if (missing := lacks_torch(homes)) and mcore:
        raise CommandError(missing)
    judged = judge(packs, {} if missing else homes)
    names: dict[tuple[str, str], list[str]] = {}
    for one in judged:
        names.setdefault((one.verdict, one.reason), []).append(one.name)
    for (verdict, reason), same in names.items():
        click.echo(in_text(f"{verdict:<10}  {', '.join(same)}: {reason}\n"), nl=False)
    click.echo(in_line(summary(judged, homes)), err=True)
    return any(one.verdict == WRONG for one in judged)


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

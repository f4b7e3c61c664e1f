"""``cgmigrate rules`` and ``cgmigrate explain``: the rules that exist, one rule, and tests of a team's own rules."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, command_errors
from cgmigrate.text.escaping import in_line, in_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cgmigrate.lint.rules import Rule


def list_rules(folders: tuple[str, ...]) -> None:
    """Print all rules, one a line."""
    for rule in _load(folders).values():
        click.echo(in_line(f"{rule.id}  {rule.name:44} {rule.summary}{' (preview)' if rule.preview else ''}"))


def explain(name: str, folders: tuple[str, ...]) -> None:
    """Print a rule, given its code or name, or a setting of the catalogue or of the known releases.

    Raises click.UsageError.
    """
    from cgmigrate.report.explain import rule_text

    rules = _load(folders)
    rule = rules.get(name.upper()) or next((rule for rule in rules.values() if rule.name == name), None)
    click.echo(in_text(rule_text(rule) if rule else _setting_text(name, folders, rules)), nl=False)


def _setting_text(name: str, folders: tuple[str, ...], rules: Mapping[str, Rule]) -> str:
    """Return a setting by its name or flag: what the releases accept, and its entry in the catalogue.

    Raises click.UsageError if neither knows it.
    """
    from cgmigrate.megatron.tables import load
    from cgmigrate.report.release_tables import names, setting_text

    tables = load()
    text = "\n".join(filter(None, (setting_text(name, tables), _entry_text(name, folders, rules))))
    if not text:
        similar = [code for code in rules if code.startswith(name.upper())]
        similar = similar or difflib.get_close_matches(name.upper(), rules, n=3)
        similar = similar or difflib.get_close_matches(name, names(tables), n=3)
        hint = f"; did you mean {', '.join(similar[:3])}?" if similar else ""
        raise click.UsageError(f"no rule or setting {name}{hint} (`cgmigrate rules` lists the rules)")
    return text


def _entry_text(name: str, folders: tuple[str, ...], rules: Mapping[str, Rule]) -> str:
    """Return a setting of the catalogue by its name as text; empty if there is none."""
    from cgmigrate.megatron.catalogue import load
    from cgmigrate.report.settings import entry_text

    catalogue = load((*_configured_folders(folders), *folders))
    setting = catalogue.get(name)
    return entry_text(setting, catalogue, rules) if setting else ""


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


def _load(folders: tuple[str, ...]) -> dict[str, Rule]:
    """Return the rules that ship, those of the configuration's folders, and those of ``folders``, by code."""
    from cgmigrate.lint.rules import load

    with command_errors():
        return load([Path(folder) for folder in (*_configured_folders(folders), *folders)])


def _configured_folders(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of rules of the configuration. Raises ConfigurationError."""
    from cgmigrate.project.cascade import Configurations

    return Configurations(rule_folders=folders).for_run().extend_rules

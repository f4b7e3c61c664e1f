"""`check --show-files` and `check --show-settings`: the files of a run, and the settings in effect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.console import print_input_error
from cgmigrate.project.configuration import ConfigurationError
from cgmigrate.project.inputs import InputError
from cgmigrate.project.settings_text import settings_text
from cgmigrate.text.escaping import in_line, in_text

if TYPE_CHECKING:
    from cgmigrate.lint.run import Run


def show_files_of(run: Run) -> bool:
    """Print the path of every file that would be searched; return whether a path could not be used."""
    failed = False
    try:
        for name in run.discovery.names():
            if isinstance(name, InputError):
                failed = failed or name.missing
                print_input_error(name)
            else:
                click.echo(in_line(name))
    except ConfigurationError as error:
        click.echo(in_text(f"Error: {error}"), err=True)
        failed = True
    return failed


def show_settings_of(run: Run) -> bool:
    """Print the settings in effect for the run's paths; return whether a path or configuration could not be used.

    Paths with the same settings share one listing.
    """
    assert run.configurations is not None
    failed = False
    paths_by_settings: dict[str, list[str]] = {}
    stdin = run.options.stdin
    for path in [stdin[0]] if stdin else run.paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        if not stdin and not os.path.lexists(path):
            click.echo(in_line(f"error: {path}: no such file or directory"), err=True)
            failed = True
            continue
        try:
            text = settings_text(run.configurations.for_folder(os.path.abspath(folder)), run.options)
        except ConfigurationError as error:
            click.echo(in_text(f"Error: {error}"), err=True)
            failed = True
        else:
            paths_by_settings.setdefault(text, []).append(path)
    for number, (text, paths) in enumerate(paths_by_settings.items()):
        click.echo("\n" if number else "", nl=False)
        click.echo(f"{in_line('# for ' + ', '.join(paths))}\n{in_text(text)}", nl=False)
    return failed

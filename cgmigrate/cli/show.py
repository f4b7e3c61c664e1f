"""What a run would do, without doing it: which files it would look at, and with which settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from cgmigrate.project.configuration import ConfigurationError
from cgmigrate.project.configuration_file import settings_text
from cgmigrate.project.inputs import InputError
from cgmigrate.text.escaping import in_line, in_text

if TYPE_CHECKING:
    from cgmigrate.lint.run import Run


def show_files_of(run: Run) -> bool:
    """Print the path of every file that would be looked at; return whether a path could not be used."""
    failed = False
    try:
        for name in run.discovery.names():
            if isinstance(name, InputError):
                failed = failed or name.missing
                kind = "error" if name.missing else "warning"
                click.echo(in_line(f"{kind}: {name.path}: {name.reason}"), err=True)
            else:
                click.echo(in_line(name))
    except ConfigurationError as error:
        click.echo(in_text(f"Error: {error}"), err=True)
        failed = True
    return failed


def show_settings_of(run: Run) -> bool:
    """Print what holds for each of the run's paths, once where several share it; return whether that failed."""
    assert run.configurations is not None
    failed = False
    told: dict[str, list[str]] = {}
    handed = run.options.stdin
    for path in [handed[0]] if handed else run.paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        if not handed and not os.path.lexists(path):
            click.echo(in_line(f"error: {path}: no such file or directory"), err=True)
            failed = True
            continue
        try:
            text = settings_text(run.configurations.for_folder(os.path.abspath(folder)), run.options)
        except ConfigurationError as error:
            click.echo(in_text(f"Error: {error}"), err=True)
            failed = True
        else:
            told.setdefault(text, []).append(path)
    for number, (text, paths) in enumerate(told.items()):
        click.echo("\n" if number else "", nl=False)
        click.echo(f"{in_line('# for ' + ', '.join(paths))}\n{in_text(text)}", nl=False)
    return failed

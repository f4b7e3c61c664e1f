"""``cgmigrate undo``: restores the files of the last run, and prints their paths."""

from __future__ import annotations

import os

import click

from cgmigrate.project.undo import undo
from cgmigrate.text.escaping import in_line
from cgmigrate.text.plurals import counted


def undo_last_run() -> bool:
    """Restore the files that the last run wrote; return whether one could not be restored."""
    done = undo()
    folder = os.getcwd() + os.sep
    for path in done.restored:
        click.echo(in_line(f"restored {path.removeprefix(folder)}"), err=True)
    for problem in done.problems:
        click.echo(in_line(f"error: {problem.replace(folder, '')}"), err=True)
    if done.restored or (done.when and not done.problems):
        click.echo(f"Undid the run of {done.when}: {counted(len(done.restored), 'file')} restored.", err=True)
    elif not done.problems:
        click.echo("Nothing to undo: no run has written files in this project.", err=True)
    return bool(done.problems)

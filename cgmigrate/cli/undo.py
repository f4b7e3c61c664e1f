"""``cgmigrate undo``: restore the files of the last run, and say so."""

from __future__ import annotations

import os

import click

from cgmigrate.project.undo import undo
from cgmigrate.text.escaping import in_line
from cgmigrate.text.plurals import counted


def undo_last_run() -> bool:
    """Restore what the last run wrote; return whether a file could not be restored."""
    done = undo()
    here = os.getcwd() + os.sep
    for path in done.restored:
        click.echo(in_line(f"restored {path.removeprefix(here)}"), err=True)
    for problem in done.problems:
        click.echo(in_line(f"error: {problem.removeprefix(here)}"), err=True)
    if done.restored or (done.when and not done.problems):
        click.echo(f"Undid the run of {done.when}: {counted(len(done.restored), 'file')} restored.", err=True)
    elif not done.problems:
        click.echo("Nothing to undo: no run has written files in this project.", err=True)
    return bool(done.problems)

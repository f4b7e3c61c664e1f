"""``cgmigrate undo``: restores the files of the last run and prints their paths, or lists the runs."""

from __future__ import annotations

import os

import click

from cgmigrate.project.undo import WrittenSet, runs_to_undo, undo
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


def list_runs() -> None:
    """Print the runs that can be undone, the last one first, with the files that were written together on one line."""
    for run in runs_to_undo():
        number = len({path for written in run.sets for path in written.paths})
        click.echo(f"{run.when}: {counted(number, 'file')}")
        for written in run.sets:
            click.echo(in_line(f"  {_description(written)}"))


def _description(written: WrittenSet) -> str:
    folder = os.getcwd() + os.sep
    paths = ", ".join(path.removeprefix(folder) for path in written.paths)
    return f"{paths} (set {written.name})" if len(written.paths) > 1 and written.name else paths

"""``fix --undo``: restore the files of the last run, and say so."""

from __future__ import annotations

import os

import click

from cgmigrate.escaping import in_line


def undo_last_run() -> bool:
    """Restore what the last run wrote; return whether a file could not be restored."""
    from cgmigrate.journal import undo

    done = undo()
    here = os.getcwd() + os.sep
    if not done.when:
        click.echo("Nothing to undo: no run has written files in this project.", err=True)
        return False
    for path in done.restored:
        click.echo(in_line(f"restored {path.removeprefix(here)}"), err=True)
    for problem in done.problems:
        click.echo(in_line(f"error: {problem.removeprefix(here)}"), err=True)
    number = len(done.restored)
    click.echo(f"Undid the run of {done.when}: {number} file{'' if number == 1 else 's'} restored.", err=True)
    return bool(done.problems)

"""What a command does first: it finishes or reverts what a killed run was writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cgmigrate.cli.exit_status import CLEAN, ERROR
from cgmigrate.project.cache_folder import records

if TYPE_CHECKING:
    from cgmigrate.project.recovery import Recovery


def recover(paths: Sequence[str] = ()) -> int:
    """Recover the interrupted sets of the working directory's checkout and of these paths; return the exit status."""
    if not records():
        return CLEAN
    from cgmigrate.project import recovery

    folders = [".", *(path for path in paths if path != "-")]
    return max([_report(ended) for ended in recovery.recover(folders)], default=CLEAN)


def _report(recovery: Recovery) -> int:
    import os

    import click

    from cgmigrate.text.escaping import in_line
    from cgmigrate.text.plurals import counted

    number = counted(recovery.files, "file")
    if recovery.is_live:
        effect = "this run may read some of them before and some after"
        click.echo(f"warning: another cgmigrate process is writing {number}; {effect}", err=True)
        return CLEAN
    folder = os.getcwd() + os.sep
    for problem in recovery.reverted.problems:
        click.echo(in_line(f"error: {problem.removeprefix(folder)}"), err=True)
    if not recovery.reverted.failed:
        verb = "Finished" if recovery.finished else "Reverted"
        click.echo(f"{verb} an interrupted write of {number}{_rest(recovery)}.", err=True)
    return ERROR if recovery.reverted.problems else CLEAN


def _rest(recovery: Recovery) -> str:
    """Return what is left to the user, as the end of the line."""
    if not (changed := len(recovery.reverted.changed)):
        return ""
    files, pronoun = ("file", "it fits") if changed == 1 else (f"{changed} files", "they fit")
    return f", except for the {files} that changed since: check that {pronoun} the others"

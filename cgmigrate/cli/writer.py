"""Writing files for a command: recorded first, so that the run can be undone; problems are printed at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from cgmigrate.text.escaping import in_line
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.cli.commits import SetCommits
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.project.edit_sets import FileChange
    from cgmigrate.project.journal import Journal


def _change(checked: FileResult) -> FileChange:
    from cgmigrate.project.edit_sets import FileChange
    from cgmigrate.text.encoding import encode

    assert checked.after is not None
    return FileChange(checked.path, checked.data, encode(checked.after, checked.bom))


class RunWriter:
    """Writes the rewritten texts of a run, so that it can be undone; ``message`` prints a line for each file.

    ``commits`` commits each set, None where nothing is committed.
    """

    def __init__(self, message: Callable[[str], None], commits: SetCommits | None = None) -> None:
        self._message, self._commits = message, commits
        self.problems: list[str] = []
        self.unwritten = 0
        """Diagnostics that remain because their files could not be written."""
        self._journal: Journal | None = None
        self._folders: set[str] = set()

    def write(self, checked: FileResult, verb: str) -> bool:
        """Write the rewritten text of a file that is a set of its own; see `write_set`."""
        return self.write_set(checked.path, [checked], verb)

    def write_set(self, name: str, files: Sequence[FileResult], verb: str) -> bool:
        """Write the rewritten texts of all files of a set, or of none; return False if that failed.

        `print_problems` says why.
        """
        from cgmigrate.project.edit_sets import ChangeSet
        from cgmigrate.project.journal import Journal
        from cgmigrate.project.transaction import write_set
        from cgmigrate.project.write import WriteError
        from cgmigrate.report.folding import places_of

        self._journal = self._journal or Journal()
        try:
            write_set(ChangeSet(name, tuple(map(_change, files))), self._journal)
        except WriteError as error:
            self.problems.append(str(error))
            self.unwritten += sum(places_of(checked.fixed) for checked in files)
            return False
        for checked in files:
            number = places_of(checked.fixed)
            self._message(f"{verb} {checked.path}" + (f" ({counted(number, 'diagnostic')})" if number else ""))
        if self._commits is not None and (problem := self._commits.commit(files)):
            self.problems.append(problem)
        return True

    def remove_leftovers(self, path: str) -> None:
        """Remove temporary files beside a file that a killed run has left."""
        folder = os.path.dirname(os.path.realpath(path))
        if folder not in self._folders:
            from cgmigrate.project.temporary_files import remove_leftovers

            self._folders.add(folder)
            remove_leftovers(folder)

    def print_problems(self) -> bool:
        """Print what went wrong; return whether a file could not be written."""
        for problem in self.problems:
            click.echo(in_line(f"error: {problem}"), err=True)
        if self._journal is not None and self._journal.failure:
            part = " as a whole" if self._journal.recorded else ""
            click.echo(in_line(f"warning: this run cannot be undone{part}: {self._journal.failure}"), err=True)
        return bool(self.problems)

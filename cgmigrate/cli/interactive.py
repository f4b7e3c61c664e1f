"""``fix --interactive``: show each change and ask, as ``git add -p`` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cgmigrate.text.diff import unified_diff
from cgmigrate.text.edits import apply
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Fix, LintDiagnostic
    from cgmigrate.lint.file_result import FileResult

_HELP = """\
y - write this change
n - skip this change
q - quit: skip this change and all that are left
a - write this change and all later ones of this file
d - skip this change and all later ones of this file
? - print help"""


_LETTERS = "y,n,q,a,d,?"


@dataclass(slots=True)
class Chooser:
    """Asks the user about each change.

    ``show`` returns a path, text and diagnostic as lines, ``readable`` a diff for a terminal. ``quit`` is
    set once the user wants no more questions.
    """

    show: Callable[[str, str, LintDiagnostic], str]
    readable: Callable[[str], str]
    quit: bool = False

    def choose(self, files: Sequence[FileResult], fixes: Sequence[Fix]) -> set[str]:
        """Return the ids of the fixes that the user accepts."""
        accepted: set[str] = set()
        answer = ""
        for number, fix in enumerate(fixes, 1):
            if self.quit or answer == "d":
                break
            if answer != "a":
                of_fix = [checked for checked in files if checked.path in fix.paths]
                answer = self._answer_to(of_fix, fix, f"({number}/{len(fixes)})")
            if answer in ("y", "a"):
                accepted.add(fix.id)
        return accepted

    def _answer_to(self, files: Sequence[FileResult], fix: Fix, place: str) -> str:
        """Show one fix in all of its files, with the diagnostics that it settles; return the letter of the answer."""
        if not fix.edits:
            message = f"{', '.join(fix.paths)}: a change cannot be written alone; fix without --interactive writes it"
            click.echo(in_line(message), err=True)
            return "n"
        for checked in files:
            for diagnostic in checked.diagnostics:
                if diagnostic.fix == fix:
                    click.echo(self.show(checked.path, checked.text, diagnostic))
        for checked in files:
            after = apply(checked.text, fix.edits_in(checked.path))
            click.echo(self.readable(unified_diff(checked.path, checked.text, after)), nl=False)
        return self._answer(place)

    def _answer(self, place: str) -> str:
        while True:
            click.echo(f"{place} Write this change [{_LETTERS}]? ", nl=False)
            line = sys.stdin.readline()
            answer = line.strip().lower()[:1]
            if not line:
                # The input has ended.
                click.echo("q")
                answer = "q"
            if answer in ("y", "n", "a", "d"):
                return answer
            if answer == "q":
                self.quit = True
                return answer
            click.echo(_HELP)

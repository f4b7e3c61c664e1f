"""``fix --interactive``: show each change and ask, as ``git add -p`` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cgmigrate.documents.sites import CannotEditError, Document, spans_of
from cgmigrate.text.diff import unified_diff
from cgmigrate.text.edits import OverlapError, apply
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Diagnostic
    from cgmigrate.megatron.settings import Settings

_HELP = """\
y - write this change
n - skip this change
q - quit: skip this change and all that are left
a - write this change and all later ones of this file
d - skip this change and all later ones of this file
? - print help"""


_LETTERS = "y,n,q,a,d,?"


_Change = tuple[Mapping[int, "Settings"], Sequence["Diagnostic"]]


@dataclass(slots=True)
class Chooser:
    """Asks the user about each change.

    ``show`` returns a path, text and diagnostic as lines, ``readable`` a diff for a terminal. ``progress_hidden``
    returns a context in which no progress is drawn. ``quit`` is set once the user wants no more questions.
    """

    show: Callable[[str, str, Diagnostic], str]
    readable: Callable[[str], str]
    progress_hidden: Callable[[], AbstractContextManager[None]]
    quit: bool = False

    def choose(
        self,
        path: str,
        document: Document,
        rewrites: Mapping[int, Settings],
        together: Sequence[Sequence[int]],
        diagnostics: Sequence[Diagnostic],
    ) -> dict[int, Settings]:
        """Return the rewrites that the user accepts. ``together`` lists sites that are rewritten together."""
        changes = _changes(document, rewrites, together, diagnostics)
        accepted: dict[int, Settings] = {}
        answer = ""
        with self.progress_hidden():
            for number, (some, about) in enumerate(changes, 1):
                if self.quit or answer == "d":
                    break
                if answer != "a":
                    answer = self._answer_to(path, document, some, about, f"({number}/{len(changes)})")
                if answer in ("y", "a"):
                    accepted |= some
        return accepted

    def _answer_to(
        self, path: str, document: Document, some: Mapping[int, Settings], about: Sequence[Diagnostic], place: str
    ) -> str:
        """Show one change with its diagnostics; return the letter of the answer."""
        try:
            after = apply(document.text, document.edits(some))
        except (CannotEditError, OverlapError) as error:
            message = f"{path}: cannot be written alone ({error}); fix without --interactive writes it"
            click.echo(in_line(message), err=True)
            return "n"
        for diagnostic in about:
            click.echo(self.show(path, document.text, diagnostic))
        click.echo(self.readable(unified_diff(path, document.text, after)), nl=False)
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


def _changes(
    document: Document,
    rewrites: Mapping[int, Settings],
    together: Sequence[Sequence[int]],
    diagnostics: Sequence[Diagnostic],
) -> list[_Change]:
    """Return the changes in the order of the text, each with the diagnostics that it fixes."""
    in_groups = {index for group in together for index in group}
    groups = [tuple(group) for group in together] + [(index,) for index in rewrites if index not in in_groups]
    placed = [(spans_of(document, group), group) for group in groups if not rewrites.keys().isdisjoint(group)]
    changes: list[_Change] = []
    for spans, group in sorted(placed, key=lambda item: min(span.start for span in item[0])):
        some = {index: rewrites[index] for index in group if index in rewrites}
        changes.append(
            (some, [diagnostic for diagnostic in diagnostics if diagnostic.span in spans and diagnostic.applicability])
        )
    return changes

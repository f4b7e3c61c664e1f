"""``fix --interactive``: show what would become of each site, and ask."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cgmigrate.documents import CannotEditError, Document, Span
from cgmigrate.edits import OverlapError, apply, unified_diff
from cgmigrate.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.examination import Finding
    from cgmigrate.settings import Settings

_HELP = "y: write this  n: leave it  a: write this and all that follow  q: leave this and all that follow"


@dataclass(slots=True)
class Chooser:
    """Asks a person about each change. ``show`` turns a path, text and finding into lines, ``colour`` a diff."""

    show: Callable[[str, str, Finding], str]
    colour: Callable[[str], str]
    everything: bool = False
    nothing: bool = False

    def choose(
        self,
        path: str,
        document: Document,
        wanted: Mapping[int, Settings],
        together: Sequence[Sequence[int]],
        findings: Sequence[Finding],
    ) -> dict[int, Settings]:
        """Return those of the wanted settings that the user agrees to; ``together`` are sites that go as one."""
        in_groups = {index for group in together for index in group}
        groups = [tuple(group) for group in together] + [(index,) for index in wanted if index not in in_groups]
        places = {id(group): spans_of(document, group) for group in groups}
        agreed: dict[int, Settings] = {}
        for group in sorted(groups, key=lambda group: min(span.start for span in places[id(group)])):
            some = {index: wanted[index] for index in group if index in wanted}
            about = [finding for finding in findings if finding.span in places[id(group)] and finding.safety]
            if some and (self.everything or (not self.nothing and self._agreed(path, document, some, about))):
                agreed |= some
        return agreed

    def _agreed(self, path: str, document: Document, some: Mapping[int, Settings], about: Sequence[Finding]) -> bool:
        try:
            after = apply(document.text, document.edits(some))
        except (CannotEditError, OverlapError) as error:
            told = f"{path}: cannot be written alone ({error}); fix without --interactive writes it"
            click.echo(in_line(told), err=True)
            return False
        for finding in about:
            click.echo(self.show(path, document.text, finding))
        click.echo(self.colour(unified_diff(path, document.text, after)))
        return self._answer()

    def _answer(self) -> bool:
        while True:
            click.echo("Write this? [y,n,a,q,?] ", nl=False)
            line = sys.stdin.readline()
            answer = line.strip().lower()[:1]
            if not line:
                # The input has ended: nobody is there to ask.
                click.echo("q")
            if answer == "q" or not line:
                self.nothing = True
            elif answer == "a":
                self.everything = True
            elif answer not in ("y", "n"):
                click.echo(_HELP)
                continue
            return answer in ("y", "a")


def spans_of(document: Document, indices: Sequence[int]) -> frozenset[Span]:
    """Where findings about some sites, or problems that can be written, stand."""
    chosen = frozenset(indices)
    sites = [written.span for site in document.sites if site.index in chosen for written in site.written]
    return frozenset([*sites, *(problem.span for problem in document.problems if problem.index in chosen)])

"""What check and fix say, and where: the report, the progress, the exit status.

The report goes to stdout or to a file, all else to stderr. For people it is written as diagnostics are found, for
programs when the run is over. Nothing of the formats is imported before there is something to write.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Diagnostic
    from cgmigrate.lint.run import Checked, Run
    from cgmigrate.project.inputs import InputError
    from cgmigrate.report import Report, Reported


WITH_EDITS = ("json", "jsonlines", "sarif")
"""The formats that show what a fix changes, letter by letter."""


FOR_PEOPLE = ("text", "concise")
"""The formats that may have colours and are written as diagnostics are found."""


class Unusable(click.ClickException):
    """A rule, option or file that cannot be used."""

    exit_code = 2


class Output:
    """Where the report of one run goes, and in which form.

    ``to_stderr`` is for a run whose stdout carries a rewritten text. ``colour`` is None where the stream decides.
    (No dataclass: making one takes as long as checking a small tree.)
    """

    def __init__(
        self,
        run: Run,
        format: str = "text",
        file: str | None = None,
        statistics: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        to_stderr: bool = False,
        colour: bool | None = None,
    ) -> None:
        self.run, self.format, self.file = run, format, file
        self.statistics, self.quiet, self.verbose = statistics, quiet, verbose
        self.to_stderr, self.colour = to_stderr, colour
        self.found: list[Reported] = []
        self.input_errors: list[InputError] = []
        self._root: str | None = None

    @property
    def _streams(self) -> bool:
        """Whether diagnostics are written as they are found."""
        return self.format in FOR_PEOPLE and self.file is None and not self.statistics

    def take(self, checked: Checked, wanted: Sequence[Diagnostic], written: bool = False) -> None:
        """Report some diagnostics of a file."""
        if not wanted:
            return
        from cgmigrate.report import reported, repository_root

        if self._root is None:
            self._root = repository_root(self.run.paths)
        new = reported(checked, wanted, self._root, written)
        self.found += new
        if self._streams:
            from cgmigrate.report import concise, text
            from cgmigrate.report.folding import folded

            one = {"text": text.one, "concise": concise.one}[self.format]
            for diagnostic in folded(new):
                click.echo(one(diagnostic, self.style), nl=False, err=self.to_stderr, color=self.colour)

    def finish(self) -> None:
        """Write what is written at the end. Raises click.ClickException where the file cannot be written."""
        if self._streams:
            return
        from cgmigrate.report import renderer

        render = renderer("statistics" if self.statistics else self.format)
        # Always UTF-8, whatever the terminal's encoding: programs read this.
        data = render(self.report()).encode("utf-8", "replace")
        if self.file is None:
            click.echo(data, nl=False, err=self.to_stderr)
            return
        from cgmigrate.project.output_files import write_file

        try:
            write_file(self.file, data)
        except OSError as error:
            raise Unusable(f"{self.file} cannot be written: {error.strerror or error}") from error

    def report(self) -> Report:
        """All that was found."""
        from cgmigrate.report import Report

        rules = self.run.known_rules if self.found else {}
        seen = self.run.discovery.files_seen
        return Report(seen, self.found, rules, self.input_errors, self.run.notes)

    def tell(self, text: str) -> None:
        """Say something beside the diagnostics."""
        if not self.quiet:
            click.echo(in_line(text), err=True)

    def input_error(self, input_error: InputError) -> None:
        """Say that a path could not be looked at."""
        self.input_errors.append(input_error)
        if input_error.missing or not self.quiet:
            kind = "error" if input_error.missing else "warning"
            click.echo(in_line(f"{kind}: {input_error.path}: {input_error.reason}"), err=True)

    def details(self) -> None:
        """With --verbose: what was looked at, and how the releases were decided on."""
        if not self.verbose:
            return
        seen = self.run.discovery
        held = ", ".join(f"{count} {syntax.value}" for syntax, count in seen.seed_counts.items() if count)
        self.tell(
            f"Looked at {seen.files_seen} of {seen.files_listed} files; with CUDA-graph settings: {held or 'none'}."
        )
        if seen.submodules:
            self.tell(f"Skipped git submodules: {', '.join(seen.submodules)}; give the path of one to check it.")
        for found in self.run.resolutions:
            self.tell(f"From {found.source} ({found.source_from}) to {found.target} ({found.target_from}).")

    @contextmanager
    def progress(self) -> Iterator[Callable[[], AbstractContextManager[None]]]:
        """Show how far the run is where a person watches; what comes back keeps that line away while printing."""
        if self.quiet or not sys.stderr.isatty():
            yield nullcontext
            return
        from cgmigrate.cli.progress import shown

        with shown(self.run) as away:
            yield away

    def style(self, text: str, kind: str) -> str:
        """Text in the colour of its kind, where the report gets colours."""
        return style(text, kind, self.coloured(err=self.to_stderr))

    def coloured(self, err: bool = False) -> bool:
        """Whether a stream gets colours."""
        if self.colour is not None:
            return self.colour
        return (sys.stderr if err else sys.stdout).isatty()


_COLOURS = {"path": {"bold": True}, "rule": {"fg": "red", "bold": True}, "mark": {"fg": "red"}}


_COLOURS |= {"fix": {"fg": "green"}, "decide": {"fg": "yellow"}, "note": {"fg": "cyan"}}


def style(text: str, kind: str, coloured: bool) -> str:
    """Text in the colour of its kind."""
    return click.style(text, **_COLOURS[kind]) if coloured else text  # type: ignore[arg-type]


def colour_wanted(option: str) -> bool | None:
    """What --color, NO_COLOR and FORCE_COLOR say, in this order; None leaves it to the stream."""
    if option != "auto":
        return option == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None

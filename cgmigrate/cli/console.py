"""The output of check and fix: the report, messages, and progress.

The report goes to stdout or to a file, everything else to stderr. Formats for people are written file by file, formats
for programs at the end of the run. A format is imported only when there is something to write.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, CommandError
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.cli.options import Reporting
    from cgmigrate.lint.checked import Checked
    from cgmigrate.lint.diagnostics import Diagnostic
    from cgmigrate.lint.run import Run
    from cgmigrate.project.inputs import InputError
    from cgmigrate.report import Report, Reported


WITH_EDITS = ("json", "jsonlines", "sarif")
"""The formats that contain the edits of a fix."""

FOR_PEOPLE = ("text", "concise")
"""The formats that may have colours and are written file by file."""


class Output:
    """The report of one run, and the messages beside it.

    ``to_stderr`` is for a run whose stdout carries a rewritten text.
    (No dataclass: to create its class takes as long as checking a small tree.)
    """

    def __init__(self, run: Run, reporting: Reporting, to_stderr: bool = False) -> None:
        self.run, self.reporting, self.to_stderr = run, reporting, to_stderr
        self.format = reporting.format or "text"
        self.colour = colour_option(reporting.color)
        """None where the stream decides."""
        self.reported: list[Reported] = []
        self.input_errors: list[InputError] = []
        self._root: str | None = None
        self._progress_hidden: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def _streams(self) -> bool:
        """Whether diagnostics are written file by file."""
        return self.format in FOR_PEOPLE and self.reporting.output_file is None and not self.reporting.statistics

    def add(self, checked: Checked, diagnostics: Sequence[Diagnostic], written: bool = False) -> None:
        """Report diagnostics of a file. ``written`` says that its rewritten text is what the file contains now."""
        if not diagnostics:
            return
        from cgmigrate.report import reported, repository_root

        if self._root is None:
            self._root = repository_root(self.run.paths)
        new = reported(checked, diagnostics, self._root, written)
        self.reported += new
        if self._streams:
            from cgmigrate.report import concise, text
            from cgmigrate.report.folding import folded

            one = {"text": text.one, "concise": concise.one}[self.format]
            for diagnostic in folded(new):
                click.echo(one(diagnostic, self.style), nl=False, err=self.to_stderr, color=self.colour)

    def finish(self) -> None:
        """Write the report if it is written as a whole. Raises CommandError if its file cannot be written."""
        if self._streams:
            return
        from cgmigrate.report import renderer

        render = renderer("statistics" if self.reporting.statistics else self.format)
        # Always UTF-8, whatever the terminal's encoding: programs read this.
        data = render(self.report()).encode("utf-8", "replace")
        file = self.reporting.output_file
        if file is None:
            click.echo(data, nl=False, err=self.to_stderr)
            return
        from cgmigrate.project.output_files import write_file

        try:
            write_file(file, data)
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror or error}") from error

    def report(self) -> Report:
        """Return the report of all diagnostics so far."""
        from cgmigrate.report import Report

        rules = self.run.known_rules if self.reported else {}
        seen = self.run.discovery.files_seen
        return Report(seen, self.reported, rules, self.input_errors, self.run.notes)

    def message(self, text: str) -> None:
        """Print a line on stderr, unless --quiet is set."""
        if not self.reporting.quiet:
            click.echo(in_line(text), err=True)

    def input_error(self, input_error: InputError) -> None:
        """Print and keep an input error; --quiet hides those about paths that the user did not name."""
        self.input_errors.append(input_error)
        if input_error.missing or not self.reporting.quiet:
            print_input_error(input_error)

    def details(self) -> None:
        """With --verbose, print how many files were searched, and where the releases come from."""
        if not self.reporting.verbose:
            return
        discovery = self.run.discovery
        by_syntax = ", ".join(f"{count} {syntax.value}" for syntax, count in discovery.seed_counts.items() if count)
        self.message(
            f"Searched {discovery.files_seen} of {discovery.files_listed} files; "
            f"with CUDA-graph settings: {by_syntax or 'none'}."
        )
        if discovery.submodules:
            names = ", ".join(discovery.submodules)
            self.message(f"Skipped git submodules: {names}; give the path of one to check it.")
        for used in self.run.resolutions:
            self.message(f"From {used.source} ({used.source_from}) to {used.target} ({used.target_from}).")

    def exit_status(self, diagnostics: Sequence[Diagnostic]) -> int:
        """Return the exit status for the diagnostics that remain."""
        if not diagnostics:
            return CLEAN
        failing = any(_fails(diagnostic, self.reporting.fail_on) for diagnostic in diagnostics)
        if not failing:
            self.message("None of them is an error, so the exit status is 0 (--fail-on error).")
        return DIAGNOSTICS if failing and not self.reporting.exit_zero else CLEAN

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Show the progress of the run if stderr is a terminal."""
        if self.reporting.quiet or not sys.stderr.isatty():
            yield
            return
        from cgmigrate.cli.progress import shown

        with shown(self.run) as self._progress_hidden:
            yield

    def progress_hidden(self) -> AbstractContextManager[None]:
        """Return a context in which no progress is drawn, for printing and asking."""
        return self._progress_hidden()

    def style(self, text: str, kind: str) -> str:
        """Return the text in the colour of its kind, if the report is coloured."""
        return style(text, kind, self.coloured(err=self.to_stderr))

    def coloured(self, err: bool = False) -> bool:
        """Whether stdout (with ``err``, stderr) gets colours."""
        if self.colour is not None:
            return self.colour
        return (sys.stderr if err else sys.stdout).isatty()


def print_input_error(input_error: InputError) -> None:
    """Print a path that could not be used, and why, on stderr."""
    kind = "error" if input_error.missing else "warning"
    click.echo(in_line(f"{kind}: {input_error.path}: {input_error.reason}"), err=True)


def _fails(diagnostic: Diagnostic, fail_on: str) -> bool:
    """Whether a diagnostic is severe enough to fail the run."""
    from cgmigrate.lint.diagnostics import UNREADABLE

    # A file that cannot be read may contain an error.
    return fail_on == "warning" or diagnostic.severity == "error" or diagnostic.rule in UNREADABLE


_COLOURS = {
    "path": {"bold": True},
    "rule": {"fg": "red", "bold": True},
    "mark": {"fg": "red"},
    "fix": {"fg": "green"},
    "decide": {"fg": "yellow"},
    "note": {"fg": "cyan"},
}


def style(text: str, kind: str, coloured: bool) -> str:
    """Return the text in the colour of its kind."""
    return click.style(text, **_COLOURS[kind]) if coloured else text  # type: ignore[arg-type]


def colour_option(option: str) -> bool | None:
    """Return whether --color, NO_COLOR or FORCE_COLOR, in this order, ask for colours; None if the stream decides."""
    if option != "auto":
        return option == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None

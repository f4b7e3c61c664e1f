"""The output of check and fix: the report, messages, and progress.

The report goes to stdout or to a file, everything else to stderr. The format `concise` is written file by file, all
others at the end of the run. A format is imported only when there is something to write.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, CommandError
from cgmigrate.lint.severity import Severity
from cgmigrate.project.options import format_of
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.cli.options import Reporting
    from cgmigrate.lint.diagnostics import LintDiagnostic
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.rules import Rule
    from cgmigrate.lint.run import Run
    from cgmigrate.project.inputs import InputError
    from cgmigrate.report import Reported, RuleName, RunReport
    from cgmigrate.report.style import StreamStyle


LINES_AT_ONCE, BYTES_AT_ONCE = 50, 8192
"""How much of a report one write takes: Python drops the error of a large one whose reader has gone away."""


class Output:
    """The report of one run, and the messages beside it.

    ``to_stderr`` is for a run whose stdout carries a rewritten text.
    (No dataclass: to create its class takes as long as checking a small tree.)
    """

    def __init__(self, run: Run, reporting: Reporting, to_stderr: bool = False) -> None:
        self.run, self.reporting, self.to_stderr = run, reporting, to_stderr
        self.format = reporting.format or "full"
        self.colour = colour_option(reporting.color)
        """None where the stream decides."""
        self.reported: list[Reported] = []
        self.input_errors: list[InputError] = []
        self._root: str | None = None

    @property
    def for_people(self) -> bool:
        """Whether the report is one that a person reads."""
        return bool(self.reporting.table) or format_of(self.format).for_people

    @property
    def _streams(self) -> bool:
        """Whether diagnostics are written file by file."""
        return self.format == "concise" and self.reporting.output_file is None and not self.reporting.table

    def add(self, checked: FileResult, diagnostics: Sequence[LintDiagnostic], written: bool = False) -> None:
        """Report diagnostics of a file. ``written`` says that its rewritten text is what the file contains now."""
        new = self._reported(checked, diagnostics, written)
        self.reported += new
        if new and self._streams:
            from cgmigrate.report import concise
            from cgmigrate.report.folding import folded

            for diagnostic in folded(new):
                self._write(concise.one(diagnostic, self.style))

    def count(self, checked: FileResult) -> None:
        """Include the diagnostics of a file in the last lines, but not in the report."""
        self.reported += self._reported(checked.light, checked.diagnostics)

    def _reported(
        self, checked: FileResult, diagnostics: Sequence[LintDiagnostic], written: bool = False
    ) -> tuple[Reported, ...]:
        if not diagnostics:
            return ()
        from cgmigrate.report import Naming, reported, repository_root

        if self._root is None:
            self._root = repository_root(self.run.paths)
        known = self.run.known_rules
        names = {code: self.rule_name(known[code]) for code in {diagnostic.rule for diagnostic in diagnostics}}
        return reported(checked, diagnostics, Naming(self._root, names), written)

    def rule_name(self, rule: Rule) -> RuleName:
        """Return the names of a rule in the report."""
        from cgmigrate.report import RuleName

        return RuleName(rule.id, rule.name)

    def _write(self, text: str) -> None:
        lines = text.splitlines(keepends=True)
        for start in range(0, len(lines), LINES_AT_ONCE):
            piece = "".join(lines[start : start + LINES_AT_ONCE])
            click.echo(piece, nl=False, err=self.to_stderr, color=self.colour)

    def finish(self) -> None:
        """Write the report if it is written as a whole. Raises CommandError if its file cannot be written."""
        file = self.reporting.output_file
        in_colours = format_of(self.format).for_people and not self.reporting.table and file is None
        if self._streams or (in_colours and not self.reported):
            return
        from cgmigrate.report import renderer

        render = renderer(self.reporting.table or self.format)
        if in_colours:
            self._write(render(self.report(), self.style))
            return
        # Always UTF-8, whatever the terminal's encoding: programs read this.
        data = render(self.report()).encode("utf-8", "replace")
        if file is None:
            for start in range(0, len(data), BYTES_AT_ONCE):
                click.echo(data[start : start + BYTES_AT_ONCE], nl=False, err=self.to_stderr)
            return
        from cgmigrate.project.output_files import write_file

        try:
            write_file(file, data)
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror or error}") from error

    def report(self) -> RunReport:
        """Return the report of all diagnostics so far."""
        from cgmigrate.report import RunReport

        rules = self.run.known_rules if self.reported else {}
        seen = self.run.discovery.files_seen
        report = RunReport(seen, self.reported, rules, self.input_errors, self.run.notes, self.run.resolutions)
        from cgmigrate.cli.next_command import check_command, next_command

        if not (self.for_people and self.reported):
            return replace(report, check_command=check_command())
        return replace(report, next_command=next_command(self.reported, self.run.unfollowed))

    def summary(self, text: str) -> None:
        """Print the place for which most fixes wait, and what the run did."""
        if self.reported and self.for_people and not self.reporting.quiet:
            from cgmigrate.report.folding import folded
            from cgmigrate.report.overview import first

            for line in first(folded(self.reported)):
                self.message(line)
        self.message(text)

    def last_lines(self) -> None:
        """Print the releases that were used, the diagnostics that remain, and the command to run next."""
        if self.reporting.quiet or not self.for_people:
            return
        if not self.reported:
            # Nothing of the report is imported for a clean run.
            self._print_releases()
            return
        from cgmigrate.cli.next_command import explain_command
        from cgmigrate.report import overview
        from cgmigrate.report.concise import MARK
        from cgmigrate.report.folding import folded
        from cgmigrate.report.style import StreamStyle

        report, shown = self.report(), folded(self.reported)
        lines = overview.left_by_folder(shown)
        explain = explain_command(self.reported)
        if explain != report.next_command:
            lines.append(f"For more information, run `{explain}`.")
        style = StreamStyle(colours=self.coloured(err=True))
        mark = MARK if self.reporting.table == "statistics" or self.format == "concise" else ""
        for line in [*lines, *overview.last_lines(report, shown, style, mark)]:
            click.echo(line, err=True, color=self.colour)

    def _print_releases(self) -> None:
        for resolution in self.run.resolutions:
            self.message(f"Releases: {resolution}")

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
        by_syntax = ", ".join(f"{count} {syntax.name}" for syntax, count in discovery.seed_counts.items() if count)
        self.message(
            f"Searched {discovery.files_seen} of {discovery.files_listed} files; "
            f"with CUDA-graph settings: {by_syntax or 'none'}."
        )
        if discovery.submodules:
            names = ", ".join(discovery.submodules)
            self.message(f"Skipped git submodules: {names}; give the path of one to check it.")
        for kind, path in self.run.untouched:
            self.message(f"Never touched ({kind}): {path}")
        if not self.for_people:
            self._print_releases()

    def exit_status(self, diagnostics: Sequence[LintDiagnostic]) -> int:
        """Return the exit status for the diagnostics that remain."""
        if not diagnostics:
            return CLEAN
        least = Severity(self.reporting.fail_on)
        failing = any(_fails(diagnostic, least) for diagnostic in diagnostics)
        if not failing and least is Severity.ERROR:
            self.message("None of them is an error, so the exit status is 0 (--fail-on error).")
        elif not failing:
            self.message("All of them are notes, so the exit status is 0.")
        return DIAGNOSTICS if failing and not self.reporting.exit_zero else CLEAN

    @property
    def style(self) -> StreamStyle:
        """The colours of the report's stream; none in a file."""
        from cgmigrate.report.style import StreamStyle

        is_coloured = self.reporting.output_file is None and self.coloured(err=self.to_stderr)
        return StreamStyle(colours=is_coloured)

    def coloured(self, err: bool = False) -> bool:
        """Whether stdout (with ``err``, stderr) gets colours."""
        if self.colour is not None:
            return self.colour
        return (sys.stderr if err else sys.stdout).isatty()


def print_input_error(input_error: InputError) -> None:
    """Print a path that could not be used, and why, on stderr."""
    kind = "error" if input_error.missing else "warning"
    click.echo(in_line(f"{kind}: {input_error.path}: {input_error.reason}"), err=True)


def _fails(diagnostic: LintDiagnostic, least: Severity) -> bool:
    """Whether a diagnostic is severe enough to fail the run."""
    from cgmigrate.lint.kinds import UNREADABLE

    # A file that cannot be read may contain an error.
    return diagnostic.severity.reaches(least) or diagnostic.reports in UNREADABLE


def colour_option(option: str) -> bool | None:
    """Return whether --color, NO_COLOR or FORCE_COLOR, in this order, ask for colours; None if the stream decides."""
    if option != "auto":
        return option == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None

"""``cgmigrate check``: reports diagnostics, and writes what hides known ones (a baseline, comments)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cgmigrate.cli.console import Output
from cgmigrate.cli.exit_status import CLEAN, ERROR, command_errors
from cgmigrate.cli.notes import clean_summary, print_notes
from cgmigrate.cli.options import NOT_PROVING, CheckMode, Proving, Reporting, Selection
from cgmigrate.cli.runs import Handled, handle_files, start
from cgmigrate.project.options import RunOptions, format_of
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.cli.writer import RunWriter
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run


def show(selection: Selection, reporting: Reporting, settings: bool) -> int:
    """Print the settings in effect, or the files that would be checked; return the exit status."""
    from cgmigrate.cli.show import show_files_of, show_settings_of

    run, _ = start(selection, reporting, RunOptions())
    return ERROR if (show_settings_of if settings else show_files_of)(run) else CLEAN


def check(selection: Selection, reporting: Reporting, mode: CheckMode, proving: Proving = NOT_PROVING) -> int:
    """Report the diagnostics of the files; return the exit status."""
    if reporting.table:
        reporting = _format_of_table(reporting)
    options = RunOptions(rewrite=False, add_ignore=mode.add_ignore, reason=mode.reason)
    run, output = start(selection, reporting, options, baseline=mode, proving=proving)
    writer = _writer(output) if mode.add_ignore else None

    def handle(checked: FileResult) -> None:
        written = writer is None or checked.after is None or writer.write(checked, "wrote comments in")
        if writer is not None:
            writer.remove_leftovers(checked.path)
        if not mode.write_baseline:
            output.add(checked, checked.remaining if written else checked.diagnostics)

    handled = handle_files(run, output, handle)
    failed = (writer is not None and writer.print_problems()) or handled.failed
    if mode.write_baseline:
        _write_baseline(run, output)
        return ERROR if failed else CLEAN
    output.finish()
    if writer is not None:
        _print_comments(writer, handled, output)
    _print_summary(run, output, handled, failed)
    print_notes(run, handled.files, output)
    _print_baseline(run, output, handled, mode)
    status = ERROR if failed else output.exit_status([reported.diagnostic for reported in output.reported])
    output.last_lines()
    return status


def _format_of_table(reporting: Reporting) -> Reporting:
    """Return the options with a format for people; the configuration's is ignored. Raises click.UsageError."""
    if reporting.format is not None and not format_of(reporting.format).for_people:
        raise click.UsageError(f"--statistics has a format of its own: remove --output-format {reporting.format}")
    return reporting._replace(format=reporting.format or "full")


def _writer(output: Output) -> RunWriter:
    from cgmigrate.cli.writer import RunWriter

    return RunWriter(output.message)


def _write_baseline(run: Run, output: Output) -> None:
    from cgmigrate.cli.baseline import write_baseline

    with command_errors():
        output.message(write_baseline(run))


def _print_comments(writer: RunWriter, handled: Handled, output: Output) -> None:
    from cgmigrate.report.folding import places_of

    number = sum(places_of(checked.fixed) for checked in handled.files) - writer.unwritten
    if number or not writer.unwritten:
        output.message(f"Wrote comments for {counted(number, 'diagnostic')}.")


def _print_summary(run: Run, output: Output, handled: Handled, failed: bool) -> None:
    if output.reported:
        output.summary(output.report().summary(by_place=format_of(output.format).for_people))
    elif run.discovery.files_seen or not failed:
        hidden = sum(len(checked.hidden) for checked in handled.files)
        output.message(clean_summary(run, "nothing found" + (f" ({hidden} suppressed by comments)" if hidden else "")))


def _print_baseline(run: Run, output: Output, handled: Handled, mode: CheckMode) -> None:
    if run.baseline is None:
        return
    from cgmigrate.cli.baseline import baseline_notes

    with command_errors():
        for line in baseline_notes(run, handled.files, mode.prune_baseline):
            output.message(line)

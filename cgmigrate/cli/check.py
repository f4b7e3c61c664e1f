"""``cgmigrate check``: diagnostics, and what keeps them out of sight (baseline, comments)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cgmigrate.cli.console import FOR_PEOPLE, Output
from cgmigrate.cli.session import CLEAN, ERROR, clean, each, output_of, run_of, status_of, tell_notes, usable
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.cli.saving import Writer
    from cgmigrate.lint.run import Checked, Run


def show(given: dict[str, Any], settings: bool) -> int:
    """Show what would hold, or which files would be looked at; return the exit status."""
    from cgmigrate.cli.show import show_files_of, show_settings_of

    run = run_of(given, with_baseline=False)
    return ERROR if (show_settings_of if settings else show_files_of)(run) else CLEAN


def check(given: dict[str, Any], statistics: bool) -> int:
    """Report what there is to say of the files; return the exit status."""
    if statistics and given["format"] not in (None, *FOR_PEOPLE):
        raise click.UsageError(f"--statistics is for people: leave out --format {given['format']}")
    # The format of the configuration is not asked for here.
    given["format"] = given["format"] or ("text" if statistics else None)
    run = run_of(given, rewrite=False)
    output = output_of(run, given, statistics)
    writer = _writer(output) if given["add_ignore"] else None

    def take(checked: Checked) -> None:
        written = writer is None or checked.after is None or writer.write(checked, "wrote comments in")
        if writer is not None:
            writer.remove_leftovers(checked.path)
        if not given["write_baseline"]:
            output.take(checked, checked.remaining if written else checked.diagnostics)

    found, failed = each(run, output, take)
    failed = (writer is not None and writer.tell()) or failed
    if given["write_baseline"]:
        from cgmigrate.cli.baseline import write_baseline

        output.tell(usable(write_baseline, run))
        return ERROR if failed else CLEAN
    output.finish()
    if writer is not None:
        _tell_comments(writer, found, output)
    _tell(run, found, output, failed, given)
    return ERROR if failed else status_of([reported.diagnostic for reported in output.found], output, given)


def _writer(output: Output) -> Writer:
    from cgmigrate.cli.saving import Writer

    return Writer(output.tell)


def _tell_comments(writer: Writer, found: list[Checked], output: Output) -> None:
    from cgmigrate.report.folding import places_of

    number = sum(places_of(checked.fixed) for checked in found) - writer.unwritten
    if number or not writer.unwritten:
        output.tell(f"Wrote comments for {counted(number, 'diagnostic')}.")


def _tell(run: Run, found: list[Checked], output: Output, failed: bool, given: dict[str, Any]) -> None:
    """What the run comes to, on stderr."""
    if output.found:
        output.tell(output.report().summary(by_place=output.format in FOR_PEOPLE))
    elif run.discovery.files_seen or not failed:
        hidden = sum(len(checked.hidden) for checked in found)
        output.tell(clean(run, "nothing found" + (f" ({hidden} left out by comments)" if hidden else "")))
    tell_notes(run, found, output)
    if run.baseline is not None:
        from cgmigrate.cli.baseline import tell_baseline

        for line in usable(tell_baseline, run, found, given["prune_baseline"]):
            output.tell(line)

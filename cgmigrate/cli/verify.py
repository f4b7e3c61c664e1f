"""``cgmigrate verify``: prints the verdicts and writes the reports."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.console import colour_option
from cgmigrate.cli.exit_status import ERROR, CommandError
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from cgmigrate.verify.arms import Packing
    from cgmigrate.verify.job import JobOptions
    from cgmigrate.verify.session import SessionOutcome, VerifyOptions

_COLOURS = {"equivalent": "green", "equivalent, but": "yellow", "different": "red", "inconclusive": "magenta"}


def packing_of(text: str) -> Packing | None:
    """Read ``2,3,5:8``: 2, 3, 5, 2, ... documents a microbatch, ``cu_seqlens`` padded to 8. Raises CommandError."""
    from cgmigrate.verify.arms import Packing

    if not text:
        return None
    documents, colon, cap = text.partition(":")
    try:
        counts = tuple(int(part) for part in documents.split(","))
        packing = Packing(counts, int(cap) if colon else None)
    except ValueError as error:
        raise CommandError(f"--packing {text}: expected numbers such as 2,3,5 or 2,3,5:8") from error
    if min(counts) < 1 or (packing.cap is not None and packing.cap < 1):
        raise CommandError(f"--packing {text}: a microbatch holds at least one document")
    return packing


def verify_job(options: JobOptions, folder: str, as_json: bool, page: str) -> int:
    """Run the forms of a job and print the verdict; return the exit status."""
    from cgmigrate.verify.session import VerifyError, verify_job

    if page:
        _check_page(page)
    try:
        outcome = verify_job(options, folder, progress(as_json))
    except VerifyError as error:
        raise CommandError(str(error)) from error
    return _printed(outcome, as_json, page, is_config=False)


def verify(request: VerifyOptions, as_json: bool, page: str) -> int:
    """Compare both forms and print the verdicts; return the exit status."""
    if page:
        _check_page(page)
    return _printed(_outcome(request, quiet=as_json), as_json, page, is_config=request.level == "config")


def _printed(outcome: SessionOutcome, as_json: bool, page: str, *, is_config: bool) -> int:
    """Print the verdicts, and write the report; return the exit status."""
    from cgmigrate.verify import report

    if outcome.script:
        click.echo(outcome.script, nl=False)
        # Comparisons that need no run.
        for comparison in outcome.comparisons:
            click.echo(report.text(comparison, outcome.results, _style), nl=False, err=True)
        _print_notes(outcome)
        return ERROR if outcome.input_errors else outcome.status
    if as_json:
        config = [verdict.as_json() for verdict in outcome.config]
        click.echo(report.as_json(outcome.comparisons, outcome.results, config), nl=False)
    else:
        colour = colour_option("auto")
        for verdict in outcome.config:
            click.echo(report.config_text(verdict, _style), nl=False, color=colour)
        for comparison in outcome.comparisons:
            click.echo(report.text(comparison, outcome.results, _style), nl=False, color=colour)
    if page:
        report.write_page(page, outcome.comparisons, outcome.results, outcome.config if is_config else None)
    _print_notes(outcome)
    click.echo(report.summary(outcome.verdicts), err=True)
    return ERROR if outcome.input_errors else outcome.status


def _check_page(page: str) -> None:
    """Raise CommandError where the report could not be written once everything has run."""
    from importlib.util import find_spec

    if not os.path.isdir(os.path.dirname(page) or "."):
        raise CommandError(f"--report {page}: no such folder")
    if find_spec("jinja2") is None:
        from cgmigrate.verify.mcore import INSTALL

        raise CommandError(f"--report needs Jinja2, which is not installed; {INSTALL}")


def _print_notes(outcome: SessionOutcome) -> None:
    """Print what was skipped, and the files that could not be read."""
    for note in outcome.notes:
        click.echo(in_line(f"note: {note}"), err=True)
    for path in outcome.input_errors:
        click.echo(in_line(f"error: {path}"), err=True)


def _outcome(request: VerifyOptions, quiet: bool) -> SessionOutcome:
    """Return the outcome. Progress goes to stderr, unless the output is for a program."""
    from cgmigrate.project.configuration import ConfigurationError
    from cgmigrate.verify.cluster import SubmitError
    from cgmigrate.verify.mcore import MCoreError
    from cgmigrate.verify.plan import PlanError
    from cgmigrate.verify.session import VerifyError, verify

    try:
        return verify(request, progress(quiet))
    except (MCoreError, PlanError, VerifyError, ConfigurationError, SubmitError) as error:
        raise CommandError(str(error)) from error


def progress(quiet: bool) -> Callable[[str], None]:
    """Return what prints a line of progress to stderr, unless the output is for a program."""
    return lambda line: None if quiet else click.echo(in_line(line), err=True)


def _style(text: str, verdict: str) -> str:
    """Return a verdict in its colour. click removes the colour if the stream is no terminal."""
    return click.style(text, fg=_COLOURS[verdict], bold=True)

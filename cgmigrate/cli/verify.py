"""``cgmigrate verify``: what its options ask for, and what is said of the outcome."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from cgmigrate.cli.console import Unusable, colour_wanted
from cgmigrate.cli.session import ERROR
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.verify.session import Outcome

_COLOURS = {"equivalent": "green", "equivalent, but": "yellow", "different": "red", "inconclusive": "magenta"}


def verify(given: dict[str, Any], as_json: bool, page: str) -> int:
    """Run both forms and tell; return the exit status."""
    from cgmigrate.verify import report

    if page and not os.path.isdir(os.path.dirname(page) or "."):
        raise Unusable(f"--report {page}: no such folder")
    if page and given["level"] != "capture":
        raise Unusable("--report shows runs, so it needs --level capture; --json tells what --level config found")
    outcome = _outcome(given, quiet=as_json)
    if outcome.script:
        click.echo(outcome.script, nl=False)
        # What no run will tell, the script leaves out.
        for comparison in outcome.comparisons:
            click.echo(report.text(comparison, outcome.results, _style), nl=False, err=True)
        _tell_beside(outcome)
        return ERROR if outcome.input_error else outcome.status
    if as_json:
        config = [verdict.as_json() for verdict in outcome.config]
        click.echo(report.as_json(outcome.comparisons, outcome.results, config), nl=False)
    else:
        colour = colour_wanted("auto")
        for verdict in outcome.config:
            click.echo(report.config_text(verdict, _style), nl=False, color=colour)
        for comparison in outcome.comparisons:
            click.echo(report.text(comparison, outcome.results, _style), nl=False, color=colour)
    if page:
        report.write_page(page, outcome.comparisons, outcome.results)
    _tell_beside(outcome)
    click.echo(report.summary(outcome.verdicts), err=True)
    return ERROR if outcome.input_error else outcome.status


def _tell_beside(outcome: Outcome) -> None:
    """What was left out, and what could not be read."""
    for note in outcome.notes:
        click.echo(in_line(f"note: {note}"), err=True)
    for path in outcome.input_error:
        click.echo(in_line(f"error: {path}"), err=True)


def _outcome(given: dict[str, Any], quiet: bool) -> Outcome:
    """The outcome; progress goes to stderr as it happens, unless the output is for a program."""
    from cgmigrate.project.configuration import ConfigurationError
    from cgmigrate.verify.mcore import MCoreError
    from cgmigrate.verify.plan import PlanError
    from cgmigrate.verify.session import VerifyError, verify, wanted_of

    try:
        return verify(wanted_of(given), lambda line: None if quiet else click.echo(in_line(line), err=True))
    except (MCoreError, PlanError, VerifyError, ConfigurationError) as error:
        raise Unusable(str(error)) from error


def _style(text: str, verdict: str) -> str:
    """A verdict in its colour; click takes it away where the stream has none."""
    return click.style(text, fg=_COLOURS[verdict], bold=True)

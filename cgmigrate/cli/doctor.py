"""``cgmigrate doctor``: says what the logs of jobs mean."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO, TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, ERROR
from cgmigrate.text.escaping import in_line
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.lint.job_messages import Finding


def doctor(paths: Sequence[str], *, as_json: bool) -> int:
    """Print what the logs say; return the exit status."""
    from cgmigrate.cli.rules import load_rules
    from cgmigrate.lint.job_messages import findings_in

    rules, status = load_rules(()), CLEAN
    every: list[Finding] = []
    for path in paths:
        try:
            with _opened(path) as lines:
                every += findings_in(path, lines, rules)
        except OSError as error:
            click.echo(in_line(f"error: {path}: {error.strerror}"), err=True)
            status = ERROR
    if as_json:
        click.echo(json.dumps([{**asdict(one), "ranks": sorted(one.ranks)} for one in every], indent=2))
    else:
        for one in every:
            click.echo(_text(one), nl=False)
        causes = f"{counted(len(every), 'cause')} in {counted(len(paths), 'log')}"
        click.echo(f"Explained {causes}." if every else "Nothing about CUDA graphs or settings is explained.", err=True)
    return max(status, DIAGNOSTICS if every else CLEAN)


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdin
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        yield file


def _text(finding: Finding) -> str:
    """Return a finding: the first line of the log, the cause, and what to do."""
    one = finding.explanation
    code = f"{one.code} " if one.code else ""
    times = f"  seen {finding.count} times" if finding.count > 1 else ""
    ranks = f", on {counted(len(finding.ranks), 'rank')}" if len(finding.ranks) > 1 else ""
    lines = [
        f"{in_line(finding.path)}:{finding.line}: {code}{in_line(finding.text[:200])}",
        f"  cause: {in_line(one.cause)}" + (f" (`{in_line(one.setting)}`)" if one.setting else ""),
        f"  help: {in_line(one.help)}" if one.help else "",
        times + ranks,
    ]
    return "".join(f"{line}\n" for line in lines if line)

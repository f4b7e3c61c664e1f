"""``cgmigrate recommend``: runs a job with each choice of graphs, and prints what each costs and gains."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.verify.job import JobOptions
    from cgmigrate.verify.recommend import Choice, Recommendation


def recommend(options: JobOptions, folder: str, *, as_json: bool) -> int:
    """Run the job and print the choices; return the exit status."""
    from cgmigrate.cli.rules import load_rules
    from cgmigrate.cli.verify import progress
    from cgmigrate.verify.job import JobSession
    from cgmigrate.verify.recommend import recommend as choices
    from cgmigrate.verify.session import work_folder

    with work_folder(folder) as place:
        result = choices(JobSession(options, Path(place), progress(as_json)), load_rules(()))
    click.echo(json.dumps(asdict(result), indent=2) if as_json else _text(result))
    return CLEAN if result.best else DIAGNOSTICS


def _text(result: Recommendation) -> str:
    """Return a line for each choice, and the one to take."""
    if result.failure:
        return in_line(f"The job does not run without graphs: {result.failure}")
    rows = [_row(one) for one in result.choices if not one.refused]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEAD, *rows)]
    lines += [f"{one.words}: {in_line(one.refused)}" for one in result.choices if one.refused]
    taken = f"Take `{result.best.words}`: {result.why}" if result.best else f"Nothing to take: {result.why}"
    return "\n".join([*(line.rstrip() for line in lines), taken])


_HEAD = ("kernels outside", "mempools", "reserved", "step", "numbers", "settings")


def _row(one: Choice) -> tuple[str, ...]:
    from cgmigrate.verify.metrics import memory, milliseconds

    least, middle, most = map(milliseconds, one.step)
    return (
        f"{one.outside} of {one.kernels}",
        memory(one.pool_bytes),
        f"{'-' if one.reserved_bytes < 0 else '+'}{memory(abs(one.reserved_bytes))}",
        f"{middle} ({least} to {most})",
        "of eager" if one.is_as_eager else "other",
        one.words,
    )

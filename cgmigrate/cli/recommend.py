"""``cgmigrate recommend``: runs a model with each choice of graphs, and prints what each costs and gains."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, CommandError
from cgmigrate.cli.verify import progress
from cgmigrate.text.escaping import in_line

if TYPE_CHECKING:
    from cgmigrate.verify.job import JobOptions
    from cgmigrate.verify.recommend import Choice, Recommendation, Runs


def recommend_for_job(options: JobOptions, folder: str, *, as_json: bool) -> int:
    """Run a job and print the choices; return the exit status."""
    from cgmigrate.verify.job import JobSession
    from cgmigrate.verify.recommend import runs_of_job
    from cgmigrate.verify.session import work_folder

    with work_folder(folder) as place:
        return _show(runs_of_job(JobSession(options, Path(place), progress(as_json))), as_json=as_json)


def recommend_for_file(options: JobOptions, mcore: tuple[str, ...], folder: str, *, as_json: bool) -> int:
    """Run the proxy of a configuration and print the choices; return the exit status."""
    from cgmigrate.verify.mcore import MCoreError, homes_of
    from cgmigrate.verify.plan import PlanError
    from cgmigrate.verify.recommend import arm_of_file, runs_of_proxy
    from cgmigrate.verify.run import Runner
    from cgmigrate.verify.session import gpu_count, work_folder

    try:
        homes = homes_of(mcore, progress(as_json))
        arm = arm_of_file(options.command[0], homes, options.measure)
    except (MCoreError, PlanError) as error:
        raise CommandError(str(error)) from error
    if not gpu_count():
        raise CommandError("this machine has no GPU, and a model of the file's structure has to train on one")
    with work_folder(folder) as place:
        runner = Runner(homes, Path(place), progress(as_json), options.timeout)
        for note in arm.proxy.notes:
            runner.progress(f"note: {note}")
        runner.progress(f"note: memory and times are those of {arm.proxy.layers} small layers")
        return _show(runs_of_proxy(runner, arm), as_json=as_json, is_proxy=True)


def _show(run: Runs, *, as_json: bool, is_proxy: bool = False) -> int:
    from cgmigrate.cli.rules import load_rules
    from cgmigrate.verify.recommend import recommend

    result = recommend(run, load_rules(()), is_proxy=is_proxy)
    click.echo(json.dumps(asdict(result), indent=2) if as_json else _text(result))
    return CLEAN if result.best else DIAGNOSTICS


def _text(result: Recommendation) -> str:
    """Return a line for each choice, and the one to take."""
    if result.failure:
        return in_line(f"It does not run without graphs: {result.failure}")
    rows = [_row(one) for one in result.choices if not one.refused]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEAD, *rows)]
    lines += [f"{one.words}: {in_line(one.refused)}" for one in result.choices if one.refused]
    note = f"note: {result.not_compared}" if result.not_compared else ""
    taken = f"Take `{result.best.words}`: {result.why}" if result.best else f"Nothing to take: {result.why}"
    return "\n".join(filter(None, [*(line.rstrip() for line in lines), note, taken]))


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

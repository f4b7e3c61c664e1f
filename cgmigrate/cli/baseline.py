"""The baseline of a run: which file it is, what is printed about it, and writing it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cgmigrate.lint.baseline import Baseline, BaselineError, Counts, Known, load, save, total
from cgmigrate.project.cascade import BASELINE
from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.configuration import Configuration
from cgmigrate.project.paths import display_path, is_below
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.cli.options import CheckMode
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run

MOST_NAMED = 5
"""Files with fixed diagnostics that are named."""


def baseline_of(run: Run, mode: CheckMode) -> Baseline:
    """Return the baseline that the command line or the configuration names. Raises BaselineError."""
    assert run.configurations is not None
    path = run.options.baseline or run.configurations.for_run().baseline or (BASELINE if mode.write_baseline else "")
    if not path:
        raise BaselineError("no baseline is set: add --baseline FILE, or `baseline` to the configuration")
    if mode.write_baseline and (mode.prune_baseline or mode.add_ignore):
        raise BaselineError("--write-baseline cannot be combined with --prune-baseline or --add-ignore")
    if mode.updates_baseline and not run.options.baseline:
        _check_place(path, run.configurations.for_run())
    return load(os.path.relpath(path), missing_is_empty=mode.write_baseline)


def _check_place(path: str, configuration: Configuration) -> None:
    """Refuse to write a baseline that a configuration puts outside of its own checkout. Raises BaselineError."""
    real = os.path.realpath(path)
    folder = configuration.folder
    if not is_below(real, os.path.realpath(checkout_of(folder) or folder)):
        name = display_path(configuration.file)
        raise BaselineError(
            f"the baseline of {name} is outside of its project ({real}) and is not written; name it with --baseline"
        )


def write_baseline(run: Run) -> str:
    """Write all diagnostics of the run to the baseline; return the message to print. Raises BaselineError."""
    assert run.baseline is not None
    known = run.baseline.renewed(run.covers)
    save(run.baseline.path, known)
    return f"Wrote {run.baseline.path}: {_diagnostics(known)}."


def baseline_notes(run: Run, files: Sequence[FileResult], prune: bool) -> list[str]:
    """Return the lines to print about the baseline; with ``prune`` also remove from it what is fixed."""
    assert run.baseline is not None
    lines = []
    if known := sum(len(checked.known) for checked in files):
        lines.append(f"note: {counted(known, 'known diagnostic')} of {run.baseline.path} not shown")
    if prune:
        lines.append(_prune(run, run.baseline))
    elif fixed := run.baseline.fixed(run.covers):
        lines += _fixed_notes(run.baseline, fixed)
    return lines


def _prune(run: Run, baseline: Baseline) -> str:
    """Remove the fixed diagnostics from the baseline; return the message to print."""
    fixed, remaining = baseline.fixed(run.covers), baseline.pruned(run.covers)
    if remaining == baseline.known:
        return f"{baseline.path}: nothing to prune."
    save(baseline.path, remaining)
    return f"Pruned {baseline.path}: {total(fixed)} fixed, {_diagnostics(remaining)} left."


def _fixed_notes(baseline: Baseline, fixed: Counts) -> list[str]:
    """Return the lines that name the fixed diagnostics."""
    files = [
        f"  {baseline.file_of(name)}: {', '.join(f'{count} {rule}' for rule, count in sorted(rules.items()))}"
        for name, rules in sorted(fixed.items())
    ]
    first = f"note: {baseline.path} contains diagnostics that are fixed (remove them with --prune-baseline):"
    more = len(files) - MOST_NAMED
    return [first, *files[:MOST_NAMED], *([f"  and {more} more files"] if more > 0 else [])]


def _diagnostics(known: Known) -> str:
    return f"{counted(total(known), 'diagnostic')} in {counted(len(known), 'file')}"

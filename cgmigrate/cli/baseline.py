"""The baseline of a run: which file it is, what is printed about it, and writing it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cgmigrate.lint.baseline import Baseline, BaselineError, Counts, load, save, total
from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.configuration import Configuration
from cgmigrate.project.paths import display_path, is_below

if TYPE_CHECKING:
    from cgmigrate.cli.options import CheckMode
    from cgmigrate.lint.run import Checked, Run

MOST_NAMED = 5
"""Files that are named where the baseline counts too much."""


def baseline_of(run: Run, mode: CheckMode) -> Baseline:
    """Return the baseline that the command line or the configuration names. Raises BaselineError."""
    assert run.configurations is not None
    path = run.options.baseline or run.configurations.for_run().baseline
    if mode.write_baseline and (mode.prune_baseline or mode.add_ignore):
        raise BaselineError("--write-baseline goes with neither --prune-baseline nor --add-ignore")
    if not path:
        raise BaselineError("which baseline? give --baseline FILE, or `baseline` in the configuration")
    if mode.updates_baseline and not run.options.baseline:
        _check_place(path, run.configurations.for_run())
    return load(os.path.relpath(path), missing_is_empty=mode.write_baseline)


def _check_place(path: str, found: Configuration) -> None:
    """Refuse to write a baseline that a configuration puts outside of its own checkout. Raises BaselineError."""
    real = os.path.realpath(path)
    if not is_below(real, os.path.realpath(checkout_of(found.folder) or found.folder)):
        told = f"the baseline of {display_path(found.file)} is outside of its project ({real})"
        raise BaselineError(f"{told} and is not written; give it with --baseline")


def write_baseline(run: Run) -> str:
    """Count in the baseline all that the run has found; return what to say. Raises BaselineError."""
    assert run.baseline is not None
    counts = run.baseline.renewed(run.can_tell)
    save(run.baseline.path, counts)
    return f"Wrote {run.baseline.path}: {_diagnostics(counts)} known from now on."


def baseline_notes(run: Run, files: Sequence[Checked], prune: bool) -> list[str]:
    """Return the lines to print about the baseline; with ``prune`` also remove from it what is fixed."""
    assert run.baseline is not None
    path, lines = run.baseline.path, []
    if known := sum(len(checked.known) for checked in files):
        lines.append(f"note: {known} known diagnostic{'' if known == 1 else 's'} of {path} not shown")
    fixed = run.baseline.fixed(run.can_tell)
    if prune:
        left = run.baseline.pruned(fixed)
        if fixed:
            save(path, left)
        lines.append(
            f"Pruned {path}: {total(fixed)} fixed, {_diagnostics(left)} left."
            if fixed
            else f"{path}: nothing to prune."
        )
    elif fixed:
        lines.append(f"note: {path} still counts what is fixed (take it out with --prune-baseline):")
        told = [
            f"  {run.baseline.file_of(name)}: {', '.join(f'{count} {rule}' for rule, count in sorted(rules.items()))}"
            for name, rules in sorted(fixed.items())
        ]
        lines += told[:MOST_NAMED]
        lines += [f"  and {len(told) - MOST_NAMED} more files"] if len(told) > MOST_NAMED else []
    return lines


def _diagnostics(counts: Counts) -> str:
    number, files = total(counts), len(counts)
    return f"{number} diagnostic{'' if number == 1 else 's'} in {files} file{'' if files == 1 else 's'}"

"""``cgmigrate upgrade``: what changes between two releases, in one step or from one minor release to the next."""

from __future__ import annotations

from itertools import pairwise

import click

from cgmigrate.cli import check as checking
from cgmigrate.cli import fix as fixing
from cgmigrate.cli.commits import check_committable
from cgmigrate.cli.options import CheckMode, FixMode, Reporting, Selection, UpgradeMode
from cgmigrate.megatron.releases import ACCEPTED, NEWEST
from cgmigrate.megatron.rule_data import upgrade_rules
from cgmigrate.project.options import format_of


def upgrade(selection: Selection, reporting: Reporting, mode: UpgradeMode) -> int:
    """Show what changes, or write it; return the exit status. Raises click.ClickException."""
    _check(selection, reporting, mode)
    selection = selection._replace(
        paths=selection.paths or (".",), rule_folders=(*selection.rule_folders, upgrade_rules())
    )
    if not (mode.diff or mode.writes):
        if reporting.format is None:
            reporting = reporting._replace(table="impact")
        return checking.check(selection, reporting, CheckMode())
    if mode.commits:
        check_committable(selection.paths)
    fix_mode = FixMode(diff=mode.diff, unsafe_fixes=mode.unsafe_fixes, commits=mode.commits, upgrades=True)
    if not mode.steps:
        return fixing.fix(selection, reporting, fix_mode)
    return _by_steps(selection, reporting, fix_mode)


def _by_steps(selection: Selection, reporting: Reporting, mode: FixMode) -> int:
    """Write the fixes of one minor release after the other, up to one that leaves something to do by hand.

    A later step would not know what that was about, and take other settings of the same place for right.
    """
    assert selection.source is not None
    last = selection.target or NEWEST
    status = 0
    for source, target in pairwise(one for one in ACCEPTED if selection.source <= one <= last):
        click.echo(f"{source} -> {target}", err=True)
        step = selection._replace(source=source, target=target)
        if (status := fixing.fix(step, reporting, mode)) and target != last:
            click.echo(f"Stopped at {target}: settle what remains, and go on with --from {target}", err=True)
            return status
    return status


def _check(selection: Selection, reporting: Reporting, mode: UpgradeMode) -> None:
    """Check the options against each other. Raises click.UsageError."""
    if mode.unsafe_fixes and not (mode.diff or mode.writes):
        raise click.UsageError("--unsafe-fixes needs --diff or --fix")
    for name, is_on in (("--step", mode.steps), ("--commit", mode.commits)):
        if is_on and not mode.writes:
            raise click.UsageError(f"{name} needs --fix")
        if is_on and mode.diff:
            raise click.UsageError(f"{name} writes: remove --diff")
    if not mode.steps:
        return
    if reporting.output_file or (reporting.format and not format_of(reporting.format).for_people):
        raise click.UsageError("--step prints a report for each release: remove --output-format and --output-file")
    if selection.source is None:
        raise click.UsageError("--step needs --from")
    if selection.source == (selection.target or NEWEST):
        raise click.UsageError("--step needs two releases")

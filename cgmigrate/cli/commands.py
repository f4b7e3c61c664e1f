"""The command line: commands and options only."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING

import click

from cgmigrate import __version__
from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS
from cgmigrate.cli.options import (
    PATH,
    CheckMode,
    FixMode,
    Reporting,
    Selection,
    complete_codes,
    release_options,
    shared_options,
)
from cgmigrate.cli.program import Program

if TYPE_CHECKING:
    from cgmigrate.megatron.releases import Release


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cgmigrate", message="%(prog)s %(version)s")
def main() -> None:
    """Migrate, lint and verify the CUDA-graph settings of Megatron projects.

    Without --from and --to the project's own pins of megatron-core decide (pyproject.toml, requirements, lock files);
    without pins, files are taken from 0.17 to the newest known release.
    """
    # A run makes many objects and few cycles: collecting often costs a tenth of it and frees nothing.
    gc.set_threshold(100_000, 50, 50)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@main.command()
@shared_options
@click.option("--statistics", is_flag=True, help="Count the diagnostics of each rule instead of showing them.")
@click.option("--show-settings", is_flag=True, help="Show what holds for PATHS, and from where; check nothing.")
@click.option("--show-files", is_flag=True, help="Show which files would be looked at; check nothing.")
@click.option("--write-baseline", is_flag=True, help="Count all diagnostics in the baseline, so that they are known.")
@click.option("--prune-baseline", is_flag=True, help="Take out of the baseline what is fixed.")
@click.option(
    "--add-ignore", is_flag=True, help="Write comments that leave the diagnostics out: # cgmigrate: ignore[CODE]."
)
@click.option(
    "--strict", is_flag=True, help="No comments, no configuration below the root, no baseline from the checked tree."
)
@click.option("--reason", metavar="TEXT", type=str, help="What these comments give as the reason.")
def check(
    selection: Selection,
    reporting: Reporting,
    statistics: bool,
    show_settings: bool,
    show_files: bool,
    write_baseline: bool,
    prune_baseline: bool,
    add_ignore: bool,
    strict: bool,
    reason: str | None,
) -> None:
    """Report deprecated, rejected and ineffective settings in PATHS (- for stdin).

    Exit status: 0 nothing found, 1 diagnostics, 2 a path or option that cannot be used.
    """
    from cgmigrate.cli import check as checking

    if reason and (not add_ignore or len(reason.splitlines()) > 1):
        raise click.UsageError("--reason is the text of one line for the comments of --add-ignore")
    if add_ignore and "-" in selection.paths:
        raise click.UsageError("--add-ignore writes files: give paths, not -")
    if add_ignore and strict:
        raise click.UsageError("--add-ignore writes comments, and with --strict comments suppress nothing")
    selection, reporting = selection._replace(strict=strict), reporting._replace(statistics=statistics)
    if show_settings or show_files:
        sys.exit(checking.show(selection, reporting, settings=show_settings))
    sys.exit(checking.check(selection, reporting, CheckMode(write_baseline, prune_baseline, add_ignore, reason or "")))


@main.command()
@shared_options
@click.option("--diff", is_flag=True, help="Show what would change instead of writing it.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that change what is captured; each says how.")
@click.option("--interactive", is_flag=True, help="Show each change and ask before it is written.")
@click.option("--fix-only", is_flag=True, help="Report no diagnostics, and exit with 0 although some are left.")
@click.option("--undo", is_flag=True, help="The same as `cgmigrate undo`; takes no PATHS.")
def fix(
    selection: Selection,
    reporting: Reporting,
    diff: bool,
    unsafe_fixes: bool,
    interactive: bool,
    fix_only: bool,
    undo: bool,
) -> None:
    """Rewrite the settings in PATHS so that exactly the same graphs are captured.

    What is read from stdin (-) is written to stdout, and the diagnostics that are left to stderr.

    Exit status: 0 nothing left to do, 1 diagnostics that need a decision remain (with --diff also: something would
    change), 2 a path or option that cannot be used, a file that cannot be written.
    """
    from cgmigrate.cli import fix as fixing

    if undo:
        if selection.paths or diff or interactive:
            raise click.UsageError("--undo restores the last run as a whole: give no PATHS, --diff or --interactive")
        sys.exit(_undo())
    if diff and interactive:
        raise click.UsageError("--diff and --interactive contradict each other")
    if fix_only and (interactive or reporting.format or reporting.output_file):
        raise click.UsageError("--fix-only reports no diagnostics: give no --interactive, --format or --output-file")
    if diff and reporting.format:
        raise click.UsageError("--diff prints a patch and no diagnostics: leave out --format")
    sys.exit(fixing.fix(selection, reporting, FixMode(diff, unsafe_fixes, interactive, fix_only)))


@main.command()
def undo() -> None:
    """Restore the files that the last run of `fix` or `check --add-ignore` wrote in this project.

    A file that has changed since is left alone. Called again, it restores those of the run before.

    Exit status: 0 all restored or nothing to undo, 1 a file could not be restored.
    """
    sys.exit(_undo())


def _undo() -> int:
    from cgmigrate.cli.undo import undo_last_run

    return DIAGNOSTICS if undo_last_run() else CLEAN


@main.command()
@click.argument("code", shell_complete=complete_codes)
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
def explain(code: str, folders: tuple[str, ...]) -> None:
    """Explain the rule CODE: what it says, why, from where, with examples."""
    from cgmigrate.cli import rules

    rules.explain(code, folders)


@main.command()
@click.argument("paths", nargs=-1, required=True, type=PATH)
@release_options
@click.option(
    "--level",
    type=click.Choice(["config", "capture"]),
    default="config",
    show_default=True,
    help="config: what megatron-core makes of the settings, no GPU; capture: train and generate with them.",
)
@click.option(
    "--mcore",
    multiple=True,
    metavar="VERSION[=DIR]",
    help="Where a release is: a folder or virtual environment; without DIR its wheel is fetched with pip.",
)
@click.option("--after", metavar="FILE", help="The migrated form of the one file given, made by hand.")
@click.option("--unsafe-fixes", is_flag=True, help="Migrate as `fix --unsafe-fixes` would.")
@click.option("--nproc", default=1, show_default=True, type=click.IntRange(1, 64), help="GPUs of this host to use.")
@click.option("--launcher", type=click.Choice(["torchrun", "srun"]), default="torchrun", show_default=True)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    type=click.Choice(["training", "static", "dynamic"]),
    help="What to run; by default training, and generation where inference is captured.",
)
@click.option("--steps", default=8, show_default=True, type=click.IntRange(5, 1000), help="Training steps an arm.")
@click.option("--tokens", default=16, show_default=True, type=click.IntRange(2, 200), help="Tokens to generate.")
@click.option("--packing", default="", metavar="N,N,..[:CAP]", help="Packed sequences: documents a microbatch, cap.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Training arms at a time.")
@click.option("--timeout", default=300.0, show_default=True, help="Seconds an arm may take.")
@click.option("--work", default="", metavar="DIR", help="Keep arms and results there, and reuse them.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON to stdout.")
@click.option("--report", default="", metavar="FILE", help="Write the report as one HTML page, too.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out paths, as .gitignore would.")
def verify(
    paths: tuple[str, ...],
    source: Release | None,
    target: Release | None,
    level: str,
    mcore: tuple[str, ...],
    after: str | None,
    unsafe_fixes: bool,
    nproc: int,
    launcher: str,
    workloads: tuple[str, ...],
    steps: int,
    tokens: int,
    packing: str,
    jobs: int,
    timeout: float,
    work: str,
    as_json: bool,
    report: str,
    exclude: tuple[str, ...],
) -> None:
    """Run the configuration before and after migration and compare: the same graphs, the same numbers?

    PATHS are files, directories, or FILE:LINE for one place in a file. Every site that migration changes is compared;
    on GPUs a small model of the same structure stands for the configuration's own.

    Exit status: 0 equivalent, 1 something is different, 2 something could not be told.
    """
    from cgmigrate.cli import verify as verifying
    from cgmigrate.verify.plan import Asked, Scale
    from cgmigrate.verify.session import Wanted

    scale = Scale(steps, tokens, nproc, workloads or None, verifying.packing_of(packing))
    request = Wanted(
        Asked(paths, source, target, unsafe_fixes, after or "", exclude),
        level=level,
        mcore=mcore,
        scale=scale,
        jobs=jobs,
        timeout=timeout,
        folder=work,
        launcher=launcher,
    )
    sys.exit(verifying.verify(request, as_json, report))


@main.group(name="rules", invoke_without_command=True)
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
@click.pass_context
def rules_group(ctx: click.Context, folders: tuple[str, ...]) -> None:
    """List all rules, one a line, or test your own."""
    if ctx.invoked_subcommand is None:
        from cgmigrate.cli import rules

        rules.list_rules(folders)


@rules_group.command(name="list")
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
@click.pass_context
def list_rules(ctx: click.Context, folders: tuple[str, ...]) -> None:
    """List all rules, one a line."""
    from cgmigrate.cli import rules

    of_group: tuple[str, ...] = ctx.parent.params["folders"] if ctx.parent else ()
    rules.list_rules(of_group + folders)


@rules_group.command(name="test")
@click.argument("folder", metavar="[DIR]", required=False)
def test_rules(folder: str | None) -> None:
    """Test your own rules in DIR: each file against the schema, each example by running it.

    Without DIR, the rules that ship are tested.

    Exit status: 0 all hold, 1 a rule or an example fails, 2 a folder without rules.
    """
    from cgmigrate.cli import rules

    sys.exit(rules.test_rules(folder))


if __name__ == "__main__":
    main()

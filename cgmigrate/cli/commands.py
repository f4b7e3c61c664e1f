"""The command line: commands and options only."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING, Any

import click

from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS
from cgmigrate.cli.options import (
    CONFIGURATION,
    GATE,
    OUTPUT,
    PATH,
    RUNS,
    CheckMode,
    FixMode,
    Proving,
    Reporting,
    Selection,
    UpgradeMode,
    collected,
    complete_explained,
    exclude_option,
    format_option,
    mcore_option,
    option,
    proving_options,
    release_options,
    rules_option,
    shared_options,
)
from cgmigrate.cli.program import DASHES, Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cgmigrate.megatron.releases import Release


MIGRATE = "Check and migrate"
READ = "Read about rules and settings"
PROVE = "Prove a migration"
"""Sections of commands in the help."""
FIXES = "Fixes"
"""Sections of options."""


def _show_version(context: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested:
        # Reading it takes longer than starting.
        from cgmigrate import __version__

        click.echo(f"cgmigrate {__version__}")
        context.exit()


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`cgmigrate help COMMAND` shows the options of a command.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Migrate, lint and verify the CUDA-graph settings of Megatron projects.

    --from and --to set the releases of megatron-core. Without them, the releases come from the project's pins
    (pyproject.toml, requirements files, lock files, ...). Without pins, settings are migrated from 0.17 to the newest
    known release.
    """
    # A run makes many objects and few cycles: collecting often costs a tenth of it and frees nothing.
    gc.set_threshold(100_000, 50, 50)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@main.command(
    section=MIGRATE,
    examples=(
        "cgmigrate check .",
        "cgmigrate check --to 0.18 conf scripts/train.sh",
        "cgmigrate check --output-format sarif --output-file report.sarif .",
    ),
)
@shared_options
@proving_options
@collected(mode=CheckMode)
@option(FIXES, "--fix", is_flag=True, help="Do the same as `cgmigrate fix`, which has more options.")
@option(
    OUTPUT,
    "--statistics",
    "table",
    flag_value="statistics",
    default="",
    help="Show the number of diagnostics of each rule instead of the diagnostics.",
)
@option(
    CONFIGURATION,
    "--show-settings",
    is_flag=True,
    help="Show the settings in effect for PATHS and their origin, and exit.",
)
@option(CONFIGURATION, "--show-files", is_flag=True, help="List the files that would be searched, and exit.")
@option(
    GATE, "--write-baseline", is_flag=True, help="Write all current diagnostics to the baseline. Later runs hide them."
)
@option(GATE, "--prune-baseline", is_flag=True, help="Remove fixed diagnostics from the baseline.")
@option(
    GATE,
    "--add-ignore",
    is_flag=True,
    help="Write a comment that suppresses each diagnostic: # cgmigrate: ignore[CODE].",
)
@option(GATE, "--reason", metavar="TEXT", type=str, help="Write this reason in the comments of --add-ignore.")
@option(
    GATE,
    "--strict",
    is_flag=True,
    help="Ignore suppression comments, configuration files below the root of the checkout, and a baseline in the "
    "checked tree.",
)
def check(
    selection: Selection,
    reporting: Reporting,
    fix: bool,
    show_settings: bool,
    show_files: bool,
    mode: CheckMode,
    proving: Proving,
) -> None:
    """Report deprecated, rejected and ineffective settings in PATHS.

    PATHS are files and directories. Use - to read one file from stdin.

    \b
    Exit status:
      0  There are no diagnostics.
      1  There are diagnostics.
      2  A path or option cannot be used, or an interrupted write cannot be reverted.
    """
    from cgmigrate.cli import check as checking
    from cgmigrate.cli.recovery import recover

    if mode.reason and (not mode.add_ignore or len(mode.reason.splitlines()) > 1):
        raise click.UsageError("--reason takes one line of text and needs --add-ignore")
    if mode.add_ignore and "-" in selection.paths:
        raise click.UsageError("--add-ignore writes files: give paths, not -")
    if mode.add_ignore and selection.strict:
        raise click.UsageError(
            "--add-ignore and --strict contradict each other: with --strict, comments suppress nothing"
        )
    if fix and (mode != CheckMode() or show_settings or show_files or reporting.table or selection.strict):
        raise click.UsageError("--fix takes no options of gates, --statistics, --show-settings or --show-files")
    recovered = recover(selection.paths)
    if fix:
        from cgmigrate.cli import fix as fixing

        sys.exit(max(recovered, fixing.fix(selection, reporting, FixMode(), proving)))
    if show_settings or show_files:
        sys.exit(checking.show(selection, reporting, settings=show_settings))
    sys.exit(max(recovered, checking.check(selection, reporting, mode, proving)))


@main.command(
    short_help="Rewrite settings so that the same graphs are captured.",
    section=MIGRATE,
    examples=(
        "cgmigrate fix --diff .",
        "cgmigrate fix conf scripts/train.sh",
        "cgmigrate fix --unsafe-fixes --interactive conf/train.yaml",
    ),
)
@shared_options
@proving_options
@collected(mode=FixMode)
@option(FIXES, "--diff", is_flag=True, help="Print the changes as a patch, and write nothing.")
@option(
    FIXES, "--unsafe-fixes", is_flag=True, help="Also apply unsafe fixes. Each diagnostic shows why its fix is unsafe."
)
@option(FIXES, "--docs", is_flag=True, help="Also apply fixes of documentation (Markdown, MDX).")
@option(FIXES, "--interactive", is_flag=True, help="Show each change, and ask before writing it.")
@option(FIXES, "--group", metavar="ID", default="", help="Apply only the fix with this id, in all of its files.")
@option(FIXES, "--fix-only", is_flag=True, help="Report no diagnostics, and exit with 0 even if some remain.")
@option(FIXES, "--undo", is_flag=True, help="Do the same as `cgmigrate undo`. Takes no PATHS.")
def fix(selection: Selection, reporting: Reporting, undo: bool, mode: FixMode, proving: Proving) -> None:
    """Rewrite the settings in PATHS so that exactly the same graphs are captured.

    PATHS are files and directories. Use - to read one file from stdin: the rewritten text goes to stdout, and the
    remaining diagnostics go to stderr.

    \b
    Exit status:
      0  No diagnostics remain.
      1  Diagnostics remain, or --diff shows a change.
      2  A path or option cannot be used, or a file cannot be written.
    """
    from cgmigrate.cli import fix as fixing
    from cgmigrate.cli.recovery import recover
    from cgmigrate.project.options import format_of

    if undo:
        if selection.paths or mode != FixMode():
            raise click.UsageError("--undo restores the last run as a whole: give no PATHS and no options")
        sys.exit(_undo())
    if mode.diff and mode.interactive:
        raise click.UsageError("--diff and --interactive contradict each other")
    if mode.fix_only and (mode.interactive or reporting.format or reporting.output_file):
        options = "--interactive, --output-format and --output-file"
        raise click.UsageError(f"--fix-only reports no diagnostics: remove {options}")
    if mode.diff and reporting.format and format_of(reporting.format).for_people:
        raise click.UsageError(f"--diff prints a patch and no diagnostics: remove --output-format {reporting.format}")
    sys.exit(max(recover(selection.paths), fixing.fix(selection, reporting, mode, proving)))


@main.command(
    short_help="Show all that a release of megatron-core changes in files.",
    section=MIGRATE,
    examples=(
        "cgmigrate upgrade --from 0.15 --to 0.18 .",
        "cgmigrate upgrade --diff .",
        "cgmigrate upgrade --fix conf scripts/train.sh",
    ),
)
@shared_options
@collected(mode=UpgradeMode)
@option(FIXES, "--diff", is_flag=True, help="Print the changes as a patch, and write nothing.")
@option(FIXES, "--fix", "writes", is_flag=True, help="Apply safe fixes.")
@option(FIXES, "--unsafe-fixes", is_flag=True, help="With --diff or --fix: also apply unsafe fixes.")
@option(FIXES, "--keep-defaults", is_flag=True, help="Write the former default where a release changed it.")
@option(FIXES, "--hybrid", is_flag=True, help="Rewrite GPT as hybrid models.")
@option(FIXES, "--step", "steps", is_flag=True, help="With --fix: one minor release after the other.")
@option(FIXES, "--commit", "commits", is_flag=True, help="With --fix: commit each set of files that is written.")
def upgrade(selection: Selection, reporting: Reporting, mode: UpgradeMode) -> None:
    """Show what changes between two releases in the files in PATHS (default: the working directory), worst first.

    Beside the rules of `check` it has those whose codes begin with UPG (`cgmigrate rules` lists them): settings, flags
    and attributes that are renamed or gone, defaults that changed and are not written, and imports and calls of
    Megatron-LM and Megatron-Bridge that a release rejects. --output-format shows each diagnostic as `check` does.

    \b
    Exit status:
      0  Nothing changes.
      1  Something changes.
      2  A path or option cannot be used, or a file cannot be written.
    """
    from cgmigrate.cli import upgrade as upgrading
    from cgmigrate.cli.recovery import recover

    sys.exit(max(recover(selection.paths), upgrading.upgrade(selection, reporting, mode)))


@main.command(short_help="Restore the files that the last run wrote.", section=MIGRATE)
@click.option("--list", "list_only", is_flag=True, help="List the runs that can be undone, and exit.")
def undo(list_only: bool) -> None:
    """Restore the files that the last run of `fix` or `check --add-ignore` wrote in this project.

    A file that has changed since then is not restored, nor are the files that were written together with it. Run it
    again to undo the run before.

    \b
    Exit status:
      0  All files are restored, or there is nothing to undo.
      1  A file could not be restored.
      2  An interrupted write could not be reverted.
    """
    from cgmigrate.cli.undo import list_runs

    if list_only:
        list_runs()
    else:
        sys.exit(_undo())


def _undo() -> int:
    from cgmigrate.cli.recovery import recover
    from cgmigrate.cli.undo import undo_last_run

    return max(recover(), DIAGNOSTICS if undo_last_run() else CLEAN)


@main.command(
    short_help="Print the completion script of a shell.",
    section=READ,
    examples=("cgmigrate completion bash > ~/.cgmigrate-complete.bash",),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script by which a shell completes commands, options, codes and releases on Tab.

    In ~/.bashrc or ~/.zshrc: eval "$(cgmigrate completion bash)"
    """
    from click.shell_completion import get_completion_class

    if (of_shell := get_completion_class(shell)) is not None:
        click.echo(of_shell(main, {}, "cgmigrate", "_CGMIGRATE_COMPLETE").source())


@main.command(
    section=READ,
    context_settings={"ignore_unknown_options": True},
    examples=("cgmigrate explain CG101", "cgmigrate explain cuda_graph_scope", "cgmigrate explain conf/train.yaml:12"),
)
@click.argument("name", shell_complete=complete_explained)
@release_options
@rules_option
@format_option("full", "json")
def explain(name: str, source: Release | None, target: Release | None, folders: tuple[str, ...], format: str) -> None:
    """Show a rule, a setting, or the settings of a file.

    NAME is a code such as CG101 or the name of a rule: shows what it reports, its reason, examples and sources. The
    beginning of a code such as CG1 lists the rules of this family. Or NAME is a field such as cuda_graph_impl or a
    flag such as --cuda-graph-impl: shows what each release accepts.

    Or it is FILE:LINE: shows the settings in effect at this line and where each is written, what they capture before
    and after, what changes together with them, and what prevents a fix. FILE alone lists all such places of a file.

    \b
    Exit status:
      0  It is shown.
      1  The line has no settings.
      2  Nothing has this name, or the file cannot be read.
    """
    from cgmigrate.cli.explain import Topic
    from cgmigrate.cli.explain import explain as explain_topic

    sys.exit(explain_topic(Topic(name, source, target, folders, format == "json")))


def _numbers_of_layers(_context: click.Context, _option: click.Parameter, text: str) -> tuple[int, ...]:
    """Return the numbers that a list names, in order. Raises click.BadParameter."""
    from cgmigrate.verify.measures import LEAST_SIZES

    numbers = sorted({int(word) for word in text.split(",") if word.strip().isdecimal() and int(word)})
    if text and len(numbers) < max(LEAST_SIZES, text.count(",") + 1):
        raise click.BadParameter(f"it takes at least {LEAST_SIZES} numbers, such as 2,4,6,8")
    return tuple(numbers)


@main.command(
    short_help="Compare what is captured before and after migration.",
    section=PROVE,
    examples=(
        "cgmigrate verify conf",
        "cgmigrate verify --level capture --report report.html conf/train.yaml:12",
        "cgmigrate verify --run -- torchrun pretrain_gpt.py --cuda-graph-impl local",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=PATH)
@release_options
@option(RUNS, "--run", "runs_job", is_flag=True, help="PATHS is the command of a training job; run it in all forms.")
@option(
    RUNS,
    "--source-command",
    default="",
    metavar="LINE",
    help="With --run: a shell command that runs the job as it is on the release that it is written for.",
)
@option(
    RUNS,
    "--measure",
    is_flag=False,
    flag_value=20,
    default=0,
    type=click.IntRange(0, 1000),
    metavar="[STEPS]",
    help="With --run: time further steps (20) without the observation, and show what graphs cost and gain.",
)
@option(
    RUNS,
    "--layers",
    callback=_numbers_of_layers,
    default="",
    metavar="N,N,N,N",
    help="With --run: run with these numbers of layers, at least four, and extrapolate the memory of graphs to the "
    "job's own.",
)
@option(RUNS, "--hybrid", is_flag=True, help="With --run: compare GPT and hybrid models.")
@option(RUNS, "--also", multiple=True, metavar="PATH", help="With --run: also migrate PATH, in a copy of the checkout.")
@option(
    RUNS,
    "--level",
    type=click.Choice(["config", "capture"]),
    default="config",
    show_default=True,
    help="With `config`, build the configuration of megatron-core from the settings, which needs no GPU. With "
    "`capture`, train and generate with it.",
)
@mcore_option
@option(
    RUNS,
    "--after",
    default="",
    metavar="FILE",
    help="Compare PATHS, one file, with this migrated file; with --run, with this migrated command.",
)
@option(
    RUNS,
    "--before",
    default="",
    metavar="REV|DIR",
    help="Compare the files in PATHS, which are migrated, with those of this git revision or directory.",
)
@option(FIXES, "--unsafe-fixes", is_flag=True, help="Migrate as `fix --unsafe-fixes` does.")
@option(
    RUNS,
    "--nproc",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Use this many GPUs of this machine.",
)
@option(
    RUNS,
    "--launcher",
    type=click.Choice(["torchrun", "srun", "slurm"]),
    default="torchrun",
    show_default=True,
    help="Start the arms with torchrun, submit them to Slurm as jobs, or print a script that starts them with srun.",
)
@option(
    RUNS,
    "--slurm",
    multiple=True,
    metavar="KEY=VALUE",
    help="Give this option of sbatch to the jobs (`partition=batch`). `cluster=local` runs them on this machine.",
)
@option(
    RUNS,
    "--workload",
    "workloads",
    multiple=True,
    type=click.Choice(["training", "static", "dynamic"]),
    help="Run this workload. By default: training, and generation if graphs are captured in inference.",
)
@option(
    RUNS,
    "--steps",
    type=click.IntRange(5, 1000),
    help="Train each arm for this many steps.  [default: 8; with --run 12]",
)
@option(RUNS, "--tokens", default=16, show_default=True, type=click.IntRange(2, 200), help="Generate this many tokens.")
@option(
    RUNS,
    "--packing",
    default="",
    metavar="N,N,..[:CAP]",
    help="Train with packed sequences of N documents a microbatch, padded to CAP documents.",
)
@option(RUNS, "--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Run this many arms at a time.")
@option(RUNS, "--timeout", default=300.0, show_default=True, help="Stop an arm after this many seconds.")
@option(RUNS, "--work", default="", metavar="DIR", help="Keep arms and results in this directory, and reuse them.")
@format_option("full", "json")
@option(OUTPUT, "--report", default="", metavar="FILE", help="Also write the report to this file, as an HTML page.")
@exclude_option
def verify(**options: Any) -> None:
    """Compare the configuration before and after migration: does it capture the same graphs?

    PATHS are files, directories, or FILE:LINE for one setting. Every setting that migration changes is compared. With
    --level capture, a small model of the same structure runs before and after, and its graphs and results are compared.

    With --run, the training job of a command runs as it is written, migrated as by `fix --unsafe-fixes`, without
    graphs, and without graphs again. Each ends after a few steps, and no checkpoint is written. Only settings change.

    \b
    Exit status:
      0  Everything is equivalent.
      1  Something is different.
      2  A comparison has no result, or a path or option cannot be used.
    """
    from cgmigrate.cli import verify as verifying
    from cgmigrate.cli.recovery import recover
    from cgmigrate.verify.plan import Scale, VerifySelection
    from cgmigrate.verify.session import VerifyOptions

    if options["hybrid"] and not options["runs_job"]:
        raise click.UsageError("--hybrid needs --run")
    if options["runs_job"]:
        sys.exit(_verify_job(options))
    recovered = recover(options["paths"])
    packing = verifying.packing_of(options["packing"])
    scale = Scale(options["steps"] or 8, options["tokens"], options["nproc"], options["workloads"] or None, packing)
    if options["before"] and options["after"]:
        raise click.UsageError("--before and --after cannot be used together: PATHS are the one form, or the other")
    names = ("paths", "source", "target", "unsafe_fixes", "after", "exclude", "before")
    selection = VerifySelection(*(options[name] for name in names))
    same = {name: options[name] for name in ("level", "mcore", "jobs", "timeout", "launcher", "slurm")}
    request = VerifyOptions(selection, scale=scale, folder=options["work"], **same)
    sys.exit(max(recovered, verifying.verify(request, options["format"] == "json", options["report"])))


def _verify_job(options: Mapping[str, Any]) -> int:
    from cgmigrate.cli import verify as verifying
    from cgmigrate.verify.job import STEPS, JobOptions

    named = {
        name: options[name]
        for name in ("also", "source", "target", "source_command", "after", "timeout", "measure", "layers", "hybrid")
    }
    if options["hybrid"] and (options["layers"] or options["source_command"]):
        raise click.UsageError("--hybrid compares whole models on one release: remove --layers and --source-command")
    job = JobOptions(options["paths"], steps=options["steps"] or STEPS, **named)
    return verifying.verify_job(job, options["work"], options["format"] == "json", options["report"])


@main.command(
    short_help="Compare the choices of graphs for a training job.",
    section=PROVE,
    examples=("cgmigrate recommend -- torchrun pretrain_gpt.py --num-layers 8 --bf16",),
)
@click.argument("words", nargs=-1, required=True, metavar="FILE | -- COMMAND...")
@mcore_option
@option(
    RUNS, "--measure", "steps", default=20, type=click.IntRange(1, 1000), metavar="STEPS", help="Time this many steps."
)
@option(
    RUNS, "--timeout", default=300.0, type=click.FloatRange(1), metavar="SECONDS", help="Stop a run after this time."
)
@option(RUNS, "--work", default="", metavar="DIR", help="Keep logs and results in DIR.")
@format_option("full", "json")
@click.pass_context
def recommend(
    context: click.Context,
    words: tuple[str, ...],
    mcore: tuple[str, ...],
    steps: int,
    timeout: float,
    work: str,
    format: str,
) -> None:
    """Run a training job, or a small model of the structure in FILE, with each choice of graphs, and rank these.

    Those with the fewest kernels outside of graphs come first, then those with the least memory. What megatron-core
    refuses is shown with the setting that prevents it.

    \b
    Exit status:
      0  A choice is recommended.
      1  None runs, or the job does not.
      2  An option cannot be used.
    """
    from cgmigrate.cli import recommend as recommending
    from cgmigrate.verify.job import JobOptions

    options, as_json = JobOptions(words, timeout=timeout, measure=steps), format == "json"
    if context.meta[DASHES]:
        sys.exit(recommending.recommend_for_job(options, work, as_json=as_json))
    if len(words) > 1:
        raise click.UsageError("name one FILE, or write -- before a command")
    sys.exit(recommending.recommend_for_file(options, mcore, work, as_json=as_json))


@main.command(
    short_help="Explain what the log of a job says about graphs and settings.",
    section=READ,
    examples=("cgmigrate doctor slurm-4711.out", "cgmigrate doctor --output-format json rank-0.log rank-1.log"),
)
@click.argument("logs", nargs=-1, required=True, type=PATH, metavar="LOG...")
@format_option("full", "json")
def doctor(logs: tuple[str, ...], format: str) -> None:
    """Explain what the LOGs of jobs say about CUDA graphs and settings: the cause, the setting, and the rule.

    Logs are read line by line, of any size and of several ranks; `-` is stdin. Errors about flags, fields, imports and
    arguments that the installed release does not have are compared with all releases.

    \b
    Exit status:
      0  Nothing is explained.
      1  Something is explained.
      2  A log cannot be read.
    """
    from cgmigrate.cli import doctor as doctoring

    sys.exit(doctoring.doctor(logs, as_json=format == "json"))


@main.group(name="rules", section=READ, invoke_without_command=True)
@rules_option
@format_option("full", "json")
@click.pass_context
def rules_group(ctx: click.Context, folders: tuple[str, ...], format: str) -> None:
    """List all rules, or test your own."""
    if ctx.invoked_subcommand is None:
        from cgmigrate.cli import rules

        rules.list_rules(folders, as_json=format == "json")


@rules_group.command(name="list")
@rules_option
@format_option("full", "json")
@click.pass_context
def list_rules(ctx: click.Context, folders: tuple[str, ...], format: str) -> None:
    """List all rules, one a line."""
    from cgmigrate.cli import rules

    of_group: tuple[str, ...] = ctx.parent.params["folders"] if ctx.parent else ()
    of_parent: str = ctx.parent.params["format"] if ctx.parent else ""
    rules.list_rules(of_group + folders, as_json="json" in (format, of_parent))


@rules_group.command(name="test")
@click.argument("folder", metavar="[DIR]", required=False)
@mcore_option
def test_rules(folder: str | None, mcore: tuple[str, ...]) -> None:
    """Check rules against the schema, run their examples, and compare old and new settings in megatron-core.

    DIR contains the rules. Without it, the built-in rules are tested. Of each entry in DIR/settings, every value is
    built in the old and the new form, by the installed release of megatron-core and those of --mcore, on the CPU.

    \b
    Exit status:
      0  All rules and examples pass.
      1  A rule, an example or an entry fails.
      2  DIR contains no rules, or a release is not available.
    """
    from cgmigrate.cli import rules

    sys.exit(rules.test_rules(folder, mcore))


@main.command(name="help", section=READ)
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def show_help(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show what a command does, and its options."""
    parent = ctx.parent
    assert parent is not None
    for name in names:
        group, command = parent.command, None
        if isinstance(group, click.Group):
            command = group.get_command(parent, name)
        if command is None:
            raise click.UsageError(f"no command {name}; `cgmigrate help` lists the commands", ctx=parent)
        parent = command.make_context(name, [], parent=parent, resilient_parsing=True)
    click.echo(parent.get_help())


if __name__ == "__main__":
    main()

"""The command line: commands and options only."""

from __future__ import annotations

import gc
import io
import sys
from typing import Any

import click

from cgmigrate import __version__
from cgmigrate.cli.console import Unusable
from cgmigrate.cli.program import Program
from cgmigrate.cli.session import CLEAN, DIAGNOSTICS, rules_of, team_folders
from cgmigrate.project.options import FORMATS
from cgmigrate.text.escaping import in_line, in_text


class _Release(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2 only
    name = "release"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from cgmigrate.cli.completion import releases

        return releases(ctx, param, incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from cgmigrate.megatron.versions import ReleaseError, parse_release

        try:
            return parse_release(value) if isinstance(value, str) else value
        except ReleaseError as error:
            self.fail(str(error), param, ctx)


def _codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
    from cgmigrate.cli.completion import codes

    return codes(ctx, param, incomplete)


# What is wrong with a path is said when it is looked at; the type is for shells that complete it.
_PATH = click.Path(readable=False)


def _common(command: Any) -> Any:
    """The options that check and fix share."""
    options = [
        click.argument("paths", nargs=-1, type=_PATH),
        click.option("--from", "source", type=_Release(), help="megatron-core release the files were written for."),
        click.option("--to", "target", type=_Release(), help="megatron-core release that is to read them."),
        click.option(
            "--select",
            multiple=True,
            metavar="CODE",
            shell_complete=_codes,
            help="Only rules whose code begins so (CG1, CG301).",
        ),
        click.option(
            "--ignore",
            multiple=True,
            metavar="CODE",
            shell_complete=_codes,
            help="Not the rules whose code begins so.",
        ),
        click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out paths, as .gitignore would."),
        click.option(
            "--rules",
            "folders",
            multiple=True,
            metavar="DIR",
            type=_PATH,
            help="A folder of your own rules, besides those that ship.",
        ),
        click.option("--config", metavar="FILE", type=_PATH, help="This configuration for all files, not the nearest."),
        click.option("--isolated", is_flag=True, help="Read no configuration file."),
        click.option("--baseline", metavar="FILE", type=_PATH, help="Leave out the diagnostics that this file counts."),
        click.option("--format", type=click.Choice(FORMATS), help="How diagnostics are written (text)."),
        click.option("--output-file", metavar="FILE", type=_PATH, help="Write the diagnostics there, not to stdout."),
        click.option(
            "--fail-on",
            type=click.Choice(["warning", "error"]),
            default="warning",
            help="The least severity that makes the exit status 1.",
        ),
        click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are diagnostics."),
        click.option("--stdin-filename", metavar="NAME", type=_PATH, help="The name of what is read where PATHS is -."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing but diagnostics and errors."),
        click.option("-v", "--verbose", is_flag=True, help="Also say what was looked at, and how releases were found."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="When to colour; auto heeds NO_COLOR and FORCE_COLOR.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


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
@_common
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
def check(statistics: bool, show_settings: bool, show_files: bool, **given: Any) -> None:
    """Report deprecated, rejected and ineffective settings in PATHS (- for stdin).

    Exit status: 0 nothing found, 1 diagnostics, 2 a path or option that cannot be used.
    """
    from cgmigrate.cli import check as checking

    if given["reason"] and (not given["add_ignore"] or len(given["reason"].splitlines()) > 1):
        raise click.UsageError("--reason is the text of one line for the comments of --add-ignore")
    if given["add_ignore"] and "-" in given["paths"]:
        raise click.UsageError("--add-ignore writes files: give paths, not -")
    if given["add_ignore"] and given["strict"]:
        raise click.UsageError("--add-ignore writes comments, and with --strict comments suppress nothing")
    if show_settings or show_files:
        sys.exit(checking.show(given, settings=show_settings))
    sys.exit(checking.check(given, statistics))


@main.command()
@_common
@click.option("--diff", is_flag=True, help="Show what would change instead of writing it.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that change what is captured; each says how.")
@click.option("--interactive", is_flag=True, help="Show each change and ask before it is written.")
@click.option("--fix-only", is_flag=True, help="Report no diagnostics, and exit with 0 although some are left.")
@click.option("--undo", is_flag=True, help="The same as `cgmigrate undo`; takes no PATHS.")
def fix(diff: bool, unsafe_fixes: bool, interactive: bool, fix_only: bool, undo: bool, **given: Any) -> None:
    """Rewrite the settings in PATHS so that exactly the same graphs are captured.

    What is read from stdin (-) is written to stdout, and the diagnostics that are left to stderr.

    Exit status: 0 nothing left to do, 1 diagnostics that need a decision remain (with --diff also: something would
    change), 2 a path or option that cannot be used, a file that cannot be written.
    """
    from cgmigrate.cli import fix as fixing

    if undo:
        if given["paths"] or diff or interactive:
            raise click.UsageError("--undo restores the last run as a whole: give no PATHS, --diff or --interactive")
        sys.exit(_undo())
    if diff and interactive:
        raise click.UsageError("--diff and --interactive contradict each other")
    if fix_only and (interactive or given["format"] or given["output_file"]):
        raise click.UsageError("--fix-only reports no diagnostics: give no --interactive, --format or --output-file")
    if diff and given["format"]:
        raise click.UsageError("--diff prints a patch and no diagnostics: leave out --format")
    sys.exit(fixing.fix(given, fixing.Mode(diff, unsafe_fixes, interactive, fix_only)))


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
@click.argument("code", shell_complete=_codes)
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
def explain(code: str, folders: tuple[str, ...]) -> None:
    """Explain the rule CODE: what it says, why, from where, with examples."""
    from cgmigrate.report.explain import rule_text

    rules = rules_of(team_folders(folders))
    rule = rules.get(code.upper()) or next((rule for rule in rules.values() if rule.name == code), None)
    if rule is None:
        import difflib

        near = [known for known in rules if known.startswith(code.upper())]
        near = near or difflib.get_close_matches(code.upper(), rules, n=3)
        hint = f"; did you mean {', '.join(near[:3])}?" if near else ""
        raise click.UsageError(f"no rule {code}{hint} (`cgmigrate rules` lists them)")
    click.echo(in_text(rule_text(rule)), nl=False)


@main.command()
@click.argument("paths", nargs=-1, required=True, type=_PATH)
@click.option("--from", "source", type=_Release(), help="megatron-core release the files were written for.")
@click.option("--to", "target", type=_Release(), help="megatron-core release that is to read them.")
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
def verify(as_json: bool, report: str, **given: Any) -> None:
    """Run the configuration before and after migration and compare: the same graphs, the same numbers?

    PATHS are files, directories, or FILE:LINE for one place in a file. Every site that migration changes is compared;
    on GPUs a small model of the same structure stands for the configuration's own.

    Exit status: 0 equivalent, 1 something is different, 2 something could not be told.
    """
    from cgmigrate.cli import verify as verifying

    sys.exit(verifying.verify(given, as_json, report))


@main.group(name="rules", invoke_without_command=True)
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
@click.pass_context
def rules_group(ctx: click.Context, folders: tuple[str, ...]) -> None:
    """List all rules, one a line, or test your own."""
    if ctx.invoked_subcommand is None:
        _list_rules(folders)


@rules_group.command(name="list")
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
@click.pass_context
def list_rules(ctx: click.Context, folders: tuple[str, ...]) -> None:
    """List all rules, one a line."""
    given = ctx.parent.params["folders"] if ctx.parent else ()
    _list_rules(given + folders)


@rules_group.command(name="test")
@click.argument("folder", metavar="[DIR]", required=False)
def test_rules(folder: str | None) -> None:
    """Test your own rules in DIR: each file against the schema, each example by running it.

    Without DIR, the rules that ship are tested.

    Exit status: 0 all hold, 1 a rule or an example fails, 2 a folder without rules.
    """
    from pathlib import Path

    from cgmigrate.lint.rule_tests import run_folder, run_shipped
    from cgmigrate.megatron.rule_data import RuleError
    from cgmigrate.report.rule_tests import tested_text, totals

    tested = []
    try:
        for result in run_shipped() if folder is None else run_folder(Path(folder)):
            click.echo(in_text(tested_text(result)), nl=False)
            tested.append(result)
    except RuleError as error:
        raise Unusable(str(error)) from error
    click.echo(totals(tested), err=True)
    sys.exit(DIAGNOSTICS if any(result.failures for result in tested) else CLEAN)


def _list_rules(folders: tuple[str, ...]) -> None:
    for rule in rules_of(team_folders(folders)).values():
        click.echo(in_line(f"{rule.id}  {rule.name:44} {rule.summary}"))


if __name__ == "__main__":
    main()

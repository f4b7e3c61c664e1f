"""The command line: commands and options only."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING, Any

import click

from cgmigrate import __version__
from cgmigrate.output import FORMATS, WITH_EDITS, Output, colour_wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cgmigrate.examination import Finding
    from cgmigrate.run import Checked, Options, Run

CLEAN, FINDINGS, ERROR = 0, 1, 2
MOST_LEFT_ALONE = 5


class _Release(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2 only
    name = "release"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from cgmigrate.completion import releases

        return releases(ctx, param, incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from cgmigrate.releases import ReleaseError, parse_release

        try:
            return parse_release(value) if isinstance(value, str) else value
        except ReleaseError as error:
            self.fail(str(error), param, ctx)


def _codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
    from cgmigrate.completion import codes

    return codes(ctx, param, incomplete)


# What is wrong with a path is said when it is looked at; the type is for shells that complete it.
_PATH = click.Path(readable=False)


def _common(command: Any) -> Any:
    """The options that check and fix share."""
    options = [
        click.argument("paths", nargs=-1, required=True, type=_PATH),
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
        click.option("--format", type=click.Choice(FORMATS), default="text", help="How findings are written."),
        click.option("--output-file", metavar="FILE", type=_PATH, help="Write the findings there, not to stdout."),
        click.option(
            "--fail-on",
            type=click.Choice(["warning", "error"]),
            default="warning",
            help="The least severity that makes the exit status 1.",
        ),
        click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are findings."),
        click.option("--stdin-filename", metavar="NAME", type=_PATH, help="The name of what is read where PATHS is -."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing but findings and errors."),
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


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
@click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of showing them.")
def check(statistics: bool, **given: Any) -> None:
    """Report deprecated, rejected and ineffective settings in PATHS (- for stdin).

    Exit status: 0 nothing found, 1 findings, 2 a path or option that cannot be used.
    """
    if statistics and given["format"] not in ("text", "concise"):
        raise click.UsageError(f"--statistics is for people: leave out --format {given['format']}")
    run = _start(given, rewrite=False, edits=given["format"] in WITH_EDITS)
    output = _output(run, given, statistics=statistics)
    found, failed = _each(run, output, lambda checked: output.take(checked, checked.findings))
    output.finish()
    if output.found or run.discovery.files_seen or not failed:
        output.tell(output.report().summary() if output.found else _clean(run, "nothing found"))
    _tell_notes(run, found, output)
    sys.exit(ERROR if failed else _status([reported.finding for reported in output.found], output, given))


@main.command()
@_common
@click.option("--diff", is_flag=True, help="Show what would change instead of writing it.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that change what is captured; each says how.")
@click.pass_context
def fix(ctx: click.Context, /, diff: bool, unsafe_fixes: bool, **given: Any) -> None:
    """Rewrite the settings in PATHS so that exactly the same graphs are captured.

    What is read from stdin (-) is written to stdout, and the findings that are left to stderr.

    Exit status: 0 nothing left to do, 1 findings that need a decision remain (with --diff also: something would
    change), 2 a path or option that cannot be used, a file that cannot be written.
    """
    if diff and ctx.get_parameter_source("format") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--diff prints a patch and no findings: leave out --format")
    problems: list[str] = []
    rewritten: list[Checked] = []

    def handle(checked: Checked) -> None:
        done = checked.after is not None and (diff or _written(checked, run, output, problems))
        if done:
            rewritten.append(checked)
        if not diff:
            output.take(checked, checked.remaining, written=done)
        elif checked.after is not None:
            from cgmigrate.edits import unified_diff

            mark = "\ufeff" if checked.bom else ""
            shown = unified_diff(checked.path, mark + checked.text, mark + checked.after)
            # As bytes: a patch must carry the file's own line ends and characters.
            click.echo((_coloured_diff(shown) if output.coloured() else shown).encode(), nl=False)

    run = _start(given, unsafe=unsafe_fixes, edits=given["format"] in WITH_EDITS)
    output = _output(run, given, to_stderr=run.options.stdin is not None)
    found, failed = _each(run, output, handle)
    if run.options.stdin is not None and not diff:
        from cgmigrate.edits import encode

        texts = [encode(checked.after or "", checked.bom) for checked in rewritten]
        click.echo(texts[0] if texts else run.options.stdin[1], nl=False)
    if not diff:
        output.finish()
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    fixed = sum(len(checked.fixed) for checked in rewritten)
    left = [finding for checked in found for finding in checked.remaining]
    remaining = len(left)
    if not fixed and not remaining:
        if run.discovery.files_seen or not failed:
            output.tell(_clean(run, "nothing to do"))
    else:
        verb = "Would fix" if diff else "Fixed"
        seen = _count(run.discovery.files_seen, "file")
        text = f"{verb} {_count(fixed, 'finding')} in {_count(len(rewritten), 'file')} of {seen}"
        if remaining:
            text += f"; {_count(remaining, 'finding')} left for you to decide"
            text += " (see `cgmigrate check`)" if diff else ""
        output.tell(text + ".")
    _tell_notes(run, found, output)
    if failed or problems:
        sys.exit(ERROR)
    changing = diff and fixed and not given["exit_zero"]
    sys.exit(FINDINGS if changing else _status(left, output, given))


def _written(checked: Checked, run: Run, output: Output, problems: list[str]) -> bool:
    """Write a file; what was read from stdin is written later."""
    from cgmigrate.edits import WriteError, encode, write

    if run.options.stdin is not None:
        return True
    try:
        write(checked.path, checked.data, encode(checked.after or "", checked.bom))
    except WriteError as error:
        problems.append(str(error))
        return False
    output.tell(f"rewrote {checked.path} ({_count(len(checked.fixed), 'finding')})")
    return True


@main.command()
@click.argument("code", shell_complete=_codes)
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
def explain(code: str, folders: tuple[str, ...]) -> None:
    """Explain the rule CODE: what it says, why, from where, with examples."""
    from cgmigrate.report.explain import rule_text

    rules = _rules(folders)
    rule = rules.get(code.upper()) or next((rule for rule in rules.values() if rule.name == code), None)
    if rule is None:
        import difflib

        near = [known for known in rules if known.startswith(code.upper())]
        near = near or difflib.get_close_matches(code.upper(), rules, n=3)
        hint = f"; did you mean {', '.join(near[:3])}?" if near else ""
        raise click.UsageError(f"no rule {code}{hint} (`cgmigrate rules` lists them)")
    click.echo(rule_text(rule), nl=False)


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
@click.argument("folder", metavar="DIR")
def test_rules(folder: str) -> None:
    """Test your own rules in DIR: each file against the schema, each example by running it.

    Exit status: 0 all hold, 1 a rule or an example fails, 2 a folder without rules.
    """
    from pathlib import Path

    from cgmigrate.report.rule_tests import tested_text, totals
    from cgmigrate.rule_tests import run_folder
    from cgmigrate.rules import RuleError

    tested = []
    try:
        for result in run_folder(Path(folder)):
            click.echo(tested_text(result), nl=False)
            tested.append(result)
    except RuleError as error:
        raise _Unusable(str(error)) from error
    click.echo(totals(tested), err=True)
    sys.exit(FINDINGS if any(result.failures for result in tested) else CLEAN)


def _list_rules(folders: tuple[str, ...]) -> None:
    for rule in _rules(folders).values():
        click.echo(f"{rule.id}  {rule.name:44} {rule.summary}")


def _rules(folders: tuple[str, ...]) -> Any:
    from pathlib import Path

    from cgmigrate.rules import RuleError, load

    try:
        return load([Path(folder) for folder in folders])
    except RuleError as error:
        raise _Unusable(str(error)) from error


def _start(given: dict[str, Any], unsafe: bool = False, rewrite: bool = True, edits: bool = False) -> Run:
    from cgmigrate.run import Options, Run

    source, target = given["source"], given["target"]
    if source and target and source > target:
        raise click.UsageError(f"--from {source} is newer than --to {target}")
    options: Options = Options(
        source=source,
        target=target,
        select=tuple(code.upper() for code in given["select"]),
        ignore=tuple(code.upper() for code in given["ignore"]),
        unsafe=unsafe,
        rewrite=rewrite,
        edits=edits,
        stdin=_stdin(given),
        exclude=given["exclude"],
        rule_folders=given["folders"],
    )
    run = Run(given["paths"], options)
    for code in options.select + options.ignore:
        # A code that selects nothing would turn a gate off unnoticed.
        if not any(rule.startswith(code) for rule in _rules(given["folders"])):
            raise click.UsageError(f"no rule's code begins with {code} (`cgmigrate rules` lists them)")
    return run


def _stdin(given: dict[str, Any]) -> tuple[str, bytes] | None:
    """What is read from stdin, where PATHS says so, and its name."""
    name, paths = given["stdin_filename"], given["paths"]
    if "-" not in paths:
        if name is not None:
            raise click.UsageError("--stdin-filename names what is read from stdin: give - as the only path")
        return None
    if len(paths) > 1:
        raise click.UsageError("- reads from stdin and must be the only path (a file of this name is ./-)")
    if name is None:
        raise click.UsageError("- reads from stdin: give --stdin-filename, which tells the syntax and the project")
    return name, sys.stdin.buffer.read()


def _output(run: Run, given: dict[str, Any], statistics: bool = False, to_stderr: bool = False) -> Output:
    """Where the report goes, as the options say."""
    return Output(
        run,
        given["format"],
        given["output_file"],
        statistics,
        quiet=given["quiet"],
        verbose=given["verbose"],
        to_stderr=to_stderr,
        colour=colour_wanted(given["color"]),
    )


def _status(findings: Sequence[Finding], output: Output, given: dict[str, Any]) -> int:
    """The exit status that findings mean."""
    failing = [finding for finding in findings if given["fail_on"] == "warning" or finding.severity == "error"]
    if findings and not failing:
        output.tell("None of them is an error, so the exit status is 0 (--fail-on error).")
    return FINDINGS if failing and not given["exit_zero"] else CLEAN


def _clean(run: Run, what: str) -> str:
    return f"Checked {_count(run.discovery.files_seen, 'file')}: {what}."


def _each(run: Run, output: Output, handle: Any) -> tuple[list[Checked], bool]:
    """Handle every file; return those with something to say, and whether a path could not be used."""
    from cgmigrate.discovery import Trouble

    found: list[Checked] = []
    failed = False
    try:
        with output.progress() as away:
            for item in run:
                with away():
                    if isinstance(item, Trouble):
                        failed = failed or item.missing
                        output.trouble(item)
                    else:
                        handle(item)
                        found.append(item)
    except ValueError as error:  # a rule (RuleError) or a pattern that cannot be used
        raise _Unusable(str(error)) from error
    return found, failed


class _Unusable(click.ClickException):
    """A rule or option that cannot be used."""

    exit_code = ERROR


def _tell_notes(run: Run, found: list[Checked], output: Output) -> None:
    output.details()
    for note in run.notes:
        output.tell(f"note: {note}")
    for syntax, count in run.unread.items():
        kind = syntax.name.lower().replace("_", " ")
        output.tell(
            f"note: {_count(count, f'{kind} file')} with these names not read; this version reads YAML and Python."
        )
    if not found:
        return
    from cgmigrate.documents import FOLLOWS_USES

    by_owner: dict[str, list[str]] = {}
    for checked in found:
        for line, key, owner in checked.left_alone:
            if owner != FOLLOWS_USES:
                by_owner.setdefault(owner, []).append(f"{checked.path}:{line}: `{key}`")
    for owner, places in by_owner.items():
        output.tell(f"note: left alone, since the name belongs to {owner}:")
        most = len(places) if output.verbose else MOST_LEFT_ALONE
        for place in places[:most]:
            output.tell(f"  {place}")
        if len(places) > most:
            output.tell(f"  and {len(places) - most} more (--verbose shows all)")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _coloured_diff(text: str) -> str:
    colours = {"+": "green", "-": "red", "@": "cyan"}
    return "".join(click.style(line, fg=colours.get(line[:1])) for line in text.splitlines(keepends=True))


if __name__ == "__main__":
    main()

"""The command line: commands and options only."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING, Any

import click

from cgmigrate import __version__

if TYPE_CHECKING:
    from cgmigrate.run import Checked, Options, Run

CLEAN, FINDINGS, ERROR = 0, 1, 2
MOST_LEFT_ALONE = 5


class _Release(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2 only
    name = "release"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from cgmigrate.releases import ReleaseError, parse_release

        try:
            return parse_release(value) if isinstance(value, str) else value
        except ReleaseError as error:
            self.fail(str(error), param, ctx)


def _common(command: Any) -> Any:
    """The options that check and fix share."""
    options = [
        click.argument("paths", nargs=-1, required=True, type=str),
        click.option("--from", "source", type=_Release(), help="megatron-core release the files were written for."),
        click.option("--to", "target", type=_Release(), help="megatron-core release that is to read them."),
        click.option("--select", multiple=True, metavar="CODE", help="Only rules whose code begins so (CG1, CG301)."),
        click.option("--ignore", multiple=True, metavar="CODE", help="Not the rules whose code begins so."),
        click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out paths, as .gitignore would."),
        click.option(
            "--rules",
            "folders",
            multiple=True,
            metavar="DIR",
            type=str,
            help="A folder of your own rules, besides those that ship.",
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
def check(**given: Any) -> None:
    """Report deprecated, rejected and ineffective settings in PATHS.

    Exit status: 0 nothing found, 1 findings, 2 a path or option that cannot be used.
    """

    def show(checked: Checked) -> None:
        for finding in checked.findings:
            from cgmigrate.report.text import render

            click.echo(render(checked.path, checked.text, finding, _style), nl=True)

    run = _start(given, rewrite=False)
    found, failed = _each(run, show)
    fixable = sum(finding.safety == "safe" for checked in found for finding in checked.findings)
    total = sum(len(checked.findings) for checked in found)
    if total:
        files = sum(bool(checked.findings) for checked in found)
        held = f", {fixable} of them ([*]) fixed by `cgmigrate fix`" if fixable else ""
        click.echo(
            f"Found {_count(total, 'finding')} in {files} of {_count(run.discovery.files_seen, 'file')}{held}.",
            err=True,
        )
    elif run.discovery.files_seen or not failed:
        click.echo(f"Checked {_count(run.discovery.files_seen, 'file')}: nothing found.", err=True)
    _tell_notes(run, found)
    sys.exit(ERROR if failed else FINDINGS if total else CLEAN)


@main.command()
@_common
@click.option("--diff", is_flag=True, help="Show what would change instead of writing it.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that change what is captured; each says how.")
def fix(diff: bool, unsafe_fixes: bool, **given: Any) -> None:
    """Rewrite the settings in PATHS so that exactly the same graphs are captured.

    Exit status: 0 nothing left to do, 1 findings that need a decision remain (with --diff also: something would
    change), 2 a path or option that cannot be used, a file that cannot be written.
    """
    problems: list[str] = []
    rewritten: list[Checked] = []

    def handle(checked: Checked) -> None:
        if not diff:
            for finding in checked.remaining:
                from cgmigrate.report.text import render

                click.echo(render(checked.path, checked.text, finding, _style), nl=True)
        if checked.after is None:
            return
        if diff:
            from cgmigrate.edits import unified_diff

            mark = "\ufeff" if checked.bom else ""
            shown = _coloured_diff(unified_diff(checked.path, mark + checked.text, mark + checked.after))
            # As bytes: a patch must carry the file's own line ends and characters.
            click.echo(shown.encode(), nl=False)
            rewritten.append(checked)
            return
        from cgmigrate.edits import WriteError, encode, write

        try:
            write(checked.path, checked.data, encode(checked.after, checked.bom))
        except WriteError as error:
            problems.append(str(error))
        else:
            rewritten.append(checked)
            click.echo(f"rewrote {checked.path} ({_count(len(checked.fixed), 'finding')})", err=True)

    run = _start(given, unsafe=unsafe_fixes)
    found, failed = _each(run, handle)
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    fixed = sum(len(checked.fixed) for checked in rewritten)
    remaining = sum(len(checked.remaining) for checked in found)
    seen = _count(run.discovery.files_seen, "file")
    if not fixed and not remaining:
        if run.discovery.files_seen or not failed:
            click.echo(f"Checked {seen}: nothing to do.", err=True)
    else:
        verb = "Would fix" if diff else "Fixed"
        text = f"{verb} {_count(fixed, 'finding')} in {_count(len(rewritten), 'file')} of {seen}"
        if remaining:
            text += f"; {_count(remaining, 'finding')} left for you to decide"
            text += " (see `cgmigrate check`)" if diff else ""
        click.echo(text + ".", err=True)
    _tell_notes(run, found)
    sys.exit(ERROR if failed or problems else FINDINGS if remaining or (diff and fixed) else CLEAN)


@main.command()
@click.argument("code")
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


@main.command(name="rules")
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
def list_rules(folders: tuple[str, ...]) -> None:
    """List all rules, one a line."""
    for rule in _rules(folders).values():
        click.echo(f"{rule.id}  {rule.name:44} {rule.summary}")


@main.command()
@click.argument("paths", nargs=-1, required=True, type=str)
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
@click.option("--after", default="", metavar="FILE", help="The migrated form of the one file given, made by hand.")
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
    from cgmigrate.verify import report as verdicts

    outcome = _verified(given)
    if outcome.script:
        click.echo(outcome.script, nl=False)
        return
    if as_json:
        config = [verdict.as_json() for verdict in outcome.config]
        click.echo(verdicts.as_json(outcome.comparisons, outcome.results, config), nl=False)
    else:
        for verdict in outcome.config:
            click.echo(verdicts.config_text(verdict, _style_verdict), nl=False)
        for comparison in outcome.comparisons:
            click.echo(verdicts.text(comparison, outcome.results, _style_verdict), nl=False)
    if report:
        verdicts.write_page(report, outcome.comparisons, outcome.results)
    for path in outcome.trouble:
        click.echo(f"error: {path}", err=True)
    click.echo(verdicts.summary(outcome.verdicts), err=True)
    sys.exit(ERROR if outcome.trouble else outcome.status)


def _verified(given: dict[str, Any]) -> Any:
    from cgmigrate.verify.mcore import MCoreError
    from cgmigrate.verify.plan import PlanError
    from cgmigrate.verify.session import VerifyError, verify, wanted_of

    try:
        return verify(wanted_of(given), lambda line: click.echo(line, err=True))
    except (MCoreError, PlanError, VerifyError) as error:
        raise _Unusable(str(error)) from error


def _style_verdict(text: str, verdict: str) -> str:
    colour = {"equivalent": "green", "equivalent, but": "yellow", "different": "red", "inconclusive": "magenta"}
    return text if _no_colour() else click.style(text, fg=colour[verdict], bold=True)


def _rules(folders: tuple[str, ...]) -> Any:
    from pathlib import Path

    from cgmigrate.rules import RuleError, load

    try:
        return load([Path(folder) for folder in folders])
    except RuleError as error:
        raise _Unusable(str(error)) from error


def _start(given: dict[str, Any], unsafe: bool = False, rewrite: bool = True) -> Run:
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
        exclude=given["exclude"],
        rule_folders=given["folders"],
    )
    run = Run(given["paths"], options)
    for code in options.select + options.ignore:
        # A code that selects nothing would turn a gate off unnoticed.
        if not any(rule.startswith(code) for rule in _rules(given["folders"])):
            raise click.UsageError(f"no rule's code begins with {code} (`cgmigrate rules` lists them)")
    return run


def _each(run: Run, handle: Any) -> tuple[list[Checked], bool]:
    """Handle every file; return those with something to say, and whether a path could not be used."""
    from cgmigrate.discovery import Trouble

    found: list[Checked] = []
    failed = False
    try:
        for item in run:
            if isinstance(item, Trouble):
                failed = failed or item.missing
                click.echo(f"{'error' if item.missing else 'warning'}: {item.path}: {item.reason}", err=True)
            else:
                handle(item)
                found.append(item)
    except ValueError as error:  # a rule (RuleError) or a pattern that cannot be used
        raise _Unusable(str(error)) from error
    return found, failed


class _Unusable(click.ClickException):
    """A rule or option that cannot be used."""

    exit_code = ERROR


def _tell_notes(run: Run, found: list[Checked]) -> None:
    for note in run.notes:
        click.echo(f"note: {note}", err=True)
    for syntax, count in run.unread.items():
        kind = syntax.name.lower().replace("_", " ")
        click.echo(
            f"note: {_count(count, f'{kind} file')} with these names not read; this version reads YAML and Python.",
            err=True,
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
        click.echo(f"note: left alone, since the name belongs to {owner}:", err=True)
        for place in places[:MOST_LEFT_ALONE]:
            click.echo(f"  {place}", err=True)
        if len(places) > MOST_LEFT_ALONE:
            click.echo(f"  and {len(places) - MOST_LEFT_ALONE} more", err=True)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_COLOURS = {"path": {"bold": True}, "rule": {"fg": "red", "bold": True}, "mark": {"fg": "red"}}
_COLOURS |= {"fix": {"fg": "green"}, "decide": {"fg": "yellow"}, "note": {"fg": "cyan"}}


def _style(text: str, kind: str) -> str:
    """Colour for a terminal; click takes it away when output goes elsewhere."""
    return text if _no_colour() else click.style(text, **_COLOURS[kind])  # type: ignore[arg-type]


def _no_colour() -> bool:
    import os

    return bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()


def _coloured_diff(text: str) -> str:
    if _no_colour():
        return text
    colours = {"+": "green", "-": "red", "@": "cyan"}
    return "".join(click.style(line, fg=colours.get(line[:1])) for line in text.splitlines(keepends=True))


if __name__ == "__main__":
    main()

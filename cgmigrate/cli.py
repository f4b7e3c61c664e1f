"""The command line: commands and options only."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING, Any

import click

from cgmigrate import __version__

if TYPE_CHECKING:
    from cgmigrate.configuration import Configurations
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
        click.argument("paths", nargs=-1, type=str),
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
        click.option("--config", metavar="FILE", type=str, help="This configuration for all files, not the nearest."),
        click.option("--isolated", is_flag=True, help="Read no configuration file."),
        click.option("--baseline", metavar="FILE", type=str, help="Leave out the findings that this file counts."),
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
@click.option("--show-settings", is_flag=True, help="Show what holds for PATHS, and from where; check nothing.")
@click.option("--show-files", is_flag=True, help="Show which files would be looked at; check nothing.")
@click.option("--write-baseline", is_flag=True, help="Count all findings in the baseline, so that they are known.")
@click.option("--prune-baseline", is_flag=True, help="Take out of the baseline what is fixed.")
@click.option(
    "--add-ignore", is_flag=True, help="Write comments that leave the findings out: # cgmigrate: ignore[CODE]."
)
@click.option("--reason", metavar="TEXT", type=str, help="What these comments give as the reason.")
def check(show_settings: bool, show_files: bool, **given: Any) -> None:
    """Report deprecated, rejected and ineffective settings in PATHS.

    Exit status: 0 nothing found, 1 findings, 2 a path or option that cannot be used.
    """
    adding = bool(given["add_ignore"])
    if given["reason"] and (not adding or len(given["reason"].splitlines()) > 1):
        raise click.UsageError("--reason is the text of one line for the comments of --add-ignore")
    from cgmigrate.saving import Writer

    writer = Writer()

    def show(checked: Checked) -> None:
        if adding and checked.after is not None:
            writer.write(checked, "wrote comments in")
        for finding in () if given["write_baseline"] else checked.remaining:
            from cgmigrate.report.text import render

            click.echo(render(checked.path, checked.text, finding, _style), nl=True)

    if show_settings or show_files:
        from cgmigrate.showing import show_files_of, show_settings_of

        shown = _start(given, with_baseline=False)
        sys.exit(ERROR if (show_settings_of if show_settings else show_files_of)(shown) else CLEAN)
    run = _start(given, rewrite=False)
    found, failed = _each(run, show)
    failed = writer.tell() or failed
    if given["write_baseline"]:
        from cgmigrate.gating import write_baseline

        click.echo(_usable(write_baseline, run), err=True)
        sys.exit(ERROR if failed else CLEAN)
    if adding:
        click.echo(f"Wrote comments for {_count(sum(len(c.fixed) for c in found), 'finding')}.", err=True)
    fixable = sum(finding.safety == "safe" for checked in found for finding in checked.remaining)
    total = sum(len(checked.remaining) for checked in found)
    if total:
        files = sum(bool(checked.remaining) for checked in found)
        held = f", {fixable} of them ([*]) fixed by `cgmigrate fix`" if fixable else ""
        click.echo(
            f"Found {_count(total, 'finding')} in {files} of {_count(run.discovery.files_seen, 'file')}{held}.",
            err=True,
        )
    elif run.discovery.files_seen or not failed:
        hidden = sum(len(checked.hidden) for checked in found)
        left_out = f" ({hidden} left out by comments)" if hidden else ""
        click.echo(f"Checked {_count(run.discovery.files_seen, 'file')}: nothing found{left_out}.", err=True)
    _tell_notes(run, found)
    if run.baseline is not None:
        from cgmigrate.gating import tell_baseline

        for line in _usable(tell_baseline, run, found, given["prune_baseline"]):
            click.echo(line, err=True)
    sys.exit(ERROR if failed else FINDINGS if total else CLEAN)


@main.command()
@_common
@click.option("--diff", is_flag=True, help="Show what would change instead of writing it.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that change what is captured; each says how.")
@click.option("--interactive", is_flag=True, help="Show each change and ask before it is written.")
@click.option("--undo", is_flag=True, help="Restore the files of the last run; takes no PATHS.")
def fix(diff: bool, unsafe_fixes: bool, interactive: bool, undo: bool, **given: Any) -> None:
    """Rewrite the settings in PATHS so that exactly the same graphs are captured.

    Exit status: 0 nothing left to do, 1 findings that need a decision remain (with --diff also: something would
    change), 2 a path or option that cannot be used, a file that cannot be written.
    """
    if undo:
        from cgmigrate.undoing import undo_last_run

        if given["paths"] or diff or interactive:
            raise click.UsageError("--undo restores the last run as a whole: give no PATHS, --diff or --interactive")
        sys.exit(ERROR if undo_last_run() else CLEAN)
    if diff and interactive:
        raise click.UsageError("--diff and --interactive contradict each other")
    rewritten: list[Checked] = []
    from cgmigrate.saving import Writer

    writer = Writer()

    def handle(checked: Checked) -> None:
        if not diff:
            for finding in checked.remaining:
                # What a person was asked about has been seen.
                if interactive and (finding.safety or run.chooser is None or run.chooser.nothing):
                    continue
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
        if writer.write(checked, "rewrote"):
            rewritten.append(checked)

    run = _start(given, unsafe=unsafe_fixes)
    if interactive:
        from cgmigrate.interactive import Chooser
        from cgmigrate.report.text import render

        run.chooser = Chooser(lambda path, text, finding: render(path, text, finding, _style), _coloured_diff)
    found, failed = _each(run, handle)
    failed = writer.tell() or failed
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
    sys.exit(ERROR if failed else FINDINGS if remaining or (diff and fixed) else CLEAN)


@main.command()
@click.argument("code")
@click.option("--rules", "folders", multiple=True, type=str, help="A folder of your own rules.")
def explain(code: str, folders: tuple[str, ...]) -> None:
    """Explain the rule CODE: what it says, why, from where, with examples."""
    from cgmigrate.report.explain import rule_text

    rules = _rules(_team_folders(folders))
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
    for rule in _rules(_team_folders(folders)).values():
        click.echo(f"{rule.id}  {rule.name:44} {rule.summary}")


def _team_folders(folders: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of a team's own rules: those of the configuration, then those given."""
    from cgmigrate.configuration import Configurations

    here = _usable(Configurations(folders=folders).here)
    return (*here.extend_rules, *folders)


def _rules(folders: tuple[str, ...]) -> Any:
    from pathlib import Path

    from cgmigrate.rules import RuleError, load

    try:
        return load([Path(folder) for folder in folders])
    except RuleError as error:
        raise _Unusable(str(error)) from error


def _start(given: dict[str, Any], unsafe: bool = False, rewrite: bool = True, with_baseline: bool = True) -> Run:
    from cgmigrate.run import Options, Run

    if not given["paths"]:
        raise click.UsageError("Missing argument 'PATHS...'.")
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
        baseline=given["baseline"] or "",
        add_ignore=given.get("add_ignore", False),
        reason=given.get("reason") or "",
    )
    configurations = _configurations(given)
    run = Run(given["paths"], options, configurations)
    asked = any(given.get(name) for name in ("baseline", "write_baseline", "prune_baseline"))
    if with_baseline and (asked or configurations.here().baseline):
        from cgmigrate.gating import baseline_of

        run.baseline = _usable(baseline_of, run, given)
    for code in options.select + options.ignore:
        # A code that selects nothing would turn a gate off unnoticed.
        folders = configurations.here().extend_rules + given["folders"]
        if not any(rule.startswith(code) for rule in _rules(folders)):
            raise click.UsageError(f"no rule's code begins with {code} (`cgmigrate rules` lists them)")
    return run


def _configurations(given: dict[str, Any]) -> Configurations:
    """The configuration files; the one that decides on the run as a whole is read at once."""
    from cgmigrate.configuration import Configurations

    if given["config"] and given["isolated"]:
        raise click.UsageError("--config and --isolated contradict each other")
    found = Configurations(given["config"] or "", given["isolated"], bool(given["exclude"]), given["folders"])
    _usable(found.here)
    return found


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


def _usable(ask: Any, *arguments: Any) -> Any:
    """What a function answers; a ValueError of it is something that the user gave and cannot be used."""
    try:
        return ask(*arguments)
    except ValueError as error:
        raise _Unusable(str(error)) from error


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

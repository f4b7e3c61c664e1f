"""From the options of check and fix to a run and its output: what was asked, and whether it can be done."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from cgmigrate.cli.console import WITH_EDITS, Output, Unusable, colour_wanted
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Diagnostic
    from cgmigrate.lint.run import Checked, Run
    from cgmigrate.project.cascade import Configurations
    from cgmigrate.project.inputs import InputError

CLEAN, DIAGNOSTICS, ERROR = 0, 1, 2
"""Exit statuses."""
MOST_LEFT_ALONE = 5


def usable(ask: Any, *arguments: Any) -> Any:
    """What a function answers; a ValueError of it is something that the user gave and cannot be used."""
    try:
        return ask(*arguments)
    except ValueError as error:
        raise Unusable(str(error)) from error


def rules_of(folders: tuple[str, ...]) -> Any:
    """The rules that ship, and those in the folders, by id."""
    from pathlib import Path

    from cgmigrate.lint.rules import load

    return usable(load, [Path(folder) for folder in folders])


def team_folders(folders: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of a team's own rules: those of the configuration, then those given."""
    from cgmigrate.project.cascade import Configurations

    here = usable(Configurations(rule_folders=folders).for_run)
    return (*here.extend_rules, *folders)


def run_of(given: dict[str, Any], unsafe: bool = False, rewrite: bool = True, with_baseline: bool = True) -> Run:
    """The run that options ask for; ``given["format"]`` becomes the format to write."""
    from cgmigrate.lint.run import Run
    from cgmigrate.project.options import Options

    if not given["paths"]:
        raise click.UsageError("Missing argument 'PATHS...'.")
    source, target = given["source"], given["target"]
    if source and target and source > target:
        raise click.UsageError(f"--from {source} is newer than --to {target}")
    if any(os.path.samefile(folder, os.curdir) for folder in given["folders"] if os.path.isdir(folder)):
        # The YAML of a folder of rules is not checked.
        raise click.UsageError("--rules: the working directory cannot be a folder of rules; put them into one below it")
    configurations = _configurations(given)
    given["format"] = given["format"] or configurations.for_run().format or "text"
    options = Options(
        source=source,
        target=target,
        select=tuple(code.upper() for code in given["select"]),
        ignore=tuple(code.upper() for code in given["ignore"]),
        unsafe=unsafe,
        rewrite=rewrite,
        edits=given["format"] in WITH_EDITS,
        stdin=_stdin(given),
        exclude=given["exclude"],
        rule_folders=given["folders"],
        baseline=given["baseline"] or "",
        add_ignore=given.get("add_ignore", False),
        reason=given.get("reason") or "",
        strict=bool(given.get("strict")),
    )
    run = Run(given["paths"], options, configurations)
    asked = any(given.get(name) for name in ("baseline", "write_baseline", "prune_baseline"))
    if with_baseline and (asked or configurations.for_run().baseline):
        from cgmigrate.cli.baseline import baseline_of

        run.baseline = usable(baseline_of, run, given)
    for code in options.select + options.ignore:
        # A code that selects nothing would turn a gate off unnoticed.
        asked_of = (replace(options, rule_folders=folders) for folders in _rule_folders(run, given))
        if not any(rule.startswith(code) for some in asked_of for rule in usable(run.rules, some)):
            raise click.UsageError(f"no rule's code begins with {code} (`cgmigrate rules` lists them)")
    return run


def _rule_folders(run: Run, given: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The folders of rules that hold here, then those that hold for the paths."""
    assert run.configurations is not None
    yield run.configurations.for_run().extend_rules + given["folders"]
    names = [run.options.stdin[0]] if run.options.stdin else given["paths"]
    around = {name if os.path.isdir(name) else os.path.dirname(name) for name in names}
    for folder in sorted(map(os.path.abspath, around)):
        if own := usable(run.configurations.for_folder, folder).extend_rules:
            yield own + given["folders"]


def _configurations(given: dict[str, Any]) -> Configurations:
    """The configuration files; the one that decides on the run as a whole is read at once."""
    from cgmigrate.project.cascade import Configurations

    if given["config"] and given["isolated"]:
        raise click.UsageError("--config and --isolated contradict each other")
    strict = bool(given.get("strict"))
    found = Configurations(given["config"] or "", given["isolated"], bool(given["exclude"]), strict, given["folders"])
    usable(found.for_run)
    if strict and given["baseline"] and found.in_tree(given["baseline"]):
        raise click.UsageError("--strict takes no baseline from the tree that it checks: give one from outside of it")
    return found


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


def output_of(run: Run, given: dict[str, Any], statistics: bool = False) -> Output:
    """Where the report goes, as the options say; to stderr where stdout carries a rewritten text."""
    return Output(
        run,
        given["format"],
        given["output_file"],
        statistics,
        quiet=given["quiet"],
        verbose=given["verbose"],
        to_stderr=run.options.stdin is not None and run.options.rewrite,
        colour=colour_wanted(given["color"]),
    )


def each(run: Run, output: Output, handle: Callable[[Checked], None]) -> tuple[list[Checked], bool]:
    """Handle every file; return those with something to say, and whether a path could not be used."""
    from cgmigrate.project.inputs import InputError

    found: list[Checked] = []
    failed = False
    try:
        with output.progress() as away:
            if run.chooser is not None:
                run.chooser.away = away
            for item in run:
                with away():
                    input_error = item if isinstance(item, InputError) else _handled(item, handle, found)
                    if input_error is not None:
                        failed = failed or input_error.missing
                        output.input_error(input_error)
    except ValueError as error:  # a rule (RuleError) or a pattern that cannot be used
        raise Unusable(str(error)) from error
    return found, failed


def _handled(checked: Checked, handle: Callable[[Checked], None], found: list[Checked]) -> InputError | None:
    """Handle one file; what fails in the program itself is returned, so that the other files are still reported."""
    try:
        handle(checked)
    except (OSError, click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:
        from cgmigrate.project.inputs import InputError
        from cgmigrate.text.failures import internal_error

        return InputError(checked.path, internal_error(error), missing=True)
    found.append(checked)
    return None


def status_of(diagnostics: Sequence[Diagnostic], output: Output, given: dict[str, Any]) -> int:
    """The exit status that diagnostics mean."""
    if not diagnostics:
        return CLEAN
    from cgmigrate.lint.diagnostics import UNREADABLE

    # What a file holds that could not be read may be an error.
    failing = [f for f in diagnostics if given["fail_on"] == "warning" or f.severity == "error" or f.rule in UNREADABLE]
    if not failing:
        output.tell("None of them is an error, so the exit status is 0 (--fail-on error).")
    return DIAGNOSTICS if failing and not given["exit_zero"] else CLEAN


def clean(run: Run, what: str) -> str:
    """What to say of a run that has nothing to tell; one that saw no file is no proof of anything."""
    seen = run.discovery.files_seen
    return f"{'' if seen else 'warning: '}Checked {counted(seen, 'file')}: {what}."


def tell_notes(run: Run, found: list[Checked], output: Output) -> None:
    """What was not read, or left alone, and why."""
    output.details()
    for note in run.notes:
        output.tell(f"note: {note}")
    for syntax, count in run.unread.items():
        kind = syntax.name.lower().replace("_", " ")
        output.tell(
            f"note: {counted(count, f'{kind} file')} with these names not read; this version reads YAML and Python."
        )
    if not found:
        return
    from cgmigrate.documents.sites import FOLLOWS_USES, PROSE, UNKNOWN_OWNER

    unsaid = (FOLLOWS_USES,) if output.verbose else (FOLLOWS_USES, PROSE)
    by_owner: dict[str, list[str]] = {}
    for checked in found:
        for line, key, owner in checked.skipped:
            if owner not in unsaid:
                by_owner.setdefault(owner, []).append(f"{checked.path}:{line}: `{key}`")
    for owner, places in by_owner.items():
        why = "its owner is not known" if owner == UNKNOWN_OWNER else f"the name belongs to {owner}"
        output.tell(f"note: left alone, since {why}:")
        most = len(places) if output.verbose else MOST_LEFT_ALONE
        for place in places[:most]:
            output.tell(f"  {place}")
        if len(places) > most:
            output.tell(f"  and {len(places) - most} more (--verbose shows all)")

"""A run of ``check`` or ``fix``: made from the options, then handled file by file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple

import click

from cgmigrate.cli.console import Output
from cgmigrate.cli.exit_status import command_errors
from cgmigrate.cli.options import CODES, NOT_PROVING, CheckMode, Proving, Reporting, Selection
from cgmigrate.project.options import FORMATS, RunOptions, format_of

if TYPE_CHECKING:
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run
    from cgmigrate.project.cascade import Configurations
    from cgmigrate.project.inputs import InputError


def start(
    selection: Selection,
    reporting: Reporting,
    options: RunOptions,
    baseline: CheckMode | None = None,
    proving: Proving = NOT_PROVING,
) -> tuple[Run, Output]:
    """Return the run for the selected files, and its output.

    ``options`` say what the run does with a file; the selection fills in the rest. ``baseline`` says how the
    baseline is used; it is not read where this is None. Raises click.ClickException.
    """
    if proving.prove:
        selection = selection if selection.paths else selection._replace(paths=(".",))
        options = replace(options, follow=True)
    configurations = _configurations(selection)
    format = reporting.format or configurations.for_run().format or FORMATS[0]
    reporting = reporting._replace(format=format)
    run = _run(selection, configurations, _with_report(options, format))
    if baseline is not None and (selection.baseline or baseline.updates_baseline or configurations.for_run().baseline):
        from cgmigrate.cli.baseline import baseline_of

        with command_errors():
            run.baseline = baseline_of(run, baseline)
    _check_codes(run)
    # With fix, stdout carries the rewritten text.
    output = Output(run, reporting, to_stderr=run.options.stdin is not None and run.options.rewrite)
    if proving.prove:
        from cgmigrate.cli.prove import prover

        run.prover = prover(proving, configurations.for_run().prove, output)
    return run, output


def _with_report(options: RunOptions, format: str) -> RunOptions:
    """Return the options with what the report's format needs."""
    shown = format_of(format)
    return replace(options, edits=shown.edits, details=shown.details)


def _run(selection: Selection, configurations: Configurations, options: RunOptions) -> Run:
    from cgmigrate.lint.run import Run

    shared = set(Selection._fields) & {one.name for one in fields(RunOptions)}
    values = {name: getattr(selection, name) for name in shared}
    values |= {name: tuple(code.upper() for code in values[name]) for name in CODES}
    values["per_file_ignores"] = tuple(map(_ignores_of_files, selection.per_file_ignores))
    options = replace(options, stdin=_stdin(selection), **values)
    return Run(selection.paths, options, configurations)


def _ignores_of_files(text: str) -> tuple[str, tuple[str, ...]]:
    pattern, colon, codes = text.rpartition(":")
    if not (colon and pattern and codes):
        raise click.UsageError(f"--per-file-ignores takes PATTERN:CODE, such as 'tests/**:CG6', not {text!r}")
    return pattern, tuple(code.strip().upper() for code in codes.split(","))


def _configurations(selection: Selection) -> Configurations:
    """Return the configuration files. The one that decides on the run as a whole is read at once."""
    from cgmigrate.project.cascade import Configurations, folders_in

    _check_selection(selection)
    config, strict = selection.config, selection.strict
    named = folders_in(selection.paths)
    configurations = Configurations(
        config, selection.isolated, bool(selection.exclude), strict, selection.rule_folders, named
    )
    with command_errors():
        configurations.for_run()
    if strict and selection.baseline and configurations.in_tree(selection.baseline):
        raise click.UsageError("--strict takes no baseline from the tree that it checks: use one from outside of it")
    return configurations


def _check_selection(selection: Selection) -> None:
    """Check the options against each other. Raises click.UsageError."""
    if not selection.paths:
        raise click.UsageError("Missing argument 'PATHS...'.")
    source, target = selection.source, selection.target
    if source and target and source > target:
        raise click.UsageError(f"--from {source} is newer than --to {target}")
    if any(os.path.samefile(folder, os.curdir) for folder in selection.rule_folders if os.path.isdir(folder)):
        # The YAML of a folder of rules is not checked.
        raise click.UsageError("--rules: the working directory cannot be a folder of rules; put them into one below it")
    if selection.config and selection.isolated:
        raise click.UsageError("--config and --isolated contradict each other")


def _stdin(selection: Selection) -> tuple[str, bytes] | None:
    """Return the name and the content of stdin if the path is ``-``."""
    name, paths = selection.stdin_filename, selection.paths
    if "-" not in paths:
        if name is not None:
            raise click.UsageError("--stdin-filename names the text on stdin: give - as the only path")
        return None
    if len(paths) > 1:
        raise click.UsageError("- reads from stdin and must be the only path (a file of this name is ./-)")
    if name is None:
        raise click.UsageError(
            "- reads from stdin: give --stdin-filename, whose name decides the syntax and the project"
        )
    return name, sys.stdin.buffer.read()


def _check_codes(run: Run) -> None:
    """Refuse a code that selects no rule. Raises click.UsageError."""
    from cgmigrate.lint.codes import UnknownCodeError, check_codes, codes_of

    if not codes_of(run.options):
        return
    with command_errors():
        try:
            check_codes(run)
        except UnknownCodeError as error:
            raise click.UsageError(str(error)) from error


class Handled(NamedTuple):
    """The files with settings that were handled, and whether a path could not be used."""

    files: list[FileResult]
    failed: bool


def handle_files(run: Run, output: Output, handle: Callable[[FileResult], None]) -> Handled:
    """Handle every file with settings; print the paths that could not be used."""
    from cgmigrate.cli.progress import ProgressLine
    from cgmigrate.project.inputs import InputError

    files: list[FileResult] = []
    failed = False
    progress = ProgressLine(sys.stderr, output.reporting.quiet or run.chooser is not None)
    with command_errors(), progress:
        for item in run:
            progress.clear()
            input_error = item if isinstance(item, InputError) else _handle(item, handle)
            if input_error is not None:
                failed = failed or input_error.missing
                output.input_error(input_error)
            elif not isinstance(item, InputError):
                files.append(item.light)
            progress.show(run.examined + 1, run.to_examine)
    return Handled(files, failed)


def _handle(checked: FileResult, handle: Callable[[FileResult], None]) -> InputError | None:
    """Handle one file; return an error of the program itself, so that the other files are still reported."""
    try:
        handle(checked)
    except (OSError, click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:
        from cgmigrate.project.inputs import InputError
        from cgmigrate.text.failures import internal_error

        return InputError(checked.path, internal_error(error), missing=True)
    return None

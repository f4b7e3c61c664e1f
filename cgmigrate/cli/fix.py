"""``cgmigrate fix``: writes what is sound, shows it, or asks."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cgmigrate.cli.console import FOR_PEOPLE
from cgmigrate.cli.session import CLEAN, DIAGNOSTICS, ERROR, clean, each, output_of, run_of, status_of, tell_notes
from cgmigrate.text.escaping import in_text
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.cli.console import Output
    from cgmigrate.lint.diagnostics import Diagnostic
    from cgmigrate.lint.run import Checked, Run


class Mode(NamedTuple):
    """What becomes of the fixes: ``diff`` shows them, ``interactive`` asks; ``fix_only`` reports no diagnostics."""

    diff: bool = False
    unsafe: bool = False
    interactive: bool = False
    fix_only: bool = False


def fix(given: dict[str, Any], mode: Mode) -> int:
    """Rewrite the files, or show what would change; return the exit status."""
    from cgmigrate.cli.saving import Writer
    from cgmigrate.report.folding import places_of

    if mode.interactive:
        _check_interactive(given)
    run = run_of(given, unsafe=mode.unsafe)
    from_stdin = run.options.stdin is not None
    output = output_of(run, given)
    if mode.interactive:
        run.chooser = _chooser(output)
    writer = Writer(output.tell)
    rewritten: list[Checked] = []

    def handle(checked: Checked) -> None:
        if not mode.diff and not from_stdin:
            writer.remove_leftovers(checked.path)
        done = checked.after is not None and (mode.diff or from_stdin or writer.write(checked, "rewrote"))
        if done:
            rewritten.append(checked)
        if mode.diff:
            _show_diff(checked, output)
        elif not mode.fix_only:
            output.take(checked, _to_report(checked, run, written=done), written=done)

    found, failed = each(run, output, handle)
    if from_stdin and not mode.diff:
        _write_stdout(run, rewritten)
    if not mode.diff and not mode.fix_only:
        output.finish()
    failed = writer.tell() or failed
    left = [diagnostic for checked in found for diagnostic in checked.remaining]
    fixed = sum(places_of(checked.fixed) for checked in rewritten)
    skipped = sum(places_of(checked.declined) for checked in found)
    undecided = sum(places_of(checked.remaining) for checked in found) - skipped
    _tell(run, output, failed, _Counts(fixed, len(rewritten), undecided, writer.unwritten, skipped), mode)
    tell_notes(run, [] if mode.fix_only else found, output)
    if failed:
        return ERROR
    if mode.diff and fixed and not given["exit_zero"]:
        return DIAGNOSTICS
    return CLEAN if mode.fix_only else status_of(left, output, given)


def _check_interactive(given: dict[str, Any]) -> None:
    """See that stdin and stdout are free for the questions. Raises click.UsageError."""
    if "-" in given["paths"]:
        raise click.UsageError("--interactive asks on stdin: give paths, not -")
    if given["output_file"]:
        return
    if given["format"] not in (None, *FOR_PEOPLE):
        told = f"leave out --format {given['format']}, or give --output-file"
        raise click.UsageError(f"--interactive asks on stdout: {told}")
    # The format of the configuration is not asked for here.
    given["format"] = given["format"] or "text"


def _chooser(output: Output) -> Any:
    from cgmigrate.cli.interactive import Chooser
    from cgmigrate.report import alone
    from cgmigrate.report.text import one

    def show(path: str, text: str, diagnostic: Diagnostic) -> str:
        return one(alone(path, text, diagnostic), output.style).rstrip("\n")

    return Chooser(show, partial(readable_diff, coloured=output.coloured()))


def _to_report(checked: Checked, run: Run, written: bool) -> tuple[Diagnostic, ...]:
    """The diagnostics that are left; what a person was asked about has been seen."""
    if checked.after is not None and not written:
        return checked.diagnostics
    if run.chooser is not None and run.chooser.quit:
        return ()
    skipped = {id(diagnostic) for diagnostic in checked.declined}
    return tuple(diagnostic for diagnostic in checked.remaining if id(diagnostic) not in skipped)


def _show_diff(checked: Checked, output: Output) -> None:
    if checked.after is None:
        return
    from cgmigrate.text.diff import unified_diff

    mark = "\ufeff" if checked.bom else ""
    shown = unified_diff(checked.path, mark + checked.text, mark + checked.after)
    if output.coloured() or sys.stdout.isatty():
        shown = readable_diff(shown, output.coloured())
    # As bytes: a patch must carry the file's own line ends and characters.
    click.echo(shown.encode(), nl=False)


def readable_diff(text: str, coloured: bool) -> str:
    """A unified diff for a terminal: with colours where they are asked for, and without what a terminal obeys."""
    return "\n".join(_readable(line, coloured) for line in text.split("\n"))


def _readable(line: str, coloured: bool) -> str:
    # The end of a line of Windows does nothing.
    shown = in_text(line.removesuffix("\r"))
    colours = {"+": "green", "-": "red", "@": "cyan"}
    return click.style(shown, fg=colours.get(line[:1])) if coloured and line else shown


def _write_stdout(run: Run, rewritten: list[Checked]) -> None:
    """What was read from stdin, rewritten or as it was."""
    from cgmigrate.text.encoding import encode

    assert run.options.stdin is not None
    texts = [encode(checked.after or "", checked.bom) for checked in rewritten]
    click.echo(texts[0] if texts else run.options.stdin[1], nl=False)


class _Counts(NamedTuple):
    fixed: int
    files: int
    left: int
    unwritten: int
    skipped: int


def _tell(run: Run, output: Output, failed: bool, counts: _Counts, mode: Mode) -> None:
    if not any(counts):
        if run.discovery.files_seen or not failed:
            output.tell(clean(run, "nothing to do"))
        return
    verb, seen = "Would fix" if mode.diff else "Fixed", counted(run.discovery.files_seen, "file")
    text = f"{verb} {counted(counts.fixed, 'diagnostic')} in {counted(counts.files, 'file')} of {seen}"
    if counts.skipped:
        text += f"; {counts.skipped} skipped"
    if counts.unwritten:
        text += f"; {counted(counts.unwritten, 'fix', 'fixes')} not written"
    if counts.left:
        text += f"; {counted(counts.left, 'diagnostic')} left for you to decide"
        text += " (see `cgmigrate check`)" if mode.diff or mode.fix_only else ""
    output.tell(text + ".")

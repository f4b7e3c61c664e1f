"""``cgmigrate fix``: writes sound fixes, shows them as a diff, or asks about each."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from cgmigrate.cli.commits import SetCommits
from cgmigrate.cli.exit_status import CLEAN, DIAGNOSTICS, ERROR
from cgmigrate.cli.notes import clean_summary, print_notes
from cgmigrate.cli.options import NOT_PROVING, CheckMode, FixMode, Proving, Reporting, Selection
from cgmigrate.cli.runs import Handled, handle_files, start
from cgmigrate.cli.writer import RunWriter
from cgmigrate.megatron.releases import SPLIT_IN
from cgmigrate.project.options import RunOptions, format_of
from cgmigrate.text.escaping import in_text
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cgmigrate.cli.console import Output
    from cgmigrate.cli.interactive import Chooser
    from cgmigrate.lint.diagnostics import LintDiagnostic
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run


def fix(selection: Selection, reporting: Reporting, mode: FixMode, proving: Proving = NOT_PROVING) -> int:
    """Rewrite the files, or show what would change; return the exit status."""
    if mode.interactive:
        reporting = _interactive_format(selection, reporting)
    options = RunOptions(unsafe=mode.unsafe_fixes, group=mode.group, docs=mode.docs)
    run, output = start(selection, reporting, options, baseline=CheckMode(), proving=proving)
    if mode.interactive:
        run.chooser = _chooser(output)
    # With --diff, only a format that the user names is written instead of the patch.
    reports = not mode.fix_only and (not mode.diff or reporting.format is not None)
    return _Fixing(run, output, mode, reports).fix()


def _interactive_format(selection: Selection, reporting: Reporting) -> Reporting:
    """Return the options with a report that leaves stdout to the questions. Raises click.UsageError."""
    if "-" in selection.paths:
        raise click.UsageError("--interactive asks on stdin: give paths, not -")
    if reporting.output_file:
        return reporting
    if reporting.format is not None and not format_of(reporting.format).for_people:
        remedy = f"remove --output-format {reporting.format}, or add --output-file"
        raise click.UsageError(f"--interactive asks on stdout: {remedy}")
    # The format of the configuration is ignored: it may be one for programs.
    return reporting._replace(format=reporting.format or "full")


def _chooser(output: Output) -> Chooser:
    from cgmigrate.cli.interactive import Chooser
    from cgmigrate.report import alone
    from cgmigrate.report.full import one

    def show(path: str, text: str, diagnostic: LintDiagnostic) -> str:
        rule = output.run.known_rules[diagnostic.rule]
        return one(alone(path, text, diagnostic, output.rule_name(rule)), output.style).rstrip("\n")

    return Chooser(show, partial(readable_diff, coloured=output.coloured()))


class _Fixing:
    """A run of ``fix``."""

    def __init__(self, run: Run, output: Output, mode: FixMode, reports: bool) -> None:
        self._run, self._output, self._mode, self._reports = run, output, mode, reports
        self._writer = RunWriter(output.message, SetCommits(run) if mode.commits else None)
        self._rewritten: list[FileResult] = []
        self._written: dict[str, bool] = {}
        """Whether files are written, for those whose set of files was handled."""

    def fix(self) -> int:
        """Handle all files and print the summary; return the exit status."""
        output, mode = self._output, self._mode
        handled = handle_files(self._run, output, self._handle)
        if self._run.options.raise_pin:
            self._raise_pins(any(checked.remaining for checked in handled.files))
        if self._run.options.stdin is not None and not mode.diff:
            _write_stdout(self._run.options.stdin[1], self._rewritten)
        if self._reports:
            output.finish()
        failed = self._writer.print_problems() or handled.failed or self._group_is_missing(handled)
        counts = self._counts(handled)
        if any(counts):
            output.summary(_summary(counts, self._run.discovery.files_seen, mode))
        elif self._run.discovery.files_seen or not failed:
            output.message(clean_summary(self._run, "nothing to do"))
        print_notes(self._run, [] if mode.fix_only else handled.files, output)
        status = ERROR if failed else self._status(handled, counts.fixed)
        if not mode.fix_only:
            output.last_lines()
            if mode.upgrades and not mode.diff and not output.reported and not failed:
                self._name_old_pin()
        return status

    def _name_old_pin(self) -> None:
        """Say which requirement still installs the release before, once nothing else is left."""
        for resolution in self._run.resolutions:
            # The place of a pin has the requirement behind it.
            if resolution.source < resolution.target and resolution.source_from.endswith(")"):
                self._output.message(f"Next: raise {resolution.source_from} to {resolution.target}")
                return

    def _raise_pins(self, has_remaining: bool) -> None:
        """Raise the requirements of the projects whose files are rewritten."""
        from cgmigrate.lint.file_result import FileResult
        from cgmigrate.project.paths import shown_path
        from cgmigrate.project.pins.raising import raised
        from cgmigrate.text.files import read_bytes

        for resolution in dict.fromkeys(self._run.contexts.resolution(checked.path) for checked in self._rewritten):
            if (pin := resolution.pin) is None:
                continue
            path, data = shown_path(str(pin.path)), read_bytes(pin.path)
            if (after := raised(pin, text := data.decode())) is None:
                self._output.message(f"note: raise {path}:{pin.line} ({pin.text}) to >={SPLIT_IN} by hand")
            elif self._mode.diff:
                _show_diff(FileResult(path, data, text, (), after=after), self._output)
            elif self._run.options.stdin is None:
                self._writer.write(FileResult(path, data, text, (), after=after), "raised the requirement in")
                if has_remaining:
                    source = resolution.source
                    self._output.message(
                        f"note: what remains was written for {source}: give later runs `--from {source}`"
                    )

    def _group_is_missing(self, handled: Handled) -> bool:
        """Return whether the fix that --group names was not available, and print that."""
        group = self._mode.group
        fixes = {one.fix.id: one.fix for file in handled.files for one in file.diagnostics if one.fix}
        if not group or self._mode.interactive or any(group in _ids(file.fixed) for file in self._rewritten):
            return False
        if group in fixes:
            reason = f"the fix {group} is {fixes[group].applicability}: add --unsafe-fixes"
        else:
            reason = f"no fix has the id {group}: `cgmigrate check --output-format json` shows the ids"
        click.echo(in_text(f"error: --group: {reason}"), err=True)
        return True

    def _handle(self, checked: FileResult) -> None:
        mode, in_place = self._mode, not self._mode.diff and self._run.options.stdin is None
        if in_place:
            self._writer.remove_leftovers(checked.path)
        done = checked.after is not None and (not in_place or self._write(checked))
        if done:
            self._rewritten.append(checked.light)
        if mode.diff and self._reports:
            self._output.add(checked, checked.diagnostics)
        elif mode.diff:
            _show_diff(checked, self._output)
            self._output.count(checked)
        elif not mode.fix_only:
            self._output.add(checked, _remaining(checked, self._run, written=done), written=done)

    def _write(self, checked: FileResult) -> bool:
        """Write a file with those that are written together with it; return whether it is written."""
        if checked.path not in self._written:
            files = [checked, *checked.together]
            for other in checked.together:
                self._writer.remove_leftovers(other.path)
            name = next((one.fix.id for one in checked.fixed if one.fix), checked.path)
            self._written |= dict.fromkeys([one.path for one in files], self._writer.write_set(name, files, "rewrote"))
        return self._written[checked.path]

    def _counts(self, handled: Handled) -> _Counts:
        from cgmigrate.report.folding import places_of

        skipped = sum(places_of(checked.declined) for checked in handled.files)
        return _Counts(
            fixed=sum(places_of(checked.fixed) for checked in self._rewritten),
            files=len(self._rewritten),
            remaining=sum(places_of(checked.remaining) for checked in handled.files) - skipped,
            unwritten=self._writer.unwritten,
            skipped=skipped,
        )

    def _status(self, handled: Handled, fixed: int) -> int:
        if self._mode.diff and fixed and not self._output.reporting.exit_zero:
            return DIAGNOSTICS
        if self._mode.fix_only:
            return CLEAN
        remaining = [diagnostic for checked in handled.files for diagnostic in checked.remaining]
        return self._output.exit_status(remaining)


def _ids(diagnostics: Sequence[LintDiagnostic]) -> set[str]:
    return {diagnostic.fix.id for diagnostic in diagnostics if diagnostic.fix}


class _Counts(NamedTuple):
    fixed: int
    files: int
    remaining: int
    unwritten: int
    skipped: int


def _summary(counts: _Counts, files_seen: int, mode: FixMode) -> str:
    verb, seen = "Would fix" if mode.diff else "Fixed", counted(files_seen, "file")
    text = f"{verb} {counted(counts.fixed, 'diagnostic')} in {counted(counts.files, 'file')} of {seen}"
    if counts.skipped:
        text += f"; {counts.skipped} skipped"
    if counts.unwritten:
        text += f"; {counted(counts.unwritten, 'fix', 'fixes')} not written"
    if counts.remaining:
        text += f"; {counted(counts.remaining, 'diagnostic')} {'remains' if counts.remaining == 1 else 'remain'}"
        text += " (see `cgmigrate check`)" if mode.diff or mode.fix_only else ""
    return text + "."


def _remaining(checked: FileResult, run: Run, written: bool) -> tuple[LintDiagnostic, ...]:
    """Return the diagnostics to report after the fix, without those whose fix the user declined."""
    if checked.after is not None and not written:
        return checked.diagnostics
    if run.chooser is not None and run.chooser.quit:
        return ()
    skipped = {id(diagnostic) for diagnostic in checked.declined}
    return tuple(diagnostic for diagnostic in checked.remaining if id(diagnostic) not in skipped)


def _show_diff(checked: FileResult, output: Output) -> None:
    if checked.after is None:
        return
    from cgmigrate.text.diff import unified_diff

    mark = "\ufeff" if checked.bom else ""
    diff = unified_diff(checked.path, mark + checked.text, mark + checked.after)
    if output.coloured() or sys.stdout.isatty():
        diff = readable_diff(diff, output.coloured())
    # As bytes: a patch must carry the file's own line ends and characters.
    click.echo(diff.encode(), nl=False)


def readable_diff(diff: str, coloured: bool) -> str:
    """Return a unified diff for a terminal, with control characters escaped; ``coloured`` adds colours."""
    return "\n".join(_readable(line, coloured) for line in diff.split("\n"))


def _readable(line: str, coloured: bool) -> str:
    # A carriage return at the end of a line does nothing.
    shown = in_text(line.removesuffix("\r"))
    colours = {"+": "green", "-": "red", "@": "cyan"}
    return click.style(shown, fg=colours.get(line[:1])) if coloured and line else shown


def _write_stdout(data: bytes, rewritten: Sequence[FileResult]) -> None:
    """Write the rewritten text to stdout; without a rewrite, the ``data`` that was read from stdin."""
    from cgmigrate.text.encoding import encode

    texts = [encode(checked.after or "", checked.bom) for checked in rewritten]
    click.echo(texts[0] if texts else data, nl=False)

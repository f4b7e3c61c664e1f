"""``--prove``: runs the user's command in copies of the tree, and says what the runs show."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cgmigrate import __version__
from cgmigrate.cli.exit_status import CommandError
from cgmigrate.cli.program import PROVE
from cgmigrate.megatron.settings import DEPRECATED, FIELDS
from cgmigrate.project.checkout import project_of
from cgmigrate.project.set_record import is_running
from cgmigrate.proof.run.command import Limits, has_offline, run
from cgmigrate.proof.run.copies import Tree
from cgmigrate.proof.run.judge import CannotProveError, Judge, Texts, Verdict
from cgmigrate.proof.run.kept import digest_of, kept
from cgmigrate.proof.run.observations import Comparison, Observations
from cgmigrate.proof.run.observer.cgmigrate_observer import VARIABLE
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.cli.console import Output
    from cgmigrate.cli.options import Proving
    from cgmigrate.lint.planning import Planner
    from cgmigrate.lint.proving import PlannedFixes
    from cgmigrate.project.inputs import InputFile


def prover(
    proving: Proving, configured: str, output: Output
) -> Callable[[Planner, Sequence[InputFile]], Mapping[str, Verdict]]:
    """Return what judges the fixes of a run by the command behind ``--``, or that of the configuration.

    Raises click.UsageError.
    """
    context = click.get_current_context()
    command = context.meta.get(PROVE) or shlex.split(configured)
    if not command:
        raise click.UsageError("--prove runs a command: give it behind `--`, or as `prove` in the configuration")
    if output.run.options.stdin is not None:
        raise click.UsageError("--prove runs a command in the tree: give paths, not -")
    return _Proof(proving, command, output).verdicts


_FOLDER = "cgmigrate-prove-"


@dataclass(slots=True)
class _Proof:
    """Runs a command for the fixes of one run of cgmigrate."""

    proving: Proving
    command: Sequence[str]
    output: Output

    def verdicts(self, planner: Planner, sources: Sequence[InputFile]) -> Mapping[str, Verdict]:
        """Return what the runs show of the fixes of some files. Raises CommandError."""
        from cgmigrate.lint.proving import PlannedFixes

        root = project_of(os.path.realpath(os.curdir))
        fixes = PlannedFixes.of(planner, sources, root)
        if not fixes.every:
            return {}
        is_offline = has_offline()
        if not is_offline:
            self.output.message("note: this system lets no user take the network away: the command has it")
        context = planner.contexts.context(sources[0].path)
        is_of_source = bool(self.proving.source_command or self.proving.source_python)
        comparison = Comparison(frozenset(FIELDS), DEPRECATED, context.source, context.target)
        _remove_leftovers()
        with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
            tree = Tree(root, os.path.join(os.path.realpath(folder), "tree"))
            runs = _Runs(self, fixes, tree, os.path.realpath(folder), is_offline)
            judge = Judge(
                fixes, runs.run, comparison, runs.run_source if is_of_source else None, self.proving.most_runs
            )
            try:
                verdicts = kept(runs.key(comparison), judge.verdicts, lambda: judge.before.releases)
            except CannotProveError as error:
                raise CommandError(f"--prove: {error}{runs.last_lines}") from error
        for line in _summary(judge, fixes, verdicts):
            self.output.message(line)
        return verdicts


@dataclass(slots=True)
class _Runs:
    """The runs of a command in ``folder``, and what is watched in them."""

    proof: _Proof
    fixes: PlannedFixes
    tree: Tree
    folder: str
    is_offline: bool
    last_lines: str = ""
    """The end of what the last run printed."""

    def key(self, comparison: Comparison) -> str:
        """Return what the verdicts depend on: the tree, the fixes and releases, the command, and where it runs."""
        variables = (f"{name}={value}" for name, value in sorted(os.environ.items()))
        words = (*self.proof.command, str(self.proof.proving), os.path.realpath(os.curdir), *variables)
        words = (*words, __version__, str(comparison.source), str(comparison.target))
        made = [one.id for one in self.fixes.every]
        texts = (f"{name} {hashlib.sha256(text).hexdigest()}" for name, text in self.fixes.texts(made).items())
        return digest_of(self.tree.root, [*words, *texts, *(f"{one.id} {one.is_safe}" for one in self.fixes.every)])

    def run(self, texts: Texts, what: str) -> Observations:
        """Run the command with other contents of some files."""
        return self._run(self.proof.command, texts, what, {})

    def run_source(self) -> Observations:
        """Run the command of the old release with the old text."""
        proving = self.proof.proving
        command = shlex.split(proving.source_command) or self.proof.command
        variables = {}
        if proving.source_python:
            folder = os.path.dirname(os.path.abspath(proving.source_python))
            variables = {"PATH": os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])}
        return self._run(command, {}, "as it is, under the old release", variables)

    def _run(self, command: Sequence[str], texts: Texts, what: str, variables: Mapping[str, str]) -> Observations:
        self.proof.output.message(f"running `{shlex.join(command)}` with the tree {what}")
        root, copy = self.tree.root, self.tree.copy
        out, temporary = (os.path.join(self.folder, name) for name in ("observed", "tmp"))
        for one in (out, temporary):
            shutil.rmtree(one, ignore_errors=True)
            os.mkdir(one)
        self.tree.make(texts)
        task = os.path.join(self.folder, "task.json")
        with open(task, "w", encoding="utf-8") as file:
            json.dump({"root": root, "copy": copy, "out": out, "settings": FIELDS, **self._watched()}, file)
        ended = run(
            [self._word(one, copy) for one in command],
            os.path.join(copy, os.path.relpath(os.path.realpath(os.curdir), root)),
            {VARIABLE: task, "TMPDIR": temporary, **self.tree.variable("PYTHONPATH"), **variables},
            offline=self.is_offline,
            limits=Limits(self.proof.proving.timeout),
        )
        self.last_lines = "".join(f"\n  {line}" for line in ended.output.splitlines()[-5:])
        return Observations.read(out, ended)

    def _watched(self) -> dict[str, object]:
        lines: dict[str, set[int]] = {}
        for path, line in (line for one in self.fixes.every for place in one.places for line in place.lines):
            lines.setdefault(path, set()).add(line)
        code = {path: sorted(own) for path, own in lines.items() if 0 not in own}
        return {"lines": code, "files": [path for path in lines if path not in code]}

    def _word(self, word: str, copy: str) -> str:
        """Return a word of the command; a file that the copy lacks (`.venv/bin/pytest`) is the tree's own."""
        is_own = os.sep in word and os.path.exists(word) and not os.path.isabs(word)
        return os.path.abspath(word) if is_own and not os.path.exists(os.path.join(copy, word)) else word


def _remove_leftovers() -> None:
    """Remove the copies of a run that was killed."""
    for name in os.listdir(tempfile.gettempdir()):
        process = name.removeprefix(_FOLDER).partition("-")[0]
        if name.startswith(_FOLDER) and process.isdigit() and not is_running(int(process)):
            shutil.rmtree(os.path.join(tempfile.gettempdir(), name), ignore_errors=True)


def _summary(judge: Judge, fixes: PlannedFixes, verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """Yield what the runs showed, in lines."""
    proved = sum(one.is_proved for one in verdicts.values())
    unsafe = sum(not one.is_safe and one.id not in verdicts for one in fixes.every)
    yield (
        f"Proved by running: {counted(proved, 'fix', 'fixes')} now safe, {len(verdicts) - proved} withheld, "
        f"{unsafe} not reached ({counted(judge.runs, 'run')})"
    )
    if judge.unsettled:
        yield f"note: {counted(judge.unsettled, 'place')} would need more than {judge.most_runs} runs (--max-runs)"
    for test in judge.flaky[:5]:
        yield f"note: not used, since it ends differently without a change: {test}"
    if judge.runs and judge.before.ended.status:
        yield f"note: the command ends with {judge.before.ended.status} before anything is changed"
    titles = {one.id: one.title for one in fixes.every}
    for id, one in verdicts.items():
        if not one.is_proved:
            yield f"withheld: {titles[id]}: {one.text}"

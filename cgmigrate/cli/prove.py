"""``--prove``: runs the user's command in copies of the tree, and says what the runs show."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cgmigrate.cli.exit_status import CommandError
from cgmigrate.cli.program import PROVE
from cgmigrate.megatron.settings import DEPRECATED, FIELDS
from cgmigrate.project.checkout import project_of
from cgmigrate.project.kept import digest_of
from cgmigrate.project.paths import is_below
from cgmigrate.project.temporary_files import lock, removed_if_interrupted
from cgmigrate.proof.run.command import has_offline, run
from cgmigrate.proof.run.copies import Tree, files_of
from cgmigrate.proof.run.judge import CannotProveError, Judge, RunVerdict, Texts
from cgmigrate.proof.run.kept import kept
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
) -> Callable[[Planner, Sequence[InputFile]], Mapping[str, RunVerdict]]:
    """Return what judges the fixes of a run by the command behind ``--``, or that of the configuration.

    Raises click.UsageError.
    """
    context = click.get_current_context()
    command = context.meta.get(PROVE) or shlex.split(configured)
    if not command:
        raise click.UsageError("--prove runs a command: give it behind `--`, or as `prove` in the configuration")
    if output.run.options.stdin is not None:
        raise click.UsageError("--prove runs a command in the tree: give paths, not -")
    return functools.partial(_verdicts, proving, command, output)


_FOLDER = "cgmigrate-prove-"


def _verdicts(
    proving: Proving, command: Sequence[str], output: Output, planner: Planner, sources: Sequence[InputFile]
) -> Mapping[str, RunVerdict]:
    """Return what runs of a command show of the fixes of some files. Raises CommandError."""
    from cgmigrate.lint.proving import PlannedFixes

    root = project_of(os.path.realpath(os.curdir))
    if outside := next((one.path for one in sources if not is_below(os.path.realpath(one.path), root)), ""):
        raise CommandError(f"--prove: {outside} is outside of {root}, where the command runs")
    fixes = PlannedFixes.of(planner, sources, root)
    if not fixes.every:
        return {}
    if not (is_offline := has_offline()):
        output.message("note: this system lets no user take the network away: the command has it")
    context = planner.contexts.context(sources[0].path)
    comparison = Comparison(frozenset(FIELDS), DEPRECATED, context.source, context.target)
    with removed_if_interrupted(), _folder() as folder:
        runs = _Runs(proving, command, output, fixes, Tree(root, os.path.join(folder, "tree")), folder, is_offline)
        is_of_source = proving.source_command or proving.source_python
        judge = Judge(fixes, runs.run, comparison, runs.run_source if is_of_source else None, proving.most_runs)
        try:
            verdicts = kept(runs.key(comparison), judge.verdicts, lambda: judge.before.releases)
        except CannotProveError as error:
            raise CommandError(f"--prove: {error}{runs.last_lines}") from error
    for line in _summary(judge, fixes, verdicts):
        output.message(line)
    return verdicts


@dataclass(slots=True)
class _Runs:
    """The runs of a command in ``folder``, and what is watched in them."""

    proving: Proving
    command: Sequence[str]
    output: Output
    fixes: PlannedFixes
    tree: Tree
    folder: str
    is_offline: bool
    last_lines: str = ""
    """The end of what the last run printed."""

    def key(self, comparison: Comparison) -> str:
        """Return what the verdicts depend on: the tree, the fixes and releases, the command, and where it runs."""
        every, releases = self.fixes.every, (comparison.source, comparison.target)
        where = (self.proving, os.path.realpath(os.curdir), sorted(os.environ.items()), *releases)
        fixes = ([(one.id, one.is_safe) for one in every], sorted(self.fixes.texts([one.id for one in every]).items()))
        return digest_of(self.tree.root, files_of(self.tree.root), map(str, (*self.command, *where, *fixes)))

    def run(self, texts: Texts, what: str) -> Observations:
        """Run the command with other contents of some files."""
        return self._run(self.command, texts, what, {})

    def run_source(self) -> Observations:
        """Run the command of the old release with the old text."""
        command, variables = shlex.split(self.proving.source_command) or self.command, {}
        if self.proving.source_python:
            folder = os.path.dirname(os.path.abspath(self.proving.source_python))
            variables = {"PATH": os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])}
        return self._run(command, {}, "as it is, under the old release", variables)

    def _run(self, command: Sequence[str], texts: Texts, what: str, variables: Mapping[str, str]) -> Observations:
        self.output.message(f"running `{shlex.join(command)}` with the tree {what}")
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
            seconds=self.proving.timeout,
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
        """Return a word of the command with a path in the copy; what that lacks (`.venv/bin/pytest`) is the own one."""
        option, equals, path = word.rpartition("=")
        if os.sep not in path or not os.path.exists(path):
            return word
        at = os.path.abspath(path)
        moved = copy + at[len(self.tree.root) :] if is_below(at, self.tree.root) else at
        return f"{option}{equals}{moved if os.path.exists(moved) else at}"


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """Create a folder for copies; a lock distinguishes it from that of a run that was killed, which is removed."""
    for name in os.listdir(tempfile.gettempdir()):
        with contextlib.suppress(OSError):
            if name.startswith(_FOLDER):
                left = os.path.join(tempfile.gettempdir(), name)
                descriptor = os.open(left, os.O_RDONLY)
                if lock(descriptor, wait=False):
                    shutil.rmtree(left, ignore_errors=True)
                os.close(descriptor)
    with tempfile.TemporaryDirectory(prefix=_FOLDER, ignore_cleanup_errors=True) as folder:
        lock(descriptor := os.open(folder, os.O_RDONLY), wait=False)
        yield os.path.realpath(folder)
        os.close(descriptor)


def _summary(judge: Judge, fixes: PlannedFixes, verdicts: Mapping[str, RunVerdict]) -> Iterator[str]:
    """Yield what the runs showed, in lines."""
    proved = sum(one.is_proved for one in verdicts.values())
    unsafe = sum(not one.is_safe and one.id not in verdicts for one in fixes.every)
    yield (
        f"Proved by running: {counted(proved, 'fix', 'fixes')} now safe, {len(verdicts) - proved} withheld, "
        f"{unsafe} not reached or without effect ({counted(judge.runs, 'run')})"
    )
    if judge.unsettled:
        yield f"note: {counted(judge.unsettled, 'place')} would need more than {judge.most_runs} runs (--max-runs)"
    for test in judge.flaky[:5]:
        yield f"note: not used, since it ends differently without a change: {test}"
    if judge.runs and judge.before.ended.status:
        yield f"note: the command ends with {judge.before.ended.status} before anything is changed"
    for proposal in fixes.every:
        if proposal.id in verdicts and not (verdict := verdicts[proposal.id]).is_proved:
            yield f"withheld: {proposal.title}: {verdict.text}"

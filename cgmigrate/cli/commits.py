"""Commits what a run of ``fix`` writes: each set of files by itself, with why it is right as the message."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from cgmigrate.project.git import run_git
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run

_QUIET = ("-c", "commit.gpgSign=false")
"""A program that signs is named by the configuration, as hooks are, and a checkout may be hostile."""


def check_committable(paths: Sequence[str]) -> None:
    """Raise click.UsageError where a commit would fail, or would have more than this run writes."""
    for folder in sorted({_folder(path) for path in paths}):
        if (status := run_git(folder, "status", "--porcelain")) is None:
            raise click.UsageError(f"--commit: {folder} is not in a checkout of git")
        if status[0]:
            raise click.UsageError("--commit: the checkout has changes of its own; commit or stash them first")
        if run_git(folder, "var", "GIT_COMMITTER_IDENT") is None:
            raise click.UsageError("--commit: git has no `user.name` and `user.email`")


class SetCommits:
    """Commits sets of files as they are written."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def commit(self, files: Sequence[FileResult]) -> str:
        """Commit the written files of one set; return what went wrong, empty if nothing did."""
        paths = [os.path.realpath(file.path) for file in files]
        committed = run_git(
            _folder(paths[0]), *_QUIET, "--literal-pathspecs", "commit", "-q", "-m", self._message(files), "--", *paths
        )
        return "" if committed else f"written, but git does not commit {', '.join(file.path for file in files)}"

    def _message(self, files: Sequence[FileResult]) -> str:
        fixed = [(file, one) for file in files for one in file.fixed]
        names = dict.fromkeys(self._run.known_rules[code].name for _, one in fixed for code in one.rule.split(", "))
        where = files[0].path if len(files) == 1 else counted(len(files), "file")
        source, target = files[0].releases or ("", "")
        body = "\n".join(line for file in files for line in _lines(file))
        again = f"Check again: cgmigrate upgrade --from {source} --to {target} ."
        return f"megatron-core {target}: {', '.join(names)} in {where}\n\n{body}\n\n{again}\n"


def _lines(file: FileResult) -> Iterator[str]:
    """Yield what was wrong at each place of a file, what is written instead, and why that is right."""
    explained = file.details.of(file.fixed) if file.details else [None] * len(file.fixed)
    for one, explanation in zip(file.fixed, explained, strict=True):
        yield f"- {file.path}:{one.span.lines(file.text)[0]}: {one.message}"
        proof = f": {explanation.proof}" if explanation and explanation.proof else ""
        if one.fix_text:
            yield f"  {one.fix_text} ({one.applicability}{proof})"


def _folder(path: str) -> str:
    real = os.path.realpath(path)
    return real if os.path.isdir(real) else os.path.dirname(real)

"""Undo: the files of the last run are restored from its journal."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cgmigrate.project.journal import COMPLETE, ENTRIES, digest, journals_folder, lines_of, runs_in, time_of
from cgmigrate.project.temporary_files import remove_leftovers
from cgmigrate.project.write import WriteError, write
from cgmigrate.text.plurals import counted

_TRIED = "tried"
"""A file in the journal of a run that was undone in part. Its other files do not prevent undoing an older run."""


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of undoing a run; ``when`` is empty if there was no run to undo. Paths are absolute."""

    when: str = ""
    restored: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _NotRestoredError(Exception):
    """A file that is not restored, and why; ``later`` says that a later undo can succeed."""

    def __init__(self, reason: str, later: bool) -> None:
        super().__init__(reason)
        self.later = later


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    copy: str
    before: str
    after: str
    line: bytes


def undo() -> Undone:
    """Restore the files of this project's last run that have not changed since.

    Files that were changed or deleted stay in the journal, and the next undo tries them again.
    """
    problems: list[str] = []
    for run in reversed(runs_in(journals_folder())):
        tried = (run / _TRIED).exists()
        done = _undo(run)
        if done.restored or (done.when and not tried):
            return done
        problems += done.problems
    return Undone(problems=tuple(problems))


def _undo(run: Path) -> Undone:
    when = time_of(run)
    try:
        entries, problems = _entries(run, when)
    except OSError as error:
        return Undone(when, problems=(f"the journal of the run of {when} cannot be read: {error.strerror or error}",))
    restored: list[str] = []
    remaining: list[_Entry] = []
    for entry in entries:
        try:
            if _restore(run, entry):
                restored.append(entry.path)
        except _NotRestoredError as error:
            problems.append(str(error))
            remaining += [entry] if error.later else []
    _keep(run, remaining)
    return Undone(when if entries or problems else "", tuple(restored), tuple(problems))


def _entries(run: Path, when: str) -> tuple[list[_Entry], list[str]]:
    """Return the entries of a journal, and what is wrong with it as a whole."""
    lines = lines_of(run)
    entries = [entry for line in lines if (entry := _entry(line)) is not None]
    problems = []
    if damaged := len(lines) - len(entries):
        problems.append(
            f"the journal of the run of {when} is damaged ({run / ENTRIES}): "
            f"{counted(damaged, 'entry', 'entries')} cannot be read"
        )
    if not (run / COMPLETE).exists():
        problems.append(
            f"the journal of the run of {when} is not complete: it may have written files that it does not name"
        )
    return entries, problems


def _entry(line: bytes) -> _Entry | None:
    try:
        data = json.loads(line)
        texts = [data[name] for name in ("path", "copy", "before", "after")]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not all(isinstance(text, str) and text and "\0" not in text for text in texts):
        return None
    path, copy, before, after = texts
    return _Entry(path, copy, before, after, line)


def _restore(run: Path, entry: _Entry) -> bool:
    """Restore one file; return False if it has its former content already. Raises _NotRestoredError."""
    path = entry.path
    try:
        current = _content(path)
        if digest(current) == entry.before:
            return False
        if digest(current) != entry.after:
            raise _NotRestoredError(f"{path} has changed since and was left alone", later=True)
        write(path, current, _former_content(run, entry))
    except WriteError as error:
        raise _NotRestoredError(str(error), later=True) from error
    except OSError as error:
        raise _NotRestoredError(f"{path}: {error.strerror or error}", later=True) from error
    finally:
        remove_leftovers(os.path.dirname(os.path.realpath(path)))
    return True


def _former_content(run: Path, entry: _Entry) -> bytes:
    """Return the content of a file before the run. Raises _NotRestoredError."""
    try:
        before = _content(str(run / os.path.basename(entry.copy)))
    except OSError as error:
        reason = f"its copy in the journal cannot be read ({error.strerror or error})"
        raise _NotRestoredError(f"{entry.path} cannot be restored: {reason}", later=False) from error
    if digest(before) != entry.before:
        raise _NotRestoredError(f"{entry.path} cannot be restored: its copy in the journal is damaged", later=False)
    return before


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise WriteError(f"{path} is not a regular file and was left alone")
        return file.read()


def _keep(run: Path, entries: Iterable[_Entry]) -> None:
    """Reduce a journal to the entries that can be restored later; remove it if there are none."""
    lines = [entry.line for entry in entries]
    if not lines:
        shutil.rmtree(run, ignore_errors=True)
        return
    with suppress(OSError):
        (run / _TRIED).touch()
        (run / COMPLETE).touch()
        (run / ENTRIES).write_bytes(b"".join(lines))

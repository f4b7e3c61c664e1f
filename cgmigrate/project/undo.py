"""Undo: the files of the last run are restored from its journal.

The files of a set were written together, so they are restored together or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cgmigrate.project.edit_sets import ChangeSet, FileChange
from cgmigrate.project.journal import COMPLETE, ENTRIES, digest, journals_folder, keep_lines, lines_of, runs_in, time_of
from cgmigrate.project.temporary_files import remove_leftovers
from cgmigrate.project.transaction import SetError, together, write_set
from cgmigrate.project.write import WriteError, read_regular
from cgmigrate.text.plurals import counted

_TRIED = "tried"
"""A file in the journal of a run that was undone in part. Its other files do not prevent undoing an older run."""


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of undoing a run; ``when`` is empty if there was no run to undo. Paths are absolute."""

    when: str = ""
    restored: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenSet:
    """Files that a run wrote together; ``name`` is empty if it had none. Paths are absolute."""

    name: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """A run that can be undone."""

    when: str
    sets: tuple[WrittenSet, ...]


class _NotRestoredError(Exception):
    """A set that is not restored, and why; ``later`` says that a later undo can succeed."""

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
    set: str
    """The set of the file in its run; empty for a file that was written alone by a release without sets."""
    files: int
    """The number of files of the set."""
    name: str


def runs_to_undo() -> list[WrittenRun]:
    """Return the runs of this project in the order in which `undo` restores their files: the last one first."""
    runs = []
    for run in reversed(runs_in(journals_folder())):
        with suppress(OSError):
            sets = _sets(filter(None, map(_entry, lines_of(run))))
            written = (WrittenSet(members[0].name, tuple(entry.path for entry in members)) for members in sets)
            runs.append(WrittenRun(time_of(run), tuple(written)))
    return runs


def undo() -> Undone:
    """Restore the sets of files of this project's last run of which no file has changed since.

    Sets with a file that was changed or deleted stay in the journal, and the next undo tries them again.
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
    restored: set[str] = set()
    remaining: list[_Entry] = []
    # The last set first: it may have been written over the result of those before it.
    for members in reversed(_sets(entries)):
        try:
            restored.update(_restore(run, members))
        except _NotRestoredError as error:
            problems.append(str(error))
            remaining += members if error.later else []
    kept = set(map(id, remaining))
    _keep(run, [entry for entry in entries if id(entry) in kept])
    # In the order of the run, each file once.
    ordered = tuple(path for path in dict.fromkeys(entry.path for entry in entries) if path in restored)
    return Undone(when if entries or problems else "", ordered, tuple(problems))


def _sets(entries: Iterable[_Entry]) -> list[list[_Entry]]:
    sets: dict[str | int, list[_Entry]] = {}
    for number, entry in enumerate(entries):
        sets.setdefault(entry.set or number, []).append(entry)
    return list(sets.values())


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
        of_set, files, name = data.get("set", ""), data.get("files", 1), data.get("name", "")
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None
    if not all(isinstance(text, str) and text and "\0" not in text for text in texts):
        return None
    if not (isinstance(of_set, str) and isinstance(files, int) and isinstance(name, str)):
        return None
    path, copy, before, after = texts
    return _Entry(path, copy, before, after, line, of_set, files, name)


def _restore(run: Path, members: Sequence[_Entry]) -> list[str]:
    """Restore the files of a set; return those that did not have their former content. Raises _NotRestoredError."""
    try:
        if len(members) != members[0].files:
            raise _NotRestoredError("its entries in the journal are damaged", later=False)
        changes = [change for entry in members if (change := _change(run, entry)) is not None]
        write_set(ChangeSet("", tuple(changes)))
    except SetError as error:
        # It names the files.
        raise _NotRestoredError(str(error), later=True) from error
    except WriteError as error:
        raise _NotRestoredError(_about_set(members, str(error)), later=True) from error
    except _NotRestoredError as error:
        raise _NotRestoredError(_about_set(members, str(error)), error.later) from error
    finally:
        for folder in {os.path.dirname(os.path.realpath(entry.path)) for entry in members}:
            remove_leftovers(folder)
    return [change.path for change in changes]


def _about_set(members: Sequence[_Entry], reason: str) -> str:
    """Return why a set is not restored, with its files if there are several."""
    paths = [entry.path for entry in members]
    return reason if len(paths) == 1 else f"{reason}; {together(paths)}, and none was restored"


def _change(run: Path, entry: _Entry) -> FileChange | None:
    """Return what restores a file; None if it has its former content already. Raises _NotRestoredError."""
    path = entry.path
    try:
        current = read_regular(path)
    except WriteError as error:
        raise _NotRestoredError(str(error), later=True) from error
    except OSError as error:
        raise _NotRestoredError(f"{path}: {error.strerror or error}", later=True) from error
    if digest(current) == entry.before:
        return None
    if digest(current) != entry.after:
        raise _NotRestoredError(f"{path} has changed since and was left alone", later=True)
    return FileChange(path, current, _former_content(run, entry))


def _former_content(run: Path, entry: _Entry) -> bytes:
    """Return the content of a file before the run. Raises _NotRestoredError."""
    try:
        before = read_regular(str(run / os.path.basename(entry.copy)))
    except OSError as error:
        reason = f"its copy in the journal cannot be read ({error.strerror or error})"
        raise _NotRestoredError(f"{entry.path} cannot be restored: {reason}", later=False) from error
    if digest(before) != entry.before:
        raise _NotRestoredError(f"{entry.path} cannot be restored: its copy in the journal is damaged", later=False)
    return before


def _keep(run: Path, entries: Iterable[_Entry]) -> None:
    """Reduce a journal to the entries that can be restored later; remove it if there are none."""
    lines = [entry.line for entry in entries]
    if not lines:
        shutil.rmtree(run, ignore_errors=True)
        return
    with suppress(OSError):
        (run / _TRIED).touch()
        (run / COMPLETE).touch()
        keep_lines(run, lines)

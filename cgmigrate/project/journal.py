"""The journal of a run: the former content of each file that it wrote, for ``cgmigrate undo``.

Journals are kept by project in the user's cache folder, outside the tree; ``CGMIGRATE_CACHE_DIR`` names another folder.
The entries of a set of files are complete before one of them is written, so that a run that was killed can be undone as
well. They are not forced to the disk: after a power failure the last ones may be missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cgmigrate.project.cache_folder import cache_folder
from cgmigrate.project.edit_sets import FileChange
from cgmigrate.project.private_files import is_private_folder

RUNS_KEPT = 10
"""Runs of a project that can be undone, one after the other."""
ENTRIES = "entries.jsonl"
COMPLETE = "complete"
"""A file that is missing if the run has written files that its journal does not name."""


@dataclass(slots=True)
class Journal:
    """The journal of one run; it is created with its first entry."""

    failure: str = ""
    """Why the run cannot be undone as a whole, empty if it can."""
    recorded: int = 0
    """Files that can be restored."""
    folder: Path | None = None
    """None until a set is recorded."""
    _sets: int = 0

    def record(self, name: str, changes: Sequence[FileChange]) -> Entries:
        """Record what the files of a set are before they are written.

        Never raises: a journal that cannot be written does not prevent a fix.
        """
        self._sets += 1
        key = str(self._sets)
        if self.failure:
            return Entries(key)
        try:
            if self.folder is None:
                self.folder = _new_journal()
            copies = [f"{self.recorded + number}.before" for number in range(len(changes))]
            for copy, change in zip(copies, changes, strict=True):
                (self.folder / copy).write_bytes(change.before)
            lines = [_line(change, copy) for copy, change in zip(copies, changes, strict=True)]
            of_set = {"set": key, "name": name, "files": len(changes)}
            with (self.folder / ENTRIES).open("a", encoding="utf-8") as file:
                file.write("".join(json.dumps({**line, **of_set}) + "\n" for line in lines))
        except OSError as error:
            self._fail(error)
            return Entries(key)
        self.recorded += len(changes)
        return Entries(key, str(self.folder), tuple(str(self.folder / copy) for copy in copies))

    def _fail(self, error: OSError) -> None:
        self.failure = f"{error.strerror or error} ({error.filename or self.folder})"
        if self.folder is not None:
            # Removing a file needs no space on a disk that may be full.
            with suppress(OSError):
                (self.folder / COMPLETE).unlink()


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a set in a journal; ``folder`` and ``copies`` are empty if it could not be recorded."""

    key: str = ""
    folder: str = ""
    copies: tuple[str, ...] = ()

    def withdraw(self) -> None:
        """Remove the entries: no file of the set was written."""
        if self.folder:
            run = Path(self.folder)
            with suppress(OSError):
                keep_lines(run, [line for line in lines_of(run) if _set_of(line)[0] != self.key])


def _line(change: FileChange, copy: str) -> dict[str, object]:
    hashes = {"before": digest(change.before), "after": digest(change.after)}
    return {"path": os.path.abspath(change.path), "copy": copy, **hashes}


def _set_of(line: bytes) -> tuple[str, int]:
    """Return the key of an entry's set, and how many files the set has; "" and 0 if it has no set."""
    with suppress(ValueError, RecursionError):
        data = json.loads(line)
        if isinstance(data, dict) and isinstance(data.get("set"), str) and isinstance(data.get("files"), int):
            return data["set"], data["files"]
    return "", 0


def lines_of(run: Path) -> list[bytes]:
    """Return the entries of a run, without those of a last set that was cut off before its files were written."""
    lines = [line for line in (run / ENTRIES).read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    of_last, files = _set_of(lines[-1]) if lines else ("", 0)
    of_set = next((number for number, line in enumerate(reversed(lines)) if _set_of(line)[0] != of_last), len(lines))
    return lines if of_set >= files else lines[:-of_set]


def keep_lines(run: Path, lines: Iterable[bytes]) -> None:
    """Reduce a journal to these entries, whole or not at all. Raises OSError."""
    shorter = run / f"{ENTRIES}.new"
    shorter.write_bytes(b"".join(lines))
    os.replace(shorter, run / ENTRIES)


def _new_journal() -> Path:
    project = journals_folder()
    project.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in runs_in(project)[: -RUNS_KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)
    # The process is part of the name: pre-commit starts several runs at once.
    folder = project / f"{time.time_ns():020}-{os.getpid()}"
    folder.mkdir(mode=0o700)
    (folder / COMPLETE).touch()
    return folder


def runs_in(project: Path) -> list[Path]:
    """Return the journals of the runs that have written files, oldest first."""
    folders = (folder for folder in project.glob("*-*") if re.fullmatch(r"\d{20}-\d+", folder.name))
    # What others may have written is not restored.
    own = (folder for folder in folders if is_private_folder(str(folder)))
    return sorted(run for run in own if (run / ENTRIES).is_file() and (run / ENTRIES).stat().st_size)


def time_of(run: Path) -> str:
    """Return when a run began, in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(run.name.split("-")[0]) / 1e9))


def journals_folder() -> Path:
    """Return the folder of the journals of the checkout, or else the folder, in which the user works."""
    top = cwd = Path.cwd().resolve()
    while not os.path.lexists(top / ".git") and top.parent != top:
        top = top.parent
    project = top if os.path.lexists(top / ".git") else cwd
    return Path(cache_folder()) / "undo" / digest(os.fsencode(project))[:16]


def digest(data: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(data).hexdigest()

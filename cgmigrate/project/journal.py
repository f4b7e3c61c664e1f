"""The journal of a run: the former content of each file that it wrote, for ``cgmigrate undo``.

Journals are kept by project in the user's cache folder, outside the tree; ``CGMIGRATE_CACHE_DIR`` names another folder.
An entry is complete before its file is written, so that a run that was killed can be undone as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

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
    _folder: Path | None = field(default=None)

    def write(self, path: str, before: bytes, after: bytes) -> None:
        """Replace a file's content with `write.write`, after recording what it was. Raises WriteError."""
        from cgmigrate.project.write import WriteError, write

        self._record(path, before, after)
        try:
            write(path, before, after)
        except WriteError:
            self._withdraw()
            raise

    def _record(self, path: str, before: bytes, after: bytes) -> None:
        # Never raises: a journal that cannot be written does not prevent a fix.
        if self.failure:
            return
        try:
            if self._folder is None:
                self._folder = _new_journal()
            copy = f"{self.recorded}.before"
            (self._folder / copy).write_bytes(before)
            entry = {"path": os.path.abspath(path), "copy": copy, "before": digest(before), "after": digest(after)}
            with (self._folder / ENTRIES).open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            self.recorded += 1
        except OSError as error:
            self.failure = f"{error.strerror or error} ({error.filename or self._folder})"
            if self._folder is not None:
                # Removing a file needs no space on a disk that may be full.
                with suppress(OSError):
                    (self._folder / COMPLETE).unlink()

    def _withdraw(self) -> None:
        """Remove the last entry: its file was not written."""
        if self._folder is not None and not self.failure:
            with suppress(OSError):
                entries = self._folder / ENTRIES
                entries.write_bytes(b"".join(lines_of(self._folder)[:-1]))


def lines_of(run: Path) -> list[bytes]:
    """Return the entries of a run. A last line without line feed was cut off before its file was written."""
    return [line for line in (run / ENTRIES).read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


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
    return sorted(run for run in folders if (run / ENTRIES).is_file() and (run / ENTRIES).stat().st_size)


def time_of(run: Path) -> str:
    """Return when a run began, in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(run.name.split("-")[0]) / 1e9))


def journals_folder() -> Path:
    """Return the folder of the journals of the checkout, or else the folder, in which the user works."""
    from platformdirs import user_cache_dir

    top = cwd = Path.cwd().resolve()
    while not os.path.lexists(top / ".git") and top.parent != top:
        top = top.parent
    project = top if os.path.lexists(top / ".git") else cwd
    cache = Path(os.environ.get("CGMIGRATE_CACHE_DIR") or user_cache_dir("cgmigrate", appauthor=False))
    return cache / "undo" / digest(os.fsencode(project))[:16]


def digest(data: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(data).hexdigest()

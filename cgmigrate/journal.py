"""What a run has written, so that ``fix --undo`` can take it back.

Kept outside the tree, in the user's cache folder (``CGMIGRATE_CACHE_DIR`` names another), by project: the content
of each file before, and what it was replaced by. An entry is complete before its file is written, so that a run
that was cut off can be taken back as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

KEPT = 10
"""Runs of a project that can be taken back, one after the other."""
_ENTRIES = "entries.jsonl"


@dataclass(slots=True)
class Journal:
    """The record of one run; begins with the first file that is about to be written."""

    trouble: str = ""
    """Why the run cannot be taken back, empty when it can."""
    _folder: Path | None = field(default=None)
    _count: int = 0

    def write(self, path: str, before: bytes, after: bytes) -> None:
        """Replace a file's content as ``edits.write`` does, and note what it was. Raises WriteError."""
        from cgmigrate import edits

        self._record(path, before, after)
        try:
            edits.write(path, before, after)
        except edits.WriteError:
            self._withdraw()
            raise

    def _record(self, path: str, before: bytes, after: bytes) -> None:
        # Never fails: fixing matters more than undoing.
        if self.trouble:
            return
        try:
            if self._folder is None:
                self._folder = _begin()
            content = f"{self._count}.before"
            (self._folder / content).write_bytes(before)
            entry = {"path": os.path.abspath(path), "before": content, "after": _digest(after)}
            with (self._folder / _ENTRIES).open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            self._count += 1
        except OSError as error:
            self.trouble = f"{error.strerror or error} ({error.filename})"

    def _withdraw(self) -> None:
        """Take the last entry out: its file was not written."""
        if self._folder is not None and not self.trouble:
            lines = _lines(self._folder)
            (self._folder / _ENTRIES).write_text("".join(lines[:-1]), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Undone:
    """What taking back a run has done; nothing at all when ``when`` is empty. Paths are absolute."""

    when: str
    restored: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def undo() -> Undone:
    """Restore the files of this project's last run, each one that is still what the run made of it.

    What could not be restored stays in the journal.
    """
    from cgmigrate.edits import WriteError, write

    runs = _runs(_home())
    if not runs:
        return Undone("")
    folder = runs[-1]
    restored: list[str] = []
    problems: list[str] = []
    left: list[str] = []
    for line in _lines(folder):
        entry = json.loads(line)
        path, before = entry["path"], (folder / entry["before"]).read_bytes()
        try:
            now = Path(path).read_bytes()
            if now == before:
                continue
            if _digest(now) != entry["after"]:
                problems.append(f"{path} has changed since and was left alone")
            else:
                write(path, now, before)
                restored.append(path)
                continue
        except WriteError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
        left.append(line)
    if left:
        (folder / _ENTRIES).write_text("".join(left), encoding="utf-8")
    else:
        shutil.rmtree(folder)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(folder.name.split("-")[0]) / 1e9))
    return Undone(when, tuple(restored), tuple(problems))


def _lines(folder: Path) -> list[str]:
    with (folder / _ENTRIES).open(encoding="utf-8") as file:
        # A last line without its end was cut off before its file was written.
        return [line for line in file if line.endswith("\n")]


def _begin() -> Path:
    home = _home()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in _runs(home)[: -KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)
    # Several runs may begin at once: pre-commit starts some side by side.
    folder = home / f"{time.time_ns():020}-{os.getpid()}"
    folder.mkdir(mode=0o700)
    return folder


def _runs(home: Path) -> list[Path]:
    """The runs that have written something, oldest first."""
    return sorted(folder for folder in home.glob("*-*") if (folder / _ENTRIES).is_file() and _lines(folder))


def _home() -> Path:
    """Where the journals of the project in the working directory are: that of the checkout, else of the folder."""
    from platformdirs import user_cache_dir

    top = here = Path.cwd().resolve()
    while not os.path.lexists(top / ".git") and top.parent != top:
        top = top.parent
    project = top if os.path.lexists(top / ".git") else here
    cache = Path(os.environ.get("CGMIGRATE_CACHE_DIR") or user_cache_dir("cgmigrate", appauthor=False))
    return cache / "undo" / _digest(os.fsencode(project))[:16]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

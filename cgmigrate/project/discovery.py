"""Paths → the files that may hold a CUDA-graph setting.

In a git checkout these are the files that git tracks or would track; elsewhere a walk that honours
``.gitignore`` and ``.ignore``. A file whose bytes hold none of the trigger words is dropped here, so that on
a clean tree nothing else is ever imported or parsed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from cgmigrate.documents.syntax import READ, Syntax, syntax_of
from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.git import run_git
from cgmigrate.project.ignore_files import Patterns, _ignore_files, _ignored, _IgnoreFile
from cgmigrate.project.inputs import MAX_BYTES, Input, InputError, Source, TooLarge
from cgmigrate.project.paths import openable_path, prefix_of, why_unreachable, why_unreadable
from cgmigrate.project.seeds import OVERLAP, SUPPRESSION_MARK, contains_any, has_seed_word, seed_words_for
from cgmigrate.text.files import read_bytes

SKIPPED = (
    ".git",
    ".hg",
    ".jj",
    ".svn",
    ".eggs",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "site-packages",
    "venv",
)
"""Folders of tools' data and others' code: entered if git tracks files in them or the user names them."""


# Without waiting: a name may have become a fifo since it was listed.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


_PIECE = 1024 * 1024


_UNKNOWN_KIND = "not a kind of file that cgmigrate reads (YAML, Python)"


_NOT_READ_YET = {
    Syntax.COMMAND_LINE: "shell and other command lines are not read yet, only YAML and Python",
    Syntax.MARKDOWN: "Markdown is not read yet, only YAML and Python",
}


def _named_syntax(path: str) -> Syntax | InputError:
    """The syntax of a file that the user named, or why it is not examined."""
    syntax = syntax_of(path)
    if syntax in READ:
        return syntax
    return InputError(path, _NOT_READ_YET[syntax] if syntax else _UNKNOWN_KIND, missing=False)


@dataclass(slots=True)
class Discovery:
    """Iterable over the files in ``paths`` that hold a trigger word and over what went wrong, sorted by path.

    Files are read one at a time, as the iteration reaches them. A real file is handled once, however many
    names lead to it: under its own name before that of a symbolic link, under the first of its hard links.
    Links to directories are not followed, except one that is itself among ``paths``.

    ``exclude`` holds gitignore patterns relative to the working directory (outside it, a path is matched as
    it was given); they hold for named files as well, since pre-commit names every file. Iterating raises
    ValueError for a pattern that is not valid. ``excludes`` is a further test, asked of every path that would
    be entered or listed; a folder's ends with ``/``.

    The counters are those of the latest iteration: files listed and their names (known after the first item), files
    whose bytes were searched, and of these how many held a trigger, by syntax.
    """

    paths: Sequence[str]
    exclude: Sequence[str] = ()
    excludes: Callable[[str], bool] | None = None
    files_listed: int = field(default=0, init=False)
    names_listed: list[str] = field(default_factory=list, init=False)
    files_seen: int = field(default=0, init=False)
    seed_counts: dict[Syntax, int] = field(default_factory=lambda: dict.fromkeys(Syntax, 0), init=False)
    submodules: list[str] = field(default_factory=list, init=False)
    """Git submodules that were skipped."""

    def __iter__(self) -> Iterator[Input]:
        self.files_listed = self.files_seen = 0
        self.seed_counts = dict.fromkeys(Syntax, 0)
        entries = self._entries()
        self.names_listed = [entry.path for entry in entries if isinstance(entry, _File)]
        self.files_listed = len(self.names_listed)
        for entry in entries:
            found = entry if isinstance(entry, InputError) else self._look_at(entry)
            if found is not None:
                yield found

    def names(self) -> list[str | InputError]:
        """The path of every file that would be looked at, and what went wrong, without opening any file."""
        return [entry if isinstance(entry, InputError) else entry.path for entry in self._entries()]

    def _entries(self) -> list[_File | InputError]:
        listing = _Listing(self.exclude, self.excludes)
        for path in self.paths:
            listing.add_named(path)
        self.submodules = sorted(listing.submodules)
        return listing.in_order()

    def _look_at(self, file: _File) -> Input | None:
        path = file.path
        try:
            descriptor = os.open(path, _READ)
            try:
                return self._search(path, file.syntax, descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return InputError(path, "disappeared while cgmigrate was running", missing=False)
        except OSError as error:
            return InputError(path, why_unreadable(error), missing=True)

    def _search(self, path: str, syntax: Syntax, descriptor: int) -> Input | None:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return InputError(path, "stopped being a regular file while cgmigrate was running", missing=False)
        data = os.read(descriptor, min(status.st_size, MAX_BYTES) + 1)
        # One byte more was asked for than there should be: getting none of it means the end.
        while len(data) != status.st_size and len(data) <= MAX_BYTES and (more := os.read(descriptor, _PIECE)):
            data += more
        self.files_seen += 1
        if len(data) > MAX_BYTES:
            if not _rest_holds_trigger(descriptor, data):
                return None
            self.seed_counts[syntax] += 1
            return TooLarge(path, status.st_size)
        if not _to_examine(data, syntax):
            return None
        self.seed_counts[syntax] += 1
        return Source(path, syntax, data)


@dataclass(slots=True)
class Buffer:
    """A text that was handed over, under the name that the user gives it; else like `Discovery`."""

    path: str
    data: bytes
    exclude: Sequence[str] = ()
    excludes: Callable[[str], bool] | None = None
    files_listed: int = field(default=0, init=False)
    names_listed: list[str] = field(default_factory=list, init=False)
    files_seen: int = field(default=0, init=False)
    seed_counts: dict[Syntax, int] = field(default_factory=lambda: dict.fromkeys(Syntax, 0), init=False)
    submodules: list[str] = field(default_factory=list, init=False)

    def names(self) -> list[str | InputError]:
        """The name that the text was given, unless it is excluded, or why the text is not examined."""
        path = openable_path(self.path, os.getcwd())
        if Patterns(self.exclude).covers(path) or (self.excludes is not None and self.excludes(path)):
            return []
        syntax = _named_syntax(path)
        return [syntax if isinstance(syntax, InputError) else path]

    def __iter__(self) -> Iterator[Input]:
        self.names_listed = []
        for path in self.names():
            if isinstance(path, InputError):
                yield path
                continue
            self.names_listed = [path]
            self.files_listed = self.files_seen = 1
            if (found := self._found(path)) is not None:
                yield found

    def _found(self, path: str) -> Input | None:
        syntax = syntax_of(path)
        assert syntax is not None
        large = len(self.data) > MAX_BYTES
        if not (has_seed_word(self.data) if large else _to_examine(self.data, syntax)):
            return None
        self.seed_counts[syntax] += 1
        return TooLarge(path, len(self.data)) if large else Source(path, syntax, self.data)


def _to_examine(data: bytes, syntax: Syntax) -> bool:
    return has_seed_word(data) or (SUPPRESSION_MARK in data and syntax in READ)


def _rest_holds_trigger(descriptor: int, piece: bytes) -> bool:
    words = seed_words_for(piece)
    while not contains_any(piece, words):
        more = os.read(descriptor, _PIECE)
        if not more:
            return False
        piece = piece[-OVERLAP:] + more
    return True


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    syntax: Syntax
    identity: tuple[int, int]


class _Listing:
    """The names to look at and the troubles met while collecting them."""

    def __init__(self, exclude: Sequence[str], excludes: Callable[[str], bool] | None) -> None:
        self._patterns = Patterns(exclude)
        self._further = excludes
        self._here = os.getcwd()
        self._files: dict[str, _File] = {}
        self._links: dict[str, _File] = {}
        self._input_errors: dict[str, InputError] = {}
        self.submodules: set[str] = set()

    def _excluded(self, path: str) -> bool:
        return self._patterns.covers(path) or (self._further is not None and self._further(path))

    def in_order(self) -> list[_File | InputError]:
        """Every file once, and every trouble, sorted by path."""
        owners: dict[tuple[int, int], _File] = {}
        for names in (self._files, self._links):
            for path in sorted(names):
                owners.setdefault(names[path].identity, names[path])
        return sorted([*owners.values(), *self._input_errors.values()], key=attrgetter("path"))

    def add_named(self, given: str) -> None:
        """Add a path that the user named: a file in any case, a directory with what is in it."""
        path = openable_path(given, self._here)
        try:
            status = os.stat(path)
        except OSError as error:
            self._input_error(path, why_unreachable(path, error), missing=True)
            return
        if stat.S_ISDIR(status.st_mode):
            if not self._excluded(path + "/"):
                self._add_directory(path)
        elif self._excluded(path):
            pass
        elif not stat.S_ISREG(status.st_mode):
            self._input_error(path, "not a regular file, so cgmigrate does not open it", missing=True)
        elif isinstance(syntax := _named_syntax(path), InputError):
            self._input_errors[path] = syntax
        else:
            names = self._links if os.path.islink(path) else self._files
            names[path] = _File(path, syntax, (status.st_dev, status.st_ino))

    def _add_directory(self, path: str) -> None:
        top = checkout_of(os.path.realpath(path))
        if top is None or not self._add_from_git(path, top):
            self._walk(path)

    def _add_nested_checkout(self, path: str) -> None:
        # An uninitialised submodule has no .git: git would answer for the project around it, for ever.
        if not os.path.lexists(os.path.join(path, ".git")) or not self._add_from_git(path, path):
            self._walk(path)

    def _add_from_git(self, path: str, top: str) -> bool:
        """Add what git tracks or would track in a folder of the checkout ``top``; False if git cannot say."""
        below = os.path.relpath(os.path.realpath(path), os.path.realpath(top)).split(os.sep)
        if not set(below).isdisjoint(SKIPPED):
            return False
        # --exclude holds for untracked files only.
        skipped = [f"--exclude={name}/" for name in SKIPPED]
        options = ["-z", "--cached", "--others", "--exclude-standard", *skipped]
        listed = run_git(path, "ls-files", *options, "--", ".")
        if listed is None:
            return False
        names, complaints = listed
        if not names and run_git(path, "check-ignore", "--quiet", ".") is not None:
            # The user named a directory that git ignores, and wants it looked at all the same.
            return False
        for line in complaints.splitlines():
            # git lists the rest and reports success.
            if line.startswith("warning: could not open directory"):
                self._input_error(
                    path, f"git could not read all of it ({line.removeprefix('warning: ')})", missing=True
                )
        prefix = prefix_of(path)
        for name in dict.fromkeys(names.split(b"\0")):
            if name:
                # git ends the name of an untracked checkout with a slash, that of a submodule with none.
                self._add_met(prefix + os.fsdecode(name).rstrip("/"), untracked=name.endswith(b"/"))
        return True

    def _add_met(self, path: str, untracked: bool = False) -> None:
        """Add a name met in a directory: a file, or an untracked checkout; a submodule is another project's."""
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._input_error(path, why_unreadable(error), missing=True)
            return
        if stat.S_ISDIR(status.st_mode):
            if not untracked:
                self.submodules.add(path)
            elif not self._excluded(path + "/"):
                self._add_nested_checkout(path)
            return
        syntax = syntax_of(path)
        if syntax is None or self._excluded(path):
            return
        names = self._files
        if stat.S_ISLNK(status.st_mode):
            names = self._links
            try:
                status = os.stat(path)
            except OSError as error:
                self._input_error(path, why_unreachable(path, error), missing=False)
                return
        if stat.S_ISREG(status.st_mode):
            names[path] = _File(path, syntax, (status.st_dev, status.st_ino))

    def _walk(self, root: str) -> None:
        """Add what is below a directory, less `SKIPPED` folders and what ignore files at or below it name."""
        pending: list[tuple[str, tuple[_IgnoreFile, ...]]] = [(root, ())]
        while pending:
            folder, ignores = pending.pop()
            try:
                with os.scandir(folder) as scan:
                    entries = list(scan)
            except FileNotFoundError:
                self._input_error(folder, "disappeared while cgmigrate was running", missing=False)
                continue
            except OSError as error:
                self._input_error(folder, why_unreadable(error), missing=True)
                continue
            prefix = prefix_of(folder)
            if folder != root and any(entry.name == ".git" and _is_of_submodule(entry) for entry in entries):
                self.submodules.add(folder)
                continue
            ignores += tuple(_ignore_files(prefix, {entry.name for entry in entries}))
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    name = path + "/"
                    if entry.name not in SKIPPED and not _ignored(name, ignores) and not self._excluded(name):
                        pending.append((path, ignores))
                elif syntax_of(entry.name) is not None and not _ignored(path, ignores):
                    self._add_met(path)

    def _input_error(self, path: str, reason: str, *, missing: bool) -> None:
        self._input_errors[path] = InputError(path, reason, missing)


def _is_of_submodule(git: os.DirEntry[str]) -> bool:
    """Whether a ``.git`` is that of a submodule: a file that leads into the ``modules`` of the project around it."""
    try:
        if not git.is_file(follow_symlinks=False):
            return False
        return b"/modules/" in read_bytes(git.path)
    except OSError:
        return False

"""The names of the files below the user's paths, without opening any.

In a git checkout these are the files that git tracks or would track; elsewhere a walk that honours ``.gitignore`` and
``.ignore``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

from cgmigrate.documents.syntax import SHEBANG_BYTES, SYNTAXES, Syntax, may_be_script, syntax_of, syntax_of_file
from cgmigrate.project.checkout import SKIPPED, checkout_of
from cgmigrate.project.git import run_git
from cgmigrate.project.ignore_files import IgnoreFile, Patterns, is_ignored, read_ignore_files
from cgmigrate.project.inputs import InputError
from cgmigrate.project.paths import openable_path, prefix_of, why_unreachable, why_unreadable
from cgmigrate.project.unread_files import may_hold_settings
from cgmigrate.project.untouched import only_quotes
from cgmigrate.text.files import READ, read_bytes


def syntax_of_named(path: str, data: bytes | None = None) -> Syntax | InputError:
    """Return the syntax of a file that the user named, or why it is not examined; ``data`` is its text if given."""
    syntax = _syntax(path) if data is None else syntax_of_file(path, data[:SHEBANG_BYTES])
    if syntax is None and (only_quotes(path) or not may_hold_settings(path)):
        kinds = ", ".join(other.name for other in SYNTAXES)
        return InputError(path, f"not a kind of file that cgmigrate reads ({kinds}) or searches", missing=False)
    return syntax or Syntax.TEXT


def _syntax(path: str) -> Syntax | None:
    """Return the syntax of a file; it is opened if its name has no suffix, and only then."""
    if (syntax := syntax_of(path)) is not None or not may_be_script(path):
        return syntax
    try:
        descriptor = os.open(path, READ)
        try:
            return syntax_of_file(path, os.read(descriptor, SHEBANG_BYTES))
        finally:
            os.close(descriptor)
    except OSError:
        return None


class ListedFile(NamedTuple):
    """A file to search; files with the same ``identity`` (device and inode) are one."""

    path: str
    syntax: Syntax
    identity: tuple[int, int]


class Listing:
    """The files below the paths that are added, and the input errors met while listing them."""

    def __init__(self, exclude: Sequence[str], excludes: Callable[[str], bool] | None) -> None:
        self._patterns = Patterns(exclude)
        self._excludes = excludes
        self._cwd = os.getcwd()
        self._files: dict[str, ListedFile] = {}
        self._links: dict[str, ListedFile] = {}
        self._input_errors: dict[str, InputError] = {}
        self.submodules: set[str] = set()
        """Git submodules that were skipped."""
        self.quoting: set[str] = set()
        """Logs, patches and lock files."""
        self.excluded: list[str] = []
        """Paths that the user named and that are excluded."""

    def in_order(self) -> list[ListedFile | InputError]:
        """Return each file once, and each input error, sorted by path."""
        owners: dict[tuple[int, int], ListedFile] = {}
        listed = [files[path] for files in (self._files, self._links) for path in sorted(files)]
        # A name by which a file is read counts before one by which it is only searched.
        for file in sorted(listed, key=lambda one: one.syntax is Syntax.TEXT):
            owners.setdefault(file.identity, file)
        return sorted([*owners.values(), *self._input_errors.values()], key=attrgetter("path"))

    def add_named(self, path: str) -> None:
        """Add a path that the user named: a file of any name, a directory with its files."""
        path = openable_path(path, self._cwd)
        try:
            status = os.stat(path)
        except OSError as error:
            self._add_error(path, why_unreachable(path, error), missing=True)
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        if self._is_excluded(path + "/" if is_folder else path):
            self.excluded.append(path)
        elif is_folder:
            self._add_directory(path)
        elif not stat.S_ISREG(status.st_mode):
            self._add_error(path, "not a regular file, so cgmigrate does not open it", missing=True)
        elif isinstance(syntax := syntax_of_named(path), InputError):
            self._input_errors[path] = syntax
        else:
            names = self._links if os.path.islink(path) else self._files
            names[path] = ListedFile(path, syntax, (status.st_dev, status.st_ino))

    def _is_excluded(self, path: str) -> bool:
        return self._patterns.covers(path) or (self._excludes is not None and self._excludes(path))

    def _add_error(self, path: str, reason: str, *, missing: bool) -> None:
        self._input_errors[path] = InputError(path, reason, missing)

    def _add_directory(self, path: str) -> None:
        top = checkout_of(os.path.realpath(path))
        if top is None or not self._add_from_git(path, top):
            self._walk(path)

    def _add_nested_checkout(self, path: str) -> None:
        # An uninitialised submodule has no .git: git would list the project around it, in an endless recursion.
        if not os.path.lexists(os.path.join(path, ".git")) or not self._add_from_git(path, path):
            self._walk(path)

    def _add_from_git(self, path: str, top: str) -> bool:
        """Add the files that git tracks or would track in a folder of the checkout ``top``; False if git fails."""
        below = os.path.relpath(os.path.realpath(path), os.path.realpath(top)).split(os.sep)
        if not set(below).isdisjoint(SKIPPED):
            return False
        # --exclude applies to untracked files only.
        skipped = [f"--exclude={name}/" for name in SKIPPED]
        options = ["-z", "--cached", "--others", "--exclude-standard", *skipped]
        output = run_git(path, "ls-files", *options, "--", ".")
        if output is None:
            return False
        names, complaints = output
        if not names and run_git(path, "check-ignore", "--quiet", ".") is not None:
            # The user named a directory that git ignores: it is searched all the same.
            return False
        for line in complaints.splitlines():
            # git lists the other folders and reports success.
            if line.startswith("warning: could not open directory"):
                reason = f"git could not read all of it ({line.removeprefix('warning: ')})"
                self._add_error(path, reason, missing=True)
        prefix = prefix_of(path)
        for name in dict.fromkeys(names.split(b"\0")):
            if name:
                # The name of an untracked checkout ends with a slash, that of a submodule does not.
                self._add_entry(prefix + os.fsdecode(name).rstrip("/"), untracked=name.endswith(b"/"))
        return True

    def _add_entry(self, path: str, untracked: bool = False) -> None:
        """Add an entry of a directory: a file or an untracked checkout. Submodules are skipped."""
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._add_error(path, why_unreadable(error), missing=True)
            return
        if stat.S_ISDIR(status.st_mode):
            if not untracked:
                self.submodules.add(path)
            elif not self._is_excluded(path + "/"):
                self._add_nested_checkout(path)
        else:
            self._add_file(path, status)

    def _add_file(self, path: str, status: os.stat_result) -> None:
        """Add a file that is read or searched, if it is not excluded."""
        if self._is_excluded(path):
            return
        syntax = syntax_of(path)
        if syntax is None and only_quotes(path):
            self.quoting.update([path] if stat.S_ISREG(status.st_mode) else [])
            return
        names = self._files
        if stat.S_ISLNK(status.st_mode):
            names = self._links
            try:
                status = os.stat(path)
            except OSError as error:
                if syntax is not None:
                    self._add_error(path, why_unreachable(path, error), missing=False)
                return
        if not stat.S_ISREG(status.st_mode):
            return
        syntax = syntax or _syntax(path)
        if syntax is not None or may_hold_settings(path):
            names[path] = ListedFile(path, syntax or Syntax.TEXT, (status.st_dev, status.st_ino))

    def _walk(self, root: str) -> None:
        """Add the files below a directory, without `SKIPPED` folders and what ignore files at or below it match."""
        pending: list[tuple[str, tuple[IgnoreFile, ...]]] = [(root, ())]
        while pending:
            folder, ignores = pending.pop()
            entries = self._scan(folder)
            prefix = prefix_of(folder)
            if folder != root and any(entry.name == ".git" and _is_of_submodule(entry) for entry in entries):
                self.submodules.add(folder)
                continue
            ignores += tuple(read_ignore_files(prefix, {entry.name for entry in entries}))
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    name = path + "/"
                    if entry.name not in SKIPPED and not is_ignored(name, ignores) and not self._is_excluded(name):
                        pending.append((path, ignores))
                elif not is_ignored(path, ignores):
                    self._add_entry(path)

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except FileNotFoundError:
            self._add_error(folder, "disappeared while cgmigrate was running", missing=False)
        except OSError as error:
            self._add_error(folder, why_unreadable(error), missing=True)
        return []


def _is_of_submodule(git: os.DirEntry[str]) -> bool:
    """Return whether a ``.git`` is that of a submodule: a file that points into ``modules`` of the outer project."""
    try:
        if not git.is_file(follow_symlinks=False):
            return False
        return b"/modules/" in read_bytes(git.path)
    except OSError:
        return False

"""Which configuration governs a file: the nearest one, merged with the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.ignore_files import Patterns
from cgmigrate.text.files import read_bytes

if TYPE_CHECKING:
    from cgmigrate.project.options import Options
from cgmigrate.project.configuration import (
    OWN_FILE,
    SHARED_FILE,
    Configuration,
    ConfigurationError,
    is_below,
    merged,
    shown,
)


@dataclass(frozen=True, slots=True)
class Governing:
    """What holds for one file: options, codes that are not reported in it, and whose settings it holds.

    ``ecosystem`` is the name of a file in ``rules/ecosystems``, empty where the file's text decides.
    """

    options: Options
    ignored: tuple[str, ...] = ()
    ecosystem: str = ""


@dataclass(slots=True)
class Configurations:
    """The configuration of every folder, each file read once.

    ``given`` is the one file that holds for everything (``--config``), ``isolated`` says that none does.
    """

    given: str = ""
    isolated: bool = False
    replaces_exclude: bool = False
    """Whether the command line excludes something: then ``exclude`` of the files does not count."""
    strict: bool = False
    """Whether only the configuration at the root of the checkout counts, and no baseline of the checkout."""
    folders: tuple[str, ...] = ()
    """Folders of rules from the command line, whose codes may be named."""
    _found: dict[str, Configuration] = field(default_factory=dict)
    _patterns: dict[tuple[str, ...], Patterns] = field(default_factory=dict)
    passed_over: set[str] = field(default_factory=set)
    """Folders of rules, absolute, whose files were excluded for that."""
    _free: set[str] = field(default_factory=set)
    """Folders in which nothing is excluded."""

    def here(self) -> Configuration:
        """The configuration of the working directory, which decides on what concerns a run as a whole."""
        return self.at(os.getcwd())

    def at(self, folder: str) -> Configuration:
        """The configuration of an absolute folder. Raises ConfigurationError."""
        if folder not in self._found:
            self._found[folder] = self._find(folder)
        return self._found[folder]

    def _find(self, folder: str) -> Configuration:
        found = self._nearest(folder)
        if self.strict and found.baseline and self.in_tree(found.baseline):
            return replace(found, baseline=None)
        return found

    @property
    def root(self) -> str:
        """The top of the checkout around the working directory, else the working directory."""
        here = os.getcwd()
        return checkout_of(here) or here

    def in_tree(self, path: str) -> bool:
        """Whether a file is in the tree that is checked, by its name or its real path."""
        return any(is_below(name, self.root) for name in (os.path.abspath(path), os.path.realpath(path)))

    def _nearest(self, folder: str) -> Configuration:
        if self.isolated:
            return Configuration("", os.getcwd())
        if self.given:
            # As for options: what stands in it is seen from the working directory.
            return self._read(os.path.abspath(self.given), os.getcwd(), asked_for=True) or Configuration("", folder)
        if self.strict and folder != self.root and is_below(folder, self.root):
            return self.at(self.root)
        for name in (OWN_FILE, SHARED_FILE):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (found := self._read(path, folder)) is not None:
                return found
        parent = os.path.dirname(folder)
        if parent == folder or os.path.lexists(os.path.join(folder, ".git")):
            return Configuration("", folder)
        return self.at(parent)

    def _read(self, path: str, folder: str, asked_for: bool = False) -> Configuration | None:
        try:
            raw = read_bytes(path)
        except OSError as error:
            told = f"{shown(path)}: the configuration cannot be read: {error.strerror or error}"
            raise ConfigurationError(told) from error
        # Most projects have a pyproject.toml and no configuration in it: no need to parse it.
        if os.path.basename(path) == SHARED_FILE and b"cgmigrate" not in raw and not asked_for:
            return None
        from cgmigrate.project.configuration_file import read

        return read(path, raw, folder, self.folders, asked_for)

    def of(self, path: str) -> Configuration:
        """The configuration of the folder that a file or folder stands in."""
        return self.at(os.path.dirname(os.path.abspath(path)))

    def excludes(self, path: str) -> bool:
        """Whether a file is excluded, or a folder around it; a folder's own path ends with ``/``.

        Rules hold the settings' names as keys, and rewriting those would break them: their files are left out.
        """
        around = path.rpartition("/")[0]
        if around in self._free:
            return False
        whole, slash = os.path.abspath(path), "/" if path.endswith("/") else ""
        beside_rules = not slash and self._holds_rules(os.path.dirname(whole))
        if beside_rules and whole.endswith(".yaml"):
            self.passed_over.add(os.path.dirname(whole))
            return True
        here, free = os.getcwd(), not slash and not beside_rules
        # The folder in which one works, and what is around it, is never excluded as a whole.
        while not is_below(here, whole):
            found = self.at(os.path.dirname(whole))
            patterns = (() if self.replaces_exclude else found.exclude) + found.extend_exclude
            free = free and not patterns
            if patterns and self._covers(patterns, found.folder, whole + slash):
                return True
            whole, slash = found.folder, "/"
        if free:
            self._free.add(around)
        return False

    def _holds_rules(self, folder: str) -> bool:
        """Whether an absolute folder is one of a team's own rules."""
        return folder in (*self.at(folder).extend_rules, *self.here().extend_rules, *map(os.path.abspath, self.folders))

    def governing(self, path: str, options: Options) -> Governing:
        """What holds for a file, where ``options`` are those of the command line. Raises ConfigurationError."""
        found = self.of(path)
        whole = os.path.abspath(path)
        ignored = [codes for pattern, codes in found.per_file_ignores if self._applies(pattern, found.folder, whole)]
        named = [name for pattern, name in found.ecosystems if self._applies(pattern, found.folder, whole)]
        codes = tuple(code for some in ignored for code in some)
        return Governing(merged(options, found), codes, named[-1] if named else "")

    def _applies(self, pattern: str, folder: str, whole: str) -> bool:
        # As in ruff, "!pattern" is all that the pattern is not.
        if pattern.startswith("!"):
            return not self._covers((pattern[1:],), folder, whole)
        return self._covers((pattern,), folder, whole)

    def _covers(self, patterns: tuple[str, ...], folder: str, whole: str) -> bool:
        if not is_below(whole.rstrip("/"), folder):
            return False
        if patterns not in self._patterns:
            self._patterns[patterns] = Patterns(patterns)
        return self._patterns[patterns].covers(whole[len(folder) :].lstrip("/"))

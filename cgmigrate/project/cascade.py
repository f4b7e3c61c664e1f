"""The configuration of a file: the nearest configuration file, merged with the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.megatron.setting_names import SETTINGS, SURROUNDINGS
from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.configuration import OWN_FILE, SHARED_FILE, Configuration, ConfigurationError, merged
from cgmigrate.project.ignore_files import Patterns
from cgmigrate.project.paths import display_path, is_below
from cgmigrate.text.files import read_bytes
from cgmigrate.text.remembered import remembered

if TYPE_CHECKING:
    from cgmigrate.project.options import RunOptions


BASELINE = "cgmigrate-baseline.json"
"""The baseline in the working directory, where nothing names another one."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """The options for one file, and the prefixes of the rule codes that are ignored in it.

    ``ecosystem`` is the name of a file in ``rules/ecosystems``; if it is empty, the text of the file decides.
    """

    options: RunOptions
    ignored: tuple[str, ...] = ()
    ecosystem: str = ""


@dataclass
class Configurations:
    """The configurations of all folders; each configuration file is read once."""

    file: str = ""
    """The configuration file for all folders (``--config``)."""
    isolated: bool = False
    """Whether configuration files are ignored."""
    replaces_exclude: bool = False
    """Whether the command line has ``--exclude``, which replaces ``exclude`` of the configuration files."""
    strict: bool = False
    """Whether only the configuration at the root of the checkout is used, without a baseline of the checkout."""
    rule_folders: tuple[str, ...] = ()
    """Folders of rules from the command line; configuration files may name the codes of these rules."""
    named_folders: frozenset[str] = frozenset()
    """Folders that the user names, absolute paths: no configuration excludes them as a whole."""
    excluded_rule_folders: set[str] = field(default_factory=set)
    """Folders of rules, absolute paths, in which YAML files were excluded."""
    _patterns: dict[tuple[str, ...], Patterns] = field(default_factory=dict)
    _without_excludes: set[str] = field(default_factory=set)
    """Folders in which no file is excluded."""

    def for_run(self) -> Configuration:
        """Return the configuration of the working directory, which decides what concerns the run as a whole."""
        configuration = self.for_folder(os.getcwd())
        if configuration.baseline or self.isolated or self.strict or not os.path.isfile(BASELINE):
            return configuration
        return replace(configuration, baseline=os.path.abspath(BASELINE))

    def for_file(self, path: str) -> Configuration:
        """Return the configuration of the folder that contains a file or folder. Raises ConfigurationError."""
        return self.for_folder(os.path.dirname(os.path.abspath(path)))

    @remembered
    def for_folder(self, folder: str) -> Configuration:
        """Return the configuration of a folder (an absolute path). Raises ConfigurationError."""
        configuration = self._nearest(folder)
        if self.strict and configuration.baseline and self.in_tree(configuration.baseline):
            return replace(configuration, baseline=None)
        return configuration

    @property
    def root(self) -> str:
        """The root of the checkout that contains the working directory, else the working directory."""
        cwd = os.getcwd()
        return checkout_of(cwd) or cwd

    def in_tree(self, path: str) -> bool:
        """Return whether a file is in the tree that is checked, by its name or its real path."""
        return any(is_below(name, self.root) for name in (os.path.abspath(path), os.path.realpath(path)))

    def _nearest(self, folder: str) -> Configuration:
        if self.isolated:
            return Configuration("", os.getcwd())
        if self.file:
            # Paths in it are relative to the working directory, like those of options.
            return self._read(os.path.abspath(self.file), os.getcwd(), required=True) or Configuration("", folder)
        if self.strict and folder != self.root and is_below(folder, self.root):
            return self.for_folder(self.root)
        for name in (OWN_FILE, SHARED_FILE):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (configuration := self._read(path, folder)) is not None:
                return configuration
        parent = os.path.dirname(folder)
        if parent == folder or os.path.lexists(os.path.join(folder, ".git")):
            return Configuration("", folder)
        return self.for_folder(parent)

    def _read(self, path: str, folder: str, required: bool = False) -> Configuration | None:
        try:
            raw = read_bytes(path)
        except OSError as error:
            reason = f"the configuration cannot be read: {error.strerror or error}"
            raise ConfigurationError(f"{display_path(path)}: {reason}") from error
        # Most projects have a pyproject.toml without [tool.cgmigrate]: it need not be parsed.
        if os.path.basename(path) == SHARED_FILE and b"cgmigrate" not in raw and not required:
            return None
        from cgmigrate.project.configuration_file import read

        return read(path, raw, folder, self.rule_folders, required)

    def excludes(self, path: str) -> bool:
        """Return whether a file, or a folder that contains it, is excluded; the path of a folder ends with ``/``.

        The YAML files of a folder of rules are excluded: a rule contains the settings' names as keys, and rewriting
        them would break the rule.
        """
        parent = path.rpartition("/")[0]
        if parent in self._without_excludes:
            return False
        absolute, slash = os.path.abspath(path), "/" if path.endswith("/") else ""
        beside_rules = not slash and self._is_rule_folder(os.path.dirname(absolute))
        if beside_rules and absolute.endswith(".yaml"):
            self.excluded_rule_folders.add(_rules_around(os.path.dirname(absolute)))
            return True
        cwd, has_patterns = os.getcwd(), False
        # The working directory, named folders and the folders above them are never excluded as a whole.
        while not any(is_below(one, absolute.rstrip("/")) for one in (cwd, *self.named_folders)):
            configuration = self.for_folder(os.path.dirname(absolute))
            patterns = (() if self.replaces_exclude else configuration.exclude) + configuration.extend_exclude
            has_patterns = has_patterns or bool(patterns)
            if patterns and self._covers(patterns, configuration.folder, absolute + slash, self.named_folders):
                return True
            absolute, slash = configuration.folder, "/"
        if not (has_patterns or path.endswith("/") or beside_rules):
            self._without_excludes.add(parent)
        return False

    def _is_rule_folder(self, folder: str) -> bool:
        """Return whether a folder (an absolute path) is a folder of the team's own rules, or of their settings."""
        folder = _rules_around(folder)
        own = (*self.for_folder(folder).extend_rules, *self.for_run().extend_rules)
        return folder in (*own, *map(os.path.abspath, self.rule_folders))

    def file_options(self, path: str, options: RunOptions) -> FileOptions:
        """Return the options for a file; ``options`` are those of the command line. Raises ConfigurationError."""
        configuration = self.for_file(path)
        absolute, folder = os.path.abspath(path), configuration.folder
        by_folder = ((configuration.per_file_ignores, folder), (options.per_file_ignores, os.getcwd()))
        ignores = ((pattern, codes, at) for every, at in by_folder for pattern, codes in every)
        ignored = tuple(code for pattern, some, at in ignores if self._matches(pattern, at, absolute) for code in some)
        names = [name for pattern, name in configuration.ecosystems if self._matches(pattern, folder, absolute)]
        return FileOptions(merged(options, configuration), ignored, names[-1] if names else "")

    def _matches(self, pattern: str, folder: str, absolute: str) -> bool:
        # As in ruff, "!pattern" matches what the pattern does not match.
        if pattern.startswith("!"):
            return not self._covers((pattern[1:],), folder, absolute)
        return self._covers((pattern,), folder, absolute)

    def _covers(self, patterns: tuple[str, ...], folder: str, absolute: str, named: Iterable[str] = ()) -> bool:
        if not is_below(absolute.rstrip("/"), folder):
            return False
        if patterns not in self._patterns:
            self._patterns[patterns] = Patterns(patterns)
        around = (one for one in named if is_below(absolute, one) and is_below(one, folder))
        inside, above = (path[len(folder) :].lstrip("/") for path in (absolute, max(around, key=len, default=folder)))
        return self._patterns[patterns].covers(inside, above)


def folders_in(paths: Iterable[str]) -> frozenset[str]:
    """Return those of the paths that a user names which are folders, as absolute paths."""
    return frozenset(os.path.abspath(path) for path in paths if os.path.isdir(path))


def _rules_around(folder: str) -> str:
    """Return the folder of rules that has a folder of settings; any other folder as it is."""
    for settings in (SURROUNDINGS, SETTINGS):
        if folder.endswith("/" + settings):
            return folder[: -len(settings) - 1]
    return folder

"""What applies to each file of a run: its options, the rules, and the releases."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.megatron.releases import Release
from cgmigrate.project.options import RunOptions
from cgmigrate.project.seeds import Seeds, seeds_of
from cgmigrate.text.remembered import remembered

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Context, LintDiagnostic
    from cgmigrate.lint.rules import Rule
    from cgmigrate.megatron.catalogue import Catalogue
    from cgmigrate.project.cascade import Configurations, FileOptions
    from cgmigrate.project.pins.resolution import Resolution


@dataclass
class FileContexts:
    """The options, rules and releases of files; each is worked out once for all files that share it."""

    options: RunOptions
    """Those of the command line."""
    configurations: Configurations | None
    notes: list[str]
    """Notes of the run; those about releases are added."""
    unfollowed: list[str] = field(default_factory=list)
    """The roots of checkouts whose objects of code this run does not follow: it would take minutes."""
    _seeds: dict[str, Seeds] = field(default_factory=dict)
    """By the folder of the file, as it is named on the command line."""
    _rules: dict[tuple[str, ...], dict[str, Rule]] = field(default_factory=dict)
    _contexts: dict[tuple[Resolution, FileOptions], Context] = field(default_factory=dict)

    def seeds_of(self, path: str) -> Seeds:
        """Return the seed words for a file: those of the settings that ship and of the team's own."""
        folder = path.rpartition("/")[0]
        if folder not in self._seeds:
            own = self.configurations.for_file(path).extend_rules if self.configurations else ()
            self._seeds[folder] = seeds_of((*own, *self.options.rule_folders))
        return self._seeds[folder]

    @remembered
    def options_of(self, path: str) -> FileOptions:
        """Return the options of a file: the command line merged with the nearest configuration."""
        from cgmigrate.project.cascade import FileOptions

        known = self.configurations
        return known.file_options(path, self.options) if known else FileOptions(self.options)

    def selects(self, path: str, rule: str) -> bool:
        """Return whether a rule's diagnostics are reported for a file."""
        file = self.options_of(path)
        known = self.rules(file.options).get(rule)
        return _selects(file.options, rule, known) and not rule.startswith(file.ignored)

    def selected(self, path: str, diagnostics: Iterable[LintDiagnostic]) -> tuple[LintDiagnostic, ...]:
        """Return the diagnostics of a file whose rules are selected."""
        return tuple(diagnostic for diagnostic in diagnostics if self.selects(path, diagnostic.rule))

    def rules_of(self, path: str) -> dict[str, Rule]:
        """Return all rules for a file, by id. Raises RuleError."""
        return self.rules(self.options_of(path).options)

    def rules(self, options: RunOptions) -> dict[str, Rule]:
        """Return all rules by id, those of the options' own folders included. Raises RuleError."""
        if options.rule_folders not in self._rules:
            from pathlib import Path

            from cgmigrate.lint.rules import load

            rules = load(tuple(map(Path, options.rule_folders)))
            requested = {"defaults": options.keep_defaults, "hybrid": options.hybrid}
            self._rules[options.rule_folders] = {code: rule.with_fixes(**requested) for code, rule in rules.items()}
        return self._rules[options.rule_folders]

    @property
    def known_rules(self) -> dict[str, Rule]:
        """All rules that were loaded for any file, by id."""
        loaded = self._rules or {(): self.rules(self.options)}
        return {name: rule for rules in loaded.values() for name, rule in rules.items()}

    @property
    def resolutions(self) -> list[Resolution]:
        """The releases of the files so far, each with its origin."""
        return list(dict.fromkeys(resolution for resolution, _ in self._contexts))

    def load_team_rules(self) -> None:
        """Load the rules of every folder in which discovery excluded YAML files, to report what is no rule there.

        Raises RuleError.
        """
        if self.configurations is None:
            return
        from cgmigrate.project.configuration import merged

        folders = sorted(self.configurations.excluded_rule_folders)
        for configuration in (self.configurations.for_run(), *map(self.configurations.for_folder, folders)):
            options = merged(self.options, configuration)
            if options.rule_folders:
                self.rules(options)

    def context(self, path: str) -> Context:
        """Return the releases, rules and ecosystems for a file; the pins of the nearest project apply."""
        file = self.options_of(path)
        resolution = self.resolution(path)
        if (resolution, file) not in self._contexts:
            self.notes += [note for note in resolution.notes if note not in self.notes]
            self._contexts[resolution, file] = self._context(file, resolution)
        return self._contexts[resolution, file]

    def resolution(self, path: str) -> Resolution:
        """Return the source and target release for a file, with their origins."""
        options = self.options_of(path).options
        return self._with_origin(path, self._resolution(os.path.dirname(path), options.source, options.target))

    def catalogue_of(self, path: str) -> Catalogue:
        """Return the settings that files like one may have."""
        from cgmigrate.megatron import catalogue

        return catalogue.load(self.options_of(path).options.rule_folders)

    def _context(self, file: FileOptions, resolution: Resolution) -> Context:
        from cgmigrate.linking import ecosystems
        from cgmigrate.lint.diagnostics import Context
        from cgmigrate.megatron import catalogue

        rules, settings = self.rules(file.options), catalogue.load(file.options.rule_folders)
        owners = ecosystems.only(file.ecosystem) if file.ecosystem else ecosystems.load()
        self._note_previews(file.options, rules)
        return Context(
            resolution.source,
            resolution.target,
            {name: rule for name, rule in rules.items() if file.options.preview or not rule.preview},
            ecosystems.with_settings(owners, settings),
            settings,
            assumed_source=resolution.source_from == "the default",
        )

    def _note_previews(self, options: RunOptions, rules: Mapping[str, Rule]) -> None:
        """Add a note for each code that selects nothing because its rules are in preview."""
        for code in () if options.preview else options.select:
            selected = [rule for name, rule in rules.items() if name.startswith(code)]
            note = f"{code} selects rules in preview only: add --preview, or `preview = true` to the configuration"
            if selected and all(rule.preview for rule in selected) and note not in self.notes:
                self.notes.append(note)

    @remembered
    def _resolution(self, folder: str, source: Release | None, target: Release | None) -> Resolution:
        """Return the releases for the files of a folder."""
        from pathlib import Path

        from cgmigrate.project.pins.resolution import resolve

        return resolve(Path(folder), source, target)

    def _with_origin(self, path: str, resolution: Resolution) -> Resolution:
        """Name the configuration file as the origin of its releases, which ``resolve`` takes for options."""
        from cgmigrate.project.paths import display_path

        if self.configurations is None or not (file := self.configurations.for_file(path).file):
            return resolution
        releases = (("--from", self.options.source), ("--to", self.options.target))
        from_command_line = {option for option, release in releases if release is not None}
        source, target = (
            display_path(file) if origin in ("--from", "--to") and origin not in from_command_line else origin
            for origin in (resolution.source_from, resolution.target_from)
        )
        return replace(resolution, source_from=source, target_from=target)


def _selects(options: RunOptions, rule: str, known: Rule | None) -> bool:
    from cgmigrate.lint.kinds import UNREADABLE

    if known is not None and known.preview and not options.preview:
        return False
    # A file that cannot be read may have what is selected; only --ignore CG0 accepts that.
    selected = not options.select or rule.startswith(options.select)
    selected = selected or (known is not None and known.reports in UNREADABLE)
    return selected and not rule.startswith(options.ignore)

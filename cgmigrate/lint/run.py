"""One run: all files that contain settings, checked one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cgmigrate.lint.file_contexts import FileContexts
from cgmigrate.project.discovery import Discovery
from cgmigrate.project.inputs import Input, InputError, InputFile, TooLarge
from cgmigrate.project.options import RunOptions

if TYPE_CHECKING:
    from cgmigrate.lint.baseline import Baseline
    from cgmigrate.lint.diagnostics import Context
    from cgmigrate.lint.file_check import FileChecker
    from cgmigrate.lint.file_result import FileResult, FixChooser
    from cgmigrate.lint.planning import Planner
    from cgmigrate.lint.rules import Rule
    from cgmigrate.project.buffer import Buffer
    from cgmigrate.project.cascade import Configurations
    from cgmigrate.project.pins.resolution import Resolution
    from cgmigrate.proof.run.judge import RunVerdict

    Prover = Callable[[Planner, Sequence[InputFile]], Mapping[str, RunVerdict]]
    """Returns what runs of a command show of the fixes of some files, by the id of the fix."""


@dataclass(slots=True)
class Run:
    """Iterable over the checked files and the input errors, in order of path; counts as it goes."""

    paths: Sequence[str]
    options: RunOptions
    configurations: Configurations | None = None
    baseline: Baseline | None = None
    chooser: FixChooser | None = None
    prover: Prover | None = None
    discovery: Discovery | Buffer = field(init=False)
    contexts: FileContexts = field(init=False)
    notes: list[str] = field(default_factory=list)
    to_examine: int = 0
    """Files with a seed word, known once discovery is complete; ``examined`` of them are done."""
    examined: int = 0
    untouched: Sequence[tuple[str, str]] = ()
    """Files that are never touched and name deprecated settings, each with its kind before it."""
    _listed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.contexts = FileContexts(self.options, self.configurations, self.notes)
        excludes = self.configurations.excludes if self.configurations else None
        if self.options.stdin is not None:
            from cgmigrate.project.buffer import Buffer

            self.discovery = Buffer(
                *self.options.stdin, exclude=self.options.exclude, excludes=excludes, seeds=self.contexts.seeds_of
            )
        else:
            self.discovery = Discovery(self.paths, self.options.exclude, excludes, self.contexts.seeds_of)

    def __iter__(self) -> Iterator[FileResult | InputError]:
        # Which file is merged into which is known only after discovery.
        inputs = list(self.discovery)
        sources = [item for item in inputs if isinstance(item, InputFile)]
        self._load_rules(sources)
        self.to_examine, self.examined = len(inputs), 0
        self.untouched = self._untouched(inputs)
        if not inputs:
            # A clean tree needs no checker, whose modules take time to import.
            return
        checker = self.checker(sources)
        if self.prover is not None:
            checker.verdicts.update(self.prover(checker.planner, sources))
        for item in inputs:
            yield _checked(checker, item)
            self.examined += 1

    def checker(self, sources: Sequence[InputFile]) -> FileChecker:
        """Return the checker of single files; ``sources`` are all files of the run."""
        from cgmigrate.lint.file_check import FileChecker
        from cgmigrate.lint.planning import Planner
        from cgmigrate.lint.related_files import RelatedFiles

        contexts = self.contexts
        related = RelatedFiles(
            sources,
            contexts.seeds_of,
            lambda: self.discovery.names_listed,
            contexts.catalogue_of,
            lambda path: contexts.options_of(path).options.rule_folders,
        )
        one_by_one = self.options.edits or self.options.details or self.chooser is not None
        planner = Planner(self.paths, self.options, self.contexts, related, one_by_one)
        return FileChecker(planner, self.baseline, self.chooser, self.notes)

    def _names_of_megatron(self, path: str) -> Collection[str]:
        """Return the deprecated names for a file that no other system has."""
        from cgmigrate.megatron.settings import ENABLE

        return self._deprecated_names(path) - {ENABLE}

    def _deprecated_names(self, path: str) -> frozenset[str]:
        return frozenset(self.contexts.catalogue_of(path).deprecated)

    def _untouched(self, inputs: Sequence[Input]) -> list[tuple[str, str]]:
        """Return the files that are never touched, and note how many these are of each kind."""
        skipped = self.discovery.untouched
        # On a clean tree, logs are not searched: they may be many.
        if not (skipped or (inputs and self.discovery.quoting_names)):
            return []
        from cgmigrate.project.unread_files import names_setting
        from cgmigrate.project.untouched import note_on, quoting

        named = [one for one in skipped if names_setting(one[1], self._deprecated_names)]
        named += quoting(self.discovery.quoting_names, self._names_of_megatron)
        self.notes += filter(None, [note_on(named)])
        return named

    def _load_rules(self, sources: Sequence[InputFile]) -> None:
        """Load the rules for all files, so that an error in one configuration ends the run before a file is written.

        Raises RuleError and ConfigurationError.
        """
        self.contexts.load_team_rules()
        for source in sources:
            self.contexts.rules_of(source.path)

    def covers(self, name: str, rule: str) -> bool:
        """Return whether this run reports a rule for a file of the baseline, if the file still has such diagnostics.

        That includes files that are gone or excluded: they have none.
        """
        assert self.baseline is not None
        path = self.baseline.file_of(name)
        if not os.path.lexists(path) or (self.configurations is not None and self.configurations.excludes(path)):
            return True
        if not self._listed:
            self._listed = frozenset(map(os.path.abspath, self.discovery.names_listed))
        return os.path.abspath(path) in self._listed and self.contexts.selects(path, rule)

    def context(self, path: str) -> Context:
        """Return the releases, rules and ecosystems for a file."""
        return self.contexts.context(path)

    def rules(self, options: RunOptions) -> dict[str, Rule]:
        """Return all rules by id, those of the options' own folders included. Raises RuleError."""
        return self.contexts.rules(options)

    @property
    def known_rules(self) -> dict[str, Rule]:
        """All rules that were loaded for any file, by id."""
        return self.contexts.known_rules

    @property
    def unfollowed(self) -> Sequence[str]:
        """The roots of checkouts whose objects of code this run does not follow, since that takes a minute."""
        return self.contexts.unfollowed

    @property
    def resolutions(self) -> list[Resolution]:
        """The releases of the files so far, each with its origin."""
        return self.contexts.resolutions


def _checked(checker: FileChecker, item: Input) -> FileResult | InputError:
    """Return a checked file; a failure in one must not hide what the others have."""
    from cgmigrate.text.failures import internal_error

    match item:
        case InputError():
            return item
        case TooLarge():
            return checker.check_too_large(item)
    try:
        return checker.check(item)
    except Exception as error:
        if _ends_run(error):
            raise
        return InputError(item.path, internal_error(error), missing=True)


def _ends_run(error: Exception) -> bool:
    """Return whether an error is in a rule or configuration of the user, which concerns the run as a whole."""
    from cgmigrate.megatron.rule_data import RuleError
    from cgmigrate.project.configuration import ConfigurationError

    return isinstance(error, (ConfigurationError, RuleError))

"""A baseline: the number of known diagnostics of each rule in each file, so that only new ones are reported.

Counts, not line numbers: these change with every edit above. Where a file has more diagnostics of a rule than the
baseline, which of them are new is not known, so all are shown.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cgmigrate.text.files import MAX_GENERATED, read_text

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import Diagnostic

VERSION = 1

Counts = dict[str, dict[str, int]]
"""File, relative to the baseline's folder and with slashes → code → number of diagnostics."""


class BaselineError(ValueError):
    """A baseline that cannot be used or written; the message says which, why, and what to do."""


@dataclass(slots=True)
class Baseline:
    """The counts of known diagnostics, and those of the current run."""

    path: str
    known: Counts
    current: Counts = field(default_factory=dict)

    @property
    def _folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))

    def name_of(self, path: str) -> str:
        """Return the name of a file in the baseline."""
        return os.path.relpath(os.path.abspath(path), self._folder).replace(os.sep, "/")

    def file_of(self, name: str) -> str:
        """Return the path of a file in the baseline, relative to the working directory."""
        return os.path.relpath(os.path.join(self._folder, name))

    def part(
        self, path: str, diagnostics: Iterable[Diagnostic]
    ) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
        """Return the diagnostics of a file to show, and the known ones; count them all for the current run."""
        diagnostics = tuple(diagnostics)
        name = self.name_of(path)
        now = self.current[name] = dict(Counter(diagnostic.rule for diagnostic in diagnostics))
        known = self.known.get(name, {})
        shown = tuple(
            _noted(diagnostic, known[diagnostic.rule], now[diagnostic.rule]) if diagnostic.rule in known else diagnostic
            for diagnostic in diagnostics
            if now[diagnostic.rule] > known.get(diagnostic.rule, 0)
        )
        return shown, tuple(f for f in diagnostics if now[f.rule] <= known.get(f.rule, 0))

    def fixed(self, covers: Callable[[str, str], bool]) -> Counts:
        """Return the counts of known diagnostics that are fixed, for the files and codes that the run ``covers``."""
        gone: Counts = {}
        for name, rules in self.known.items():
            now = self.current.get(name, {})
            fewer = {rule: count - now.get(rule, 0) for rule, count in rules.items() if count > now.get(rule, 0)}
            if fewer := {rule: count for rule, count in fewer.items() if covers(name, rule)}:
                gone[name] = fewer
        return gone

    def pruned(self, fixed: Counts) -> Counts:
        """Return the known counts without the fixed ones."""
        return _less_empty(
            {
                name: {rule: count - fixed.get(name, {}).get(rule, 0) for rule, count in rules.items()}
                for name, rules in self.known.items()
            }
        )

    def renewed(self, covers: Callable[[str, str], bool]) -> Counts:
        """Return the counts of the current run, and the known ones of files and codes that the run does not cover."""
        names = {*self.known, *self.current}
        result: Counts = {}
        for name in names:
            kept = {r: n for r, n in self.known.get(name, {}).items() if not covers(name, r)}
            result[name] = kept | self.current.get(name, {})
        return _less_empty(result)


def _noted(diagnostic: Diagnostic, known: int, now: int) -> Diagnostic:
    note = f"the baseline knows {known} of the {now} {diagnostic.rule} in this file; which are new is not known"
    return replace(diagnostic, notes=(*diagnostic.notes, note))


def _less_empty(counts: Counts) -> Counts:
    left = {name: {rule: count for rule, count in rules.items() if count > 0} for name, rules in counts.items()}
    return {name: rules for name, rules in left.items() if rules}


def total(counts: Counts) -> int:
    """Return the number of diagnostics."""
    return sum(sum(rules.values()) for rules in counts.values())


def load(path: str, missing_is_empty: bool = False) -> Baseline:
    """Read a baseline. Raises BaselineError."""
    try:
        data = json.loads(read_text(path, MAX_GENERATED))
    except FileNotFoundError as error:
        if missing_is_empty:
            return Baseline(path, {})
        raise BaselineError(f"{path}: there is no such baseline; --write-baseline makes it") from error
    except OSError as error:
        raise BaselineError(f"{path}: the baseline cannot be read: {error.strerror or error}") from error
    except (RecursionError, MemoryError) as error:
        raise BaselineError(f"{path}: the baseline is nested too deeply to be read") from error
    except ValueError as error:
        # Typical after a merge of two branches that both fix something.
        hint = "after a merge conflict, take either side and run with --prune-baseline"
        raise BaselineError(f"{path}: the baseline is not valid JSON ({error}); {hint}") from error
    if not isinstance(data, Mapping) or data.get("version") != VERSION:
        raise BaselineError(f"{path}: not a baseline of version {VERSION}; --write-baseline makes one")
    return Baseline(path, _counts(data.get("findings"), path))


def _counts(data: Any, path: str) -> Counts:
    fine = isinstance(data, dict) and all(
        isinstance(rules, dict) and all(type(count) is int and count > 0 for count in rules.values())
        for rules in data.values()
    )
    if not fine:
        raise BaselineError(f"{path}: `diagnostics` is not a table of files, each with codes and numbers above 0")
    return {str(name): dict(rules) for name, rules in data.items()}


def save(path: str, counts: Counts) -> None:
    """Write a baseline, sorted, whole or not at all. Raises BaselineError."""
    from cgmigrate.project.output_files import write_file

    text = json.dumps({"version": VERSION, "findings": counts}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise BaselineError(f"{path}: the baseline cannot be written: {error.strerror or error}") from error

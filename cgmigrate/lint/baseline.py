"""A baseline: the known diagnostics of each file, so that only new ones are reported.

A diagnostic is known by its rule and its place (see ``cgmigrate.lint.identity``), not by a line number, which changes
with every edit above.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cgmigrate.text.files import MAX_GENERATED, read_text

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import LintDiagnostic

VERSION = 2

Places = tuple[str, ...]
Known = dict[str, dict[str, Places]]
"""File, relative to the baseline's folder and with slashes → code → places of the diagnostics."""

Counts = dict[str, dict[str, int]]
"""File → code → number of diagnostics."""


class BaselineError(ValueError):
    """A baseline that cannot be used or written; the message says which, why, and what to do."""


@dataclass(slots=True)
class Baseline:
    """The known diagnostics, and those of the current run."""

    path: str
    known: Known
    current: Known = field(default_factory=dict)

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
        self, path: str, diagnostics: Iterable[LintDiagnostic]
    ) -> tuple[tuple[LintDiagnostic, ...], tuple[LintDiagnostic, ...]]:
        """Return the diagnostics of a file to show, and the known ones; keep them all for the current run."""
        diagnostics = tuple(diagnostics)
        name = self.name_of(path)
        now = self.current[name] = _by_rule(diagnostics)
        rules = self.known.get(name, {})
        known = {rule: frozenset(rules.get(rule, ())) for rule in now}
        shown = tuple(one for one in diagnostics if one.place not in known[one.rule])
        return shown, tuple(one for one in diagnostics if one.place in known[one.rule])

    def fixed(self, covers: Callable[[str, str], bool]) -> Counts:
        """Return how many known diagnostics are fixed, for the files and codes that the run ``covers``."""
        gone: Counts = {}
        for name, rules in self.known.items():
            now = self.current.get(name, {})
            fewer = {rule: len({*known} - {*now.get(rule, ())}) for rule, known in rules.items()}
            if fewer := {rule: count for rule, count in fewer.items() if count and covers(name, rule)}:
                gone[name] = fewer
        return gone

    def pruned(self, covers: Callable[[str, str], bool]) -> Known:
        """Return the known diagnostics without the fixed ones of the files and codes that the run ``covers``."""
        result: Known = {}
        for name, rules in self.known.items():
            now = self.current.get(name, {})
            left = {rule: {*(now.get(rule, ()) if covers(name, rule) else known)} for rule, known in rules.items()}
            result[name] = {rule: tuple(one for one in known if one in left[rule]) for rule, known in rules.items()}
        return _less_empty(result)

    def renewed(self, covers: Callable[[str, str], bool]) -> Known:
        """Return those of the current run, and the known ones of files and codes that the run does not cover."""
        result: Known = {}
        for name in {*self.known, *self.current}:
            kept = {rule: known for rule, known in self.known.get(name, {}).items() if not covers(name, rule)}
            result[name] = {**kept, **self.current.get(name, {})}
        return _less_empty(result)


def _by_rule(diagnostics: Iterable[LintDiagnostic]) -> dict[str, Places]:
    places: dict[str, list[str]] = {}
    for diagnostic in diagnostics:
        places.setdefault(diagnostic.rule, []).append(diagnostic.place)
    return {rule: tuple(of_rule) for rule, of_rule in places.items()}


def _less_empty(known: Known) -> Known:
    left = {name: {rule: places for rule, places in rules.items() if places} for name, rules in known.items()}
    return {name: rules for name, rules in left.items() if rules}


def total(known: Mapping[str, Mapping[str, Places | int]]) -> int:
    """Return the number of diagnostics, given as places or counted."""
    return sum(n if isinstance(n, int) else len(n) for rules in known.values() for n in rules.values())


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
    return Baseline(path, _known(data.get("diagnostics"), path))


def _known(data: Any, path: str) -> Known:
    tables = isinstance(data, dict) and all(isinstance(rules, dict) for rules in data.values())
    if not tables or not all(_is_known(known) for rules in data.values() for known in rules.values()):
        raise BaselineError(f"{path}: `diagnostics` is not a table of files, each with codes and their places")
    return {name: {rule: tuple(known) for rule, known in rules.items()} for name, rules in data.items()}


def _is_known(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(place, str) for place in value)


def save(path: str, known: Known) -> None:
    """Write a baseline, sorted, whole or not at all. Raises BaselineError."""
    from cgmigrate.project.output_files import write_file

    # Sorted places: a file whose settings are in another order has the same baseline.
    data = {name: {rule: sorted(at) for rule, at in rules.items()} for name, rules in known.items()}
    document = {"version": VERSION, "diagnostics": data}
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise BaselineError(f"{path}: the baseline cannot be written: {error.strerror or error}") from error

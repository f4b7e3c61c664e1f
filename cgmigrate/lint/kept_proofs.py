"""What flow proves for the code of a checkout, kept for the next command: `check`, `fix --diff` and `fix` share it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.project.kept import digest_of, exists, load, store
from cgmigrate.project.options import RunOptions

if TYPE_CHECKING:
    from cgmigrate.project.file_search import FileSearch
    from cgmigrate.proof.flow.run import Line, Name

_KIND = "objects"
_LEAST_SECONDS = 1.0
"""What takes less time is not kept."""


@dataclass(frozen=True, slots=True)
class Proved:
    """Changes that are proved, in groups of which each is proved only as a whole, and why others are not."""

    components: Sequence[frozenset[Name]]
    failed: Mapping[Name, str]
    forms: Mapping[Name, int]
    """The form in which a change is proved, if it is not the first one."""
    accounted: frozenset[Line]
    """The lines of the project's code whose use of settings is known."""
    makers: Mapping[Name, frozenset[str]]
    """The functions and modules through which other code gets the object of a change."""

    def as_json(self) -> object:
        """Return the record of it."""
        return {
            "components": [sorted(one) for one in self.components],
            "failed": [*self.failed.items()],
            "forms": [*self.forms.items()],
            "accounted": {path: sorted(numbers) for path, numbers in _by_path(self.accounted).items()},
            "makers": [(name, sorted(words)) for name, words in self.makers.items()],
        }

    @classmethod
    def of_json(cls, record: object) -> Proved:
        """Return what a record holds. Raises ValueError, TypeError and KeyError if it is none."""
        if not isinstance(record, dict):
            raise TypeError("not a record of proofs")
        return cls(
            [frozenset(map(_name, one)) for one in record["components"]],
            {_name(name): str(reason) for name, reason in record["failed"]},
            {_name(name): int(form) for name, form in record["forms"]},
            frozenset(_name((path, line)) for path, numbers in record["accounted"].items() for line in numbers),
            {_name(name): frozenset(map(str, words)) for name, words in record["makers"]},
        )


def _by_path(lines: Iterable[Line]) -> dict[str, set[int]]:
    numbers: dict[str, set[int]] = {}
    for path, number in lines:
        numbers.setdefault(path, set()).add(number)
    return numbers


def _name(pair: tuple[object, object]) -> Name:
    path, number = pair
    if not (isinstance(path, str) and isinstance(number, int)):
        raise TypeError("not the name of a change")
    return path, number


def key_of(search: FileSearch, options: Iterable[RunOptions], words: Iterable[object]) -> str:
    """Return what the proofs of a checkout depend on: its files, the options of those with settings, and words."""
    every = {_without_output(one) for one in options}
    rules = [
        os.path.join(at, name)
        for one in every
        for folder in one.rule_folders
        for at, _, names in os.walk(folder)
        for name in names
    ]
    files = [*search.listed(), *search.ignored(), *map(os.path.abspath, rules)]
    return digest_of(search.top, files, [os.getcwd(), *sorted(map(repr, every)), *map(str, words)])


def _without_output(options: RunOptions) -> RunOptions:
    """Return options without those that say what is written, and how it is shown."""
    plain = RunOptions()
    names = (
        "group",
        "unsafe",
        "rewrite",
        "edits",
        "follow",
        "details",
        "stdin",
        "baseline",
        "add_ignore",
        "reason",
        "docs",
    )
    return replace(options, **{name: getattr(plain, name) for name in names})


def is_kept(key: str) -> bool:
    """Return whether an earlier command proved this."""
    return exists(_KIND, key)


def kept(key: str, prove: Callable[[], Proved]) -> Proved:
    """Return the proofs of a key: those of an earlier command, or new ones, which are kept."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        return Proved.of_json(load(_KIND, key))
    start = time.monotonic()
    proved = prove()
    if time.monotonic() - start > _LEAST_SECONDS:
        store(_KIND, key, proved.as_json())
    return proved

"""What a run was observed to build, reach and report, and where two runs differ."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.proof.flow.world import World
from cgmigrate.proof.run.command import Ended

Line = tuple[str, int]
"""A line of a file, by its path in the tree; line 0 stands for a file of data."""
_Identity = tuple[str, str, str]
"""The place and class of a configuration, and its settings in a text that is the same for equal ones."""
STATUS = "the exit status"
_PASSED = ("call passed", "passed")
_SECRET = re.compile(r"(?i)key|token|secret|passw")


@dataclass(frozen=True, slots=True)
class Built:
    """A configuration: its class, the function that made it, and its settings before and after validation."""

    name: str
    place: str
    settings: Mapping[str, object]
    fields: Mapping[str, Any]
    error: str | None
    """Why the release refuses it, empty if it does not; None for what it does not validate."""


@dataclass(slots=True)
class Observations:
    """What the processes of one run wrote down. Of a command without pytest, all belongs to a test without a name."""

    ended: Ended
    built: dict[str, list[Built]] = field(default_factory=lambda: defaultdict(list))
    outcomes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    reached: dict[str, set[Line]] = field(default_factory=lambda: defaultdict(set))
    releases: set[tuple[str, int]] = field(default_factory=set)
    """The files of the installed release that it imported, each with its time."""
    processes: int = 0

    @classmethod
    def read(cls, folder: str, ended: Ended) -> Observations:
        """Read the files of all processes; a line that a killed process did not finish is skipped."""
        own = cls(ended)
        own.outcomes[STATUS].add(str(ended.status))
        for name in sorted(os.listdir(folder)):
            values: dict[int, Any] = {}
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                for line in file:
                    try:
                        own._add(json.loads(line), values)
                    except (ValueError, KeyError, TypeError):
                        continue
        return own

    def _add(self, row: Mapping[str, Any], values: dict[int, Any]) -> None:
        match row["kind"]:
            case "process":
                self.processes += 1
            case "release":
                self.releases.add((row["file"], row["time"]))
            case "values":
                values[row["number"]] = row["values"]
            case "config":
                fields = values[row["number"]]
                one = Built(row["name"], row["place"], row["settings"] or {}, dict(fields), row["error"])
                self.built[row["test"]].append(one)
            case "outcome":
                self.outcomes[row["name"]].add(row["outcome"])
            case "reached":
                self.reached[row["test"]].update((path, line) for path, line in row["lines"])

    @property
    def tests(self) -> int:
        """The number of tests with an outcome."""
        return len(self.outcomes) - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares runs of two texts. ``deprecated`` are the old names of the ``settings`` that decide what is captured.

    ``volatile`` is what two runs of one text differ in.
    """

    settings: Set[str]
    deprecated: Set[str]
    source: Release
    target: Release
    volatile: Set[tuple[str, str]] = frozenset()

    def with_noise(self, one: Observations, other: Observations) -> tuple[Comparison, list[str]]:
        """Return a comparison without what differs in two runs of one text, and the tests that differ nevertheless."""
        volatile = set[tuple[str, str]]()
        for test, every in one.built.items():
            for before, after in zip(every, other.built.get(test, ()), strict=False):
                keys = {key for key in before.fields if before.fields[key] != after.fields.get(key)}
                volatile |= {(before.name, key) for key in keys - self.settings}
        own = replace(self, volatile=volatile)
        differing = (own.built_otherwise(one, other), outcomes_otherwise(one, other), outcomes_otherwise(other, one))
        return own, sorted({test for each in differing for test, _ in each})

    def built_otherwise(
        self, before: Observations, after: Observations, *, of_source: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Yield the tests in which configurations differ; ``of_source``: the first run is of the old release.

        What the old text captures under its own release is no difference if the new text captures it under its own.
        """
        for test in {**before.built, **after.built}:
            lost, gained = before.built.get(test, []), after.built.get(test, [])
            old, new = (Counter(self._validated(one, self.target) for one in every) for every in (lost, gained))
            if not of_source:
                if old == new:
                    continue
                lost = [one for one in lost if self._validated(one, self.target) not in new]
                gained = [one for one in gained if self._validated(one, self.target) not in old]
            was = Counter(self._by_release(one, self.source, with_fields=not of_source) for one in lost)
            now = Counter(self._by_release(one, self.target, with_fields=not of_source) for one in gained)
            if was != now or not lost:
                first, second = (was, now) if of_source else (old, new)
                yield test, _described(test, next(iter(first - second), None), next(iter(second - first), None))

    def _by_release(self, one: Built, release: Release, *, with_fields: bool) -> _Identity:
        """Return what a configuration captures by its settings as code set them, with its other fields."""
        # An object of the new release has all fields; the old one does not know those that nothing has set.
        known = World(release, Reader.CONFIG).defaults
        own = {name: part for name, part in one.settings.items() if name in known or part not in (None, [], "full")}
        fields = self._validated(one, release, with_own=False)[2] if with_fields else ""
        return one.place, one.name, json.dumps({"captures": self._captures(own, release), "fields": fields})

    def _validated(self, one: Built, release: Release, *, with_own: bool = True) -> _Identity:
        """Return a configuration as the release validated it; ``with_own`` includes what it captures itself."""
        dropped = self.deprecated if one.error == "" else frozenset[str]()
        dropped = dropped if with_own or not one.settings else self.settings
        fields = {key: part for key, part in one.fields.items() if (one.name, key) not in self.volatile}
        fields = {key: part for key, part in fields.items() if key not in dropped}
        error = (one.error or "").partition(":")[0]
        settled = self._settled(fields, self.target if one.error == "" else release)
        return one.place, one.name, json.dumps({"fields": settled, "error": error}, sort_keys=True)

    def _settled(self, value: object, release: Release) -> object:
        """Return a value in which settings, at any depth, are what they capture."""
        if isinstance(value, list):
            return [self._settled(part, release) for part in value]
        if not isinstance(value, dict):
            return value
        own = {name: part for name, part in value.items() if name in self.settings and part is not None}
        rest = {name: self._settled(part, release) for name, part in value.items() if name not in self.settings}
        return {**rest, "captures": self._captures(own, release)} if own else rest

    def _captures(self, settings: Mapping[str, object], release: Release) -> str:
        captured = capture_of(settings, release, Reader.CONFIG)
        return f"nothing: {captured.reason}" if isinstance(captured, Rejected) else str(captured)


def outcomes_otherwise(before: Observations, after: Observations) -> Iterator[tuple[str, str]]:
    """Yield the tests that end otherwise, each with how; one that failed before and passes now is no loss."""
    for name in sorted({**before.outcomes, **after.outcomes}, key=lambda name: name == STATUS):
        one, other = (", ".join(sorted(run.outcomes.get(name, ()))) or "nothing" for run in (before, after))
        if one != other and not ("failed" in one and other in _PASSED) and not (name == STATUS and other == "0"):
            yield name, f"{name}: {other} instead of {one}"


def _described(test: str, old: _Identity | None, new: _Identity | None) -> str:
    """Return how a configuration of a test differs, in words."""
    known = old or new
    assert known is not None
    where = " ".join(filter(None, [known[1], known[0] and f"of {known[0]}", test and f"in {test}"]))
    if old is None or new is None or old[:2] != new[:2]:
        return f"{where} is {'no longer' if new is None else 'now'} built or has other settings"
    one, other = (_flat(json.loads(text)) for text in (old[2], new[2]))
    name = next((name for name in {**one, **other} if one.get(name) != other.get(name)), "")
    shown = name.removeprefix("fields.")
    if _SECRET.search(shown):
        return f"{where}: {shown} differs"
    return f"{where}: {shown} is {other.get(name, 'not set')} instead of {one.get(name, 'not set')}"


def _flat(value: object, name: str = "") -> dict[str, object]:
    """Return the values in nested dicts, and in dicts in lists, by their paths."""
    if isinstance(value, dict):
        pairs = [(f"{name}.{key}".strip("."), part) for key, part in value.items()]
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        pairs = [(name, part) for part in value]
    else:
        return {name: value}
    return {key: one for path, part in pairs for key, one in _flat(part, path).items()}

"""Which fixes some runs of a command prove: nothing differs with them, and the command would show if they were wrong.

That a place is executed does not mean that anything depends on it. A place counts as reached if the command reaches
it, and builds a configuration that captures something else when this place gets other settings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cgmigrate.proof.run.observations import STATUS, Comparison, Line, Observations, outcomes_otherwise
from cgmigrate.text.plurals import counted

Texts = Mapping[str, bytes]
"""The contents of files that differ from the user's tree, by their paths in it."""
_SIGNALS = 128
"""Exit statuses above it are signals that ended a command."""


class CannotProveError(Exception):
    """The runs show nothing; the message says why."""


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """A place that a fix changes: the lines of its statement, or line 0 of a file of data."""

    number: int
    lines: frozenset[Line]


@dataclass(frozen=True, slots=True)
class ProposedFix:
    """A fix as it is judged: its id, its first place in words, and all its places."""

    id: str
    title: str
    is_safe: bool
    places: tuple[ChangedPlace, ...]
    open: frozenset[Line] = frozenset()
    """Lines of other code that also uses what it changes: they have to be reached as well."""


class Proposals(Protocol):
    """The fixes of a plan, and texts with some of them."""

    @property
    def every(self) -> Sequence[ProposedFix]:
        """All fixes."""

    def texts(self, ids: Collection[str]) -> Texts:
        """Return the files that some fixes change, with these fixes."""

    def others(self, places: Collection[int], ids: Collection[str]) -> Texts:
        """Return the files with some fixes in which some places capture something else; without those that cannot."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What the runs show of one fix: it is proved, or something differs with it."""

    is_proved: bool
    text: str


@dataclass(slots=True)
class Judge:
    """Judges fixes by runs of a command, at most ``most_runs``."""

    proposals: Proposals
    run: Callable[[Texts, str], Observations]
    """Runs the command with other contents of some files; the text says what for."""
    comparison: Comparison
    run_source: Callable[[], Observations] | None = None
    """Runs the command of the old release."""
    most_runs: int = 40
    runs: int = 0
    flaky: list[str] = field(default_factory=list)
    unsettled: int = 0
    """Places that more runs could have judged."""
    _before: Observations | None = None
    _after: Observations | None = None
    """The last run with fixes."""
    _source: Observations | None = None

    @property
    def before(self) -> Observations:
        """What the old text does."""
        assert self._before is not None
        return self._before

    def verdicts(self) -> dict[str, RunVerdict]:
        """Return what is known of fixes after the runs. Raises CannotProveError."""
        self._observe()
        made = [one.id for one in self.proposals.every]
        withheld: dict[str, RunVerdict] = {}
        while differing := self._differing(made, "with all fixes" if not withheld else "without what differed"):
            near = self._near(made, differing)
            now = self._differing(near, _with(near)) if 0 < len(near) < len(made) else {}
            causes = self._causes(near, now) if now else self._causes(made, differing)
            withheld |= {name: RunVerdict(False, how) for name, how in causes.items()}
            made = [one for one in made if one not in withheld]
        return {**withheld, **self._proved(made)}

    def _observe(self) -> None:
        """Run the old text twice: what differs then differs by itself. Raises CannotProveError."""
        self._before = self._run({}, "as it is")
        ended = self.before.ended
        if ended.stopped or ended.status < 0 or ended.status > _SIGNALS:
            raise CannotProveError(
                f"the command was stopped: {ended.stopped or f'it ended with status {ended.status}'}"
            )
        if not self.before.processes:
            raise CannotProveError("the observer was not loaded: no Python process of the command read its environment")
        if not (self.before.built or self.before.tests or self.before.reached):
            raise CannotProveError(
                f"the command ends with status {ended.status}, builds no configuration of Megatron and runs no test"
            )
        self.comparison, self.flaky = self.comparison.with_noise(self.before, self._run({}, "as it is, again"))
        if self.run_source is not None:
            self.runs += 1
            self._source = self.run_source()

    def _run(self, texts: Texts, what: str) -> Observations:
        self.runs += 1
        return self.run(texts, what)

    def _differing(self, ids: Collection[str], what: str) -> dict[str, str]:
        """Return the tests in which the text with some fixes differs from the old one, each with how."""
        if not ids:
            return {}
        self._after = self._run(self.proposals.texts(ids), what)
        return self._compared(self._after, ids)

    def _compared(self, after: Observations, ids: Collection[str]) -> dict[str, str]:
        """Return the tests in which a run differs; of the old release only those that meet no place without its fix."""
        base, old, of_source = self._source or self.before, set[str](), self._source is not None
        if of_source and (left := [one for one in self.proposals.every if one.id not in ids]):
            old = {STATUS, *(test for one in left for place in one.places for test in self._tests_of(place))}
        differing = dict(self.comparison.built_otherwise(base, after, of_source=of_source))
        differing |= dict(outcomes_otherwise(base, after))
        return {test: how for test, how in differing.items() if test not in old and test not in self.flaky}

    def _near(self, made: Sequence[str], differing: Mapping[str, str]) -> list[str]:
        """Return the fixes with places that tests reach which differ."""
        lines = {line for test in differing for line in self.before.reached.get(test, ())}
        every = [one for one in self.proposals.every if one.id in made]
        return [one.id for one in every if any(not place.lines.isdisjoint(lines) for place in one.places)]

    def _causes(self, ids: Sequence[str], differing: Mapping[str, str]) -> dict[str, str]:
        """Return the fixes that make a difference, each with how; all of them where halves of them make none alone."""
        causes: dict[str, str] = {}
        if len(ids) > 1 and self.runs < self.most_runs // 2:
            for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
                if now := self._differing(half, _with(half)):
                    causes |= self._causes(half, now)
        return causes or dict.fromkeys(ids, next(iter(differing.values())))

    def _proved(self, made: Collection[str]) -> dict[str, RunVerdict]:
        """Return the verdicts of fixes with which nothing differs."""
        lines = {line for every in self.before.reached.values() for line in every}
        unsafe = [one for one in self.proposals.every if one.id in made and not one.is_safe and one.open <= lines]
        tests = {place: self._tests_of(place) for one in unsafe for place in one.places}
        reached = [one for one in unsafe if all(tests[place] for place in one.places)]
        seen = self._seen({place: tests[place] for one in reached for place in one.places}, made)
        proved = [one for one in reached if seen.issuperset(one.places)]
        written = [one.id for one in self.proposals.every if one.id in made and (one.is_safe or one in proved)]
        if proved and len(written) < len(made) and self._differing(written, "as it will be written"):
            # They are right only with fixes that are not written.
            return {}
        return {one.id: RunVerdict(True, self._counted({t for p in one.places for t in tests[p]})) for one in proved}

    def _tests_of(self, place: ChangedPlace) -> frozenset[str]:
        return frozenset(test for test, lines in self.before.reached.items() if not place.lines.isdisjoint(lines))

    def _seen(self, tests: Mapping[ChangedPlace, frozenset[str]], made: Collection[str]) -> set[ChangedPlace]:
        """Return the places on whose settings a configuration depends: that a test ends otherwise shows too little."""
        seen, left = set[ChangedPlace](), list(tests)
        # What was run last is the text with these fixes.
        after = self._after
        if len(_apart(left, tests)) < len(left):
            # With other settings at all places, most of those on which nothing depends are known at once.
            changed = self._with_others(left, made, after)
            left = [one for one in left if tests[one] & changed]
        while left and self.runs < self.most_runs:
            together = _apart(left, tests)
            changed = self._with_others(together, made, after)
            seen |= {one for one in together if tests[one] & changed}
            left = [one for one in left if one not in together]
        self.unsettled = len(left)
        return seen

    def _with_others(
        self, places: Sequence[ChangedPlace], made: Collection[str], after: Observations | None
    ) -> set[str]:
        """Return the tests in which a configuration differs if some places have other settings, beside all fixes."""
        assert after is not None
        texts = self.proposals.others([one.number for one in places], made)
        changed = self._run(texts, f"with other settings at {counted(len(places), 'place')}")
        return {test for test, _ in self.comparison.built_otherwise(after, changed)} - {*self.flaky}

    def _counted(self, tests: Collection[str]) -> str:
        built = sum(len(self.before.built.get(test, ())) for test in (tests if tests != {""} else self.before.built))
        named = len([one for one in tests if one]) or self.before.tests
        return f"{counted(built, 'configuration')}, {counted(named, 'test')}"


def _with(ids: Sequence[str]) -> str:
    return f"with {counted(len(ids), 'fix', 'fixes')}"


def _apart(places: Sequence[ChangedPlace], tests: Mapping[ChangedPlace, frozenset[str]]) -> list[ChangedPlace]:
    """Return places that no test has in common, so that one run is enough for all of them."""
    result: list[ChangedPlace] = []
    taken = set[str]()
    for place in places:
        if not result or ("" not in taken | tests[place] and taken.isdisjoint(tests[place])):
            result.append(place)
            taken |= tests[place]
    return result

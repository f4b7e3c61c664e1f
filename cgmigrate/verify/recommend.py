"""``recommend``: which modules a model may capture, and what each choice costs and gains, by running it with them.

What runs is a job, or the proxy of a configuration. It says what its model has: the classes that its eager form calls.
A choice that megatron-core refuses is shown with its reason. Kernels outside of graphs and the memory of graphs repeat
exactly; times are those of this machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median

from cgmigrate.lint.job_messages import findings_in
from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import NEWEST, SPLIT_IN
from cgmigrate.megatron.settings import IMPL, MODULES
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.text.plurals import counted
from cgmigrate.verify.arms import DONE, EAGER, EAGER_AGAIN, TRAINING, Arm, ArmResult, Rank
from cgmigrate.verify.job import STEPS, JobForm, JobSession
from cgmigrate.verify.mcore import Home, not_available
from cgmigrate.verify.measures import kernels_outside, why_not_compared
from cgmigrate.verify.metrics import modules_of
from cgmigrate.verify.plan import PlanError, VerifySelection, cases_of, proxy_for
from cgmigrate.verify.run import Runner

_EXPERTS = "moe"
"""The module of whole layers of experts, which cannot be captured together with parts of them."""
_NO_GAIN = "its kernels outside of graphs take the host less time than the GPU is busy: no gain is left"


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings with which the job ran: kernels outside of graphs and of all, bytes, and seconds of a step.

    ``refused`` says why megatron-core does not accept them, with the rule that explains it; all figures are 0 then.
    """

    settings: Mapping[str, object]
    refused: str = ""
    outside: int = 0
    kernels: int = 0
    pool_bytes: int = 0
    reserved_bytes: int = 0
    step: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The shortest, the median and the longest."""
    is_as_eager: bool = False
    """Whether losses and parameters are those of eager, to the last bit."""

    @property
    def words(self) -> str:
        """The settings as YAML in one line."""
        modules = _modules(self.settings)
        own = f", {MODULES}: [{', '.join(map(str, modules))}]" if modules else ""
        return f"{IMPL}: {self.settings[IMPL]}{own}"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The choices, those first that leave the fewest kernels outside of graphs; then those that are refused."""

    choices: tuple[Choice, ...]
    failure: str = ""
    """Why the job itself did not run."""
    best: Choice | None = None
    why: str = ""
    not_compared: str = ""
    """Why the times of the choices say nothing about their order: those of two eager runs differ."""


Runs = Callable[[Iterable[Mapping[str, object]]], Iterable[ArmResult]]
"""Runs a model with each of some settings, none for eager, which may run twice; returns each result."""


def runs_of_job(session: JobSession) -> Runs:
    """Return what runs a job with settings."""

    eager = iter((EAGER, EAGER_AGAIN))

    def run(every: Iterable[Mapping[str, object]]) -> Iterator[ArmResult]:
        for settings in every:
            names = [str(settings[IMPL]), *map(str, _modules(settings))] if settings else [next(eager)]
            form = JobForm("-".join(names), shlex.join(session.options.command), Path.cwd(), settings=settings or None)
            yield session.result(form, 0)

    return run


def runs_of_proxy(runner: Runner, arm: Arm) -> Runs:
    """Return what runs a proxy with settings."""

    eager = count()

    def run(every: Iterable[Mapping[str, object]]) -> list[ArmResult]:
        arms = [replace(arm, settings=one, repeat=0 if one else next(eager)) for one in every]
        results = runner.run(arms)
        return [results[one.key] for one in arms]

    return run


def arm_of_file(path: str, homes: Mapping[str, Home], measure: int) -> Arm:
    """Return the eager arm of the proxy of a configuration (FILE or FILE:LINE). Raises PlanError."""
    errors: list[str] = []
    cases = list(cases_of(VerifySelection((path,), every=True), errors, errors))
    models = {repr(sorted(case.fields.items(), key=str)): case for case in cases}
    if not models:
        none = f"{path} has no setting of graphs, which would show the model (`{IMPL}: none` is one)"
        raise PlanError(errors[0] if errors else none)
    if len(models) > 1:
        places = ", ".join(case.name for case in models.values())
        raise PlanError(f"{path} configures {counted(len(models), 'model')}: name one of {places}")
    newest = max(homes.values(), key=lambda home: home.release, default=None)
    if newest is None or newest.release < SPLIT_IN:
        raise PlanError(not_available(NEWEST))
    (case,) = models.values()
    return Arm(newest.version, TRAINING, {}, proxy_for(case, case.fields), STEPS, measure=measure)


def recommend(run: Runs, rules: Mapping[str, Rule], *, is_proxy: bool = False) -> Recommendation:
    """Run a model without graphs and with each choice that it allows."""
    (eager,) = run([{}])
    if eager.outcome != DONE or not eager.ranks:
        return Recommendation((), eager.failure or "it wrote no result")
    first = eager.ranks[0]
    choices = list(choices_of(modules_of(first)))
    # Eager runs again after all others: where its times have moved, those of the choices have, too.
    *results, again = run([*choices, {}])
    tried = [_choice(one, result, first, rules) for one, result in zip(choices, results, strict=True)]
    ran = sorted((one for one in tried if not one.refused), key=lambda one: (one.outside, one.pool_bytes))
    # How long the GPU of a small model is busy says nothing of a large one.
    best, why = _best(ran, replace(first, timed=()) if is_proxy else first)
    not_compared = why_not_compared(first, again.ranks[0] if again.ranks else None) if first.timed else ""
    return Recommendation((*ran, *(one for one in tried if one.refused)), "", best, why, not_compared)


def choices_of(modules: Sequence[str]) -> Iterator[Mapping[str, object]]:
    """Yield the choices for a model with some modules: each by itself, then more and more of them, then all code.

    What megatron-core refuses whatever the model is (`moe` with `moe_router`) is no choice.
    """
    wider = [one for one in modules if one != _EXPERTS]
    sets = [*((one,) for one in modules), *(tuple(wider[:count]) for count in range(2, len(wider) + 1))]
    if _EXPERTS in modules:
        sets.append((*(one for one in modules if not one.startswith("moe_") and one != _EXPERTS), _EXPERTS))
    for names in dict.fromkeys(sets):
        if _is_accepted(names):
            yield {IMPL: "transformer_engine", MODULES: list(names)}
    yield {IMPL: "local", MODULES: []}
    yield {IMPL: "full_iteration", MODULES: []}


def _is_accepted(modules: Sequence[str]) -> bool:
    settings = {IMPL: "transformer_engine", MODULES: list(modules)}
    return not isinstance(capture_of(settings, NEWEST, Reader.CONFIG), Rejected)


def _modules(settings: Mapping[str, object]) -> Sequence[object]:
    modules = settings.get(MODULES)
    return modules if isinstance(modules, list) else ()


def _choice(settings: Mapping[str, object], result: ArmResult, eager: Rank, rules: Mapping[str, Rule]) -> Choice:
    if result.outcome != DONE or not result.ranks:
        return Choice(settings, _refusal(result.failure, rules))
    rank = result.ranks[0]
    if not rank.graphs:
        return Choice(settings, "no graph was captured")
    times = rank.timed or (0.0,)
    return Choice(
        settings,
        outside=kernels_outside(rank),
        kernels=rank.launched,
        pool_bytes=rank.pool_bytes,
        reserved_bytes=rank.reserved_bytes - eager.reserved_bytes,
        step=(min(times), median(times), max(times)),
        is_as_eager=(rank.losses, rank.parameters) == (eager.losses, eager.parameters),
    )


def _refusal(failure: str, rules: Mapping[str, Rule]) -> str:
    """Return why a choice does not run: the rule and setting that explain the error, or the error with its cause.

    Only the error that ended the run is explained: a log also has warnings, and errors that follow from the first.
    """
    known = [one.explanation for one in findings_in("", [failure], rules)]
    explained = ", ".join(f"{one.code} {one.cause} (`{one.setting}`)".strip() for one in known)
    return explained if any(one.code for one in known) else ": ".join(filter(None, (explained, failure)))


def _best(ran: Sequence[Choice], eager: Rank) -> tuple[Choice | None, str]:
    """Return the choice to take, and why: the first without gain left, with least memory; else the widest."""
    right = [one for one in ran if one.is_as_eager] or list(ran)
    if not right:
        return None, "no choice runs"
    if eager.timed and eager.launched:
        host = (median(eager.timed) - eager.busy) / eager.launched
        if enough := [one for one in right if one.outside * host <= eager.busy]:
            return min(enough, key=lambda one: one.pool_bytes), _NO_GAIN
    return right[0], "it leaves the fewest kernels outside of graphs"

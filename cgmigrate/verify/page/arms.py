"""The rows of a comparison's arms: outcome, outputs in short, captures, time and memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from cgmigrate.text.plurals import counted
from cgmigrate.verify import metrics
from cgmigrate.verify.arms import DONE, Rank
from cgmigrate.verify.page.arm_views import NOTHING, ArmView, is_training, same_as_legacy, written


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell: its text, the letter that equal values share, the whole value where the text is short for it."""

    text: str
    letter: str = ""
    whole: str = ""
    detail: str = ""
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class ArmRow:
    """An arm. ``captures`` are the cells of what it put out and captured; ``same_as`` replaces them where it is set.

    ``failure`` is the line that says why it did not end well.
    """

    role: str
    name: str
    settings: tuple[tuple[str, str], ...]
    about: tuple[str, ...]
    release: str
    outcome: str
    is_done: bool
    failure: str
    same_as: str
    captures: tuple[Figure, ...]
    measures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class ArmTable:
    """All arms of a comparison: the heads of the columns, and a row an arm."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[ArmRow, ...]


def arm_table(arms: Sequence[ArmView], name: str) -> ArmTable:
    """All arms of the comparison ``name``."""
    if is_training(arms):
        outputs = {"loss, last step (nats)": _last_losses(arms), "parameters, digest": _parameters(arms)}
        unit, time = "step", "time of a step"
    else:
        outputs = {"tokens": _tokens(arms), "logits, digest": _logits(arms)}
        unit, time = "round", "time of a round"
    heads = ("arm", "megatron-core", "outcome", *outputs, "graphs", f"replays a {unit}", time, "peak memory")
    rows = tuple(_row(arm, arms, tuple(cells)) for arm, *cells in zip(arms, *outputs.values(), strict=True))
    return ArmTable(f"Arms of {name}", heads, rows)


def _row(arm: ArmView, arms: Sequence[ArmView], outputs: tuple[Figure, ...]) -> ArmRow:
    settings = arm.result.arm.settings if arm.result else {}
    outcome = arm.result.outcome if arm.result else "not run"
    return ArmRow(
        role=arm.role,
        name=metrics.role_name(arm.role),
        settings=tuple((name, written(value)) for name, value in settings.items()),
        about=tuple(_about(arm)),
        release=arm.release,
        outcome=outcome,
        is_done=outcome == DONE,
        failure=arm.result.failure if arm.result else "",
        same_as=same_as_legacy(arm, _done(arms), _all_shown) if arm.is_done else "",
        captures=(*outputs, _each(arm, lambda rank: len(rank.graphs)), _each(arm, metrics.replays_per_step)),
        measures=_measures(arm),
    )


def _done(arms: Iterable[ArmView]) -> list[ArmView]:
    return [arm for arm in arms if arm.is_done]


def _all_shown(arm: ArmView) -> Hashable:
    """What the cells show, to the last bit: two arms with the same values need be written once."""
    counts = tuple((len(rank.graphs), metrics.replays_per_step(rank)) for rank in arm.ranks)
    return tuple(metrics.compared(arm.run).items()), counts


def _about(arm: ArmView) -> Iterable[str]:
    if arm.result and arm.result.arm.processes > 1:
        yield f"{arm.result.arm.processes} processes"
    if arm.same_as:
        yield f"the same run as {arm.same_as}"


def _measures(arm: ArmView) -> tuple[Figure, Figure]:
    """Time and memory, which no two runs share."""
    if not arm.is_done:
        return Figure(NOTHING), Figure(NOTHING)
    times, reserved = metrics.step_times(arm.run), metrics.reserved_bytes(arm.run)
    return (
        Figure(NOTHING) if times is None else Figure(metrics.milliseconds(times.median), detail=metrics.spread(times)),
        Figure(
            metrics.memory(metrics.peak_bytes(arm.run)),
            detail=f"{metrics.memory(reserved)} reserved" if reserved else "",
        ),
    )


def _each(arm: ArmView, count: Callable[[Rank], int]) -> Figure:
    if not arm.is_done:
        return Figure(NOTHING)
    counts = [count(rank) for rank in arm.ranks]
    if len(set(counts)) > 1:
        return Figure(", ".join(map(str, counts)))
    return Figure(str(counts[0]) if len(counts) == 1 else f"{counts[0]} a process")


# --- outputs in short ----------------------------------------------------------------------------------------


def _last_losses(arms: Sequence[ArmView]) -> list[Figure]:
    ends = [metrics.losses(arm.run)[-1:] if arm.is_done else () for arm in arms]
    return [Figure(_loss(end[0]), whole=end[0].hex()) if end else Figure(NOTHING) for end in ends]


def _loss(value: float) -> str:
    return f"{value:.6f}" if abs(value) < 1e6 else f"{value:.6g}"


def _parameters(arms: Sequence[ArmView]) -> list[Figure]:
    return _digests(metrics.parameters_digest(arm.run) if arm.is_done else "" for arm in arms)


def _logits(arms: Sequence[ArmView]) -> list[Figure]:
    return _digests(metrics.logits_digest(arm.run) if arm.is_done else "" for arm in arms)


def _tokens(arms: Sequence[ArmView]) -> list[Figure]:
    generated = [metrics.tokens(arm.run) if arm.is_done else () for arm in arms]
    return [
        Figure(counted(sum(map(len, tokens)), "token"), letter) if letter else Figure(NOTHING)
        for tokens, letter in zip(generated, metrics.letters(generated), strict=True)
    ]


def _digests(digests: Iterable[str]) -> list[Figure]:
    """The digests in short, equal ones under the same letter."""
    known = list(digests)
    return [
        Figure(metrics.short(digest), letter, whole=digest, is_code=True) if letter else Figure(NOTHING)
        for digest, letter in zip(known, metrics.letters(known), strict=True)
    ]

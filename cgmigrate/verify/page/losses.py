"""Losses, and how far each arm's are from those of eager: two charts on the same steps, and the findings in words."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.text.plurals import counted
from cgmigrate.verify import metrics
from cgmigrate.verify.arms import EAGER, EAGER_SOURCE, LEGACY_SOURCE
from cgmigrate.verify.page.arm_views import ArmView, alike, listed, names_of
from cgmigrate.verify.page.charts import Curve, LineChart, difference_chart, loss_chart, shape_of


@dataclass(frozen=True, slots=True)
class Legend:
    """An arm's curve by its role, the shape of its marks and its name."""

    role: str
    shape: str
    name: str


@dataclass(frozen=True, slots=True)
class Losses:
    """Both charts, None where there is nothing to draw; ``measures`` says what each difference is taken from."""

    losses: LineChart | None
    differences: LineChart | None
    measures: str
    legend: tuple[Legend, ...]
    findings: tuple[str, ...]


def losses_of(arms: Sequence[ArmView], ident: str) -> Losses | None:
    """The losses of arms that are done; None where none measured any. ``ident`` begins the ids of the charts."""
    measured = [arm for arm in arms if metrics.losses(arm.run)]
    if not measured:
        return None
    words = _in_words(measured)
    curves = [Curve(arm.role, arm.name, metrics.losses(arm.run)) for arm in measured]
    pairs = _pairs(measured)
    differences = [Curve(arm.role, arm.name, _differences(arm, measure)) for arm, measure in pairs]
    return Losses(
        losses=loss_chart(curves, f"{ident}-losses", " ".join(words)),
        differences=difference_chart(differences, f"{ident}-differences", " ".join(map(_distance, pairs))),
        measures=_measures(pairs),
        legend=tuple(Legend(arm.role, shape_of(arm.role), arm.name) for arm in measured),
        findings=tuple(words),
    )


# --- the difference from eager -------------------------------------------------------------------------------

Pair = tuple[ArmView, ArmView]
"""An arm and the eager arm from which its difference is taken."""


def _pairs(arms: Sequence[ArmView]) -> list[Pair]:
    by_role = {arm.role: arm for arm in arms}
    pairs = ((arm, _measure_of(arm, by_role)) for arm in arms)
    return [(arm, measure) for arm, measure in pairs if measure is not None and measure is not arm]


def _measure_of(arm: ArmView, by_role: Mapping[str, ArmView]) -> ArmView | None:
    """The eager arm on the arm's own release; of eager arms, the one on the target."""
    own = by_role.get(EAGER_SOURCE) if arm.role == LEGACY_SOURCE else None
    return own or by_role.get(EAGER)


def _differences(arm: ArmView, measure: ArmView) -> tuple[float, ...]:
    pairs = zip(metrics.losses(arm.run), metrics.losses(measure.run), strict=False)
    return tuple(ours - theirs for ours, theirs in pairs)


def _distance(pair: Pair) -> str:
    arm, measure = pair
    gaps = [abs(gap) for gap in _differences(arm, measure)]
    if not all(map(math.isfinite, gaps)):
        return f"{arm.name}: not finite."
    return f"{arm.name}: {max(gaps):.2g} nats from {measure.name} at most." if any(gaps) else f"{arm.name}: 0."


def _measures(pairs: Sequence[Pair]) -> str:
    """What the differences are taken from, in a sentence; empty where there are none."""
    groups = list(_by_measure(pairs).items())
    if not groups:
        return ""
    (common, _), *others = sorted(groups, key=lambda group: -len(group[1]))
    if not others:
        return f"Each arm minus {common}."
    apart = "; ".join(f"{listed(names)} minus {measure}" for measure, names in others)
    return f"{apart}; all other arms minus {common}."


def _by_measure(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for arm, measure in pairs:
        groups.setdefault(measure.name, []).append(arm.name)
    return groups


# --- in words ------------------------------------------------------------------------------------------------


def _in_words(arms: Sequence[ArmView]) -> list[str]:
    """What of the losses is equal to the last bit, and where the rest departs from the eager arm of the chart."""
    groups = list(alike(arms, _losses).values())
    words = [_alone_or_equal(group, len(groups) == 1) for group in groups]
    words += [_departure(group, measure) for measure, group in _departing(arms, groups)]
    endless = [arm for arm in arms if not all(map(math.isfinite, metrics.losses(arm.run)))]
    if endless:
        words.append(f"{names_of(endless)}: losses that are not finite leave a gap in the curve.")
    return [word for word in words if word]


def _losses(arm: ArmView) -> Hashable:
    return metrics.compared(arm.run)["losses"]


def _departing(arms: Sequence[ArmView], groups: Sequence[Sequence[ArmView]]) -> list[tuple[ArmView, Sequence[ArmView]]]:
    """The arms whose losses are other than those of their measure, together where they share losses and measure."""
    # Without eager, the first arm is the measure.
    pairs = _pairs(arms) or [(arm, groups[0][0]) for group in groups[1:] for arm in group]
    apart: dict[Hashable, tuple[ArmView, list[ArmView]]] = {}
    for arm, measure in pairs:
        if _losses(arm) != _losses(measure):
            apart.setdefault((_losses(arm), measure.role), (measure, []))[1].append(arm)
    return list(apart.values())


def _alone_or_equal(group: Sequence[ArmView], only: bool) -> str:
    steps = counted(len(metrics.losses(group[0].run)), "step")
    if len(group) > 1:
        return f"{names_of(group)}: equal to the last bit in all {steps}."
    return f"{group[0].name}: {steps}, nothing to compare with." if only else ""


def _departure(group: Sequence[ArmView], measure: ArmView) -> str:
    departure = metrics.departure(metrics.losses(group[0].run), metrics.losses(measure.run))
    verb = "departs" if len(group) == 1 else "depart"
    if departure is None:
        return f"{names_of(group)}: equal to {measure.name} on the process shown, different on another."
    most = "by no finite number" if math.isnan(departure.most) else f"by {departure.most:.2g} nats at most"
    return f"{names_of(group)} {verb} from {measure.name} at step {departure.first}; {most} (step {departure.at})."

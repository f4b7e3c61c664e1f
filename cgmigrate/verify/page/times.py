"""Times of a step, with their spread; and a ratio of speeds only where the times of two eager runs repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.verify import metrics
from cgmigrate.verify.arms import EAGER, EAGER_AGAIN
from cgmigrate.verify.metrics import REPEATS, Times
from cgmigrate.verify.page.arm_views import ArmView, is_training
from cgmigrate.verify.page.charts import BarChart, bar_chart


@dataclass(frozen=True, slots=True)
class TimeView:
    """A chart of the times, None where no arm has any; ``note`` says why no speed is given, empty where one is."""

    unit: str
    chart: BarChart | None
    note: str


def times_of(arms: Sequence[ArmView]) -> TimeView:
    """The times of arms that are done."""
    unit = "step" if is_training(arms) else "round"
    timed = [(arm, times) for arm in arms if (times := metrics.step_times(arm.run)) is not None]
    if not timed:
        return TimeView(unit, None, "")
    why = _no_speed(arms)
    # An arm's gain is against eager on its own release; the first eager arm of a release speaks for it.
    eager: dict[str, float] = {}
    for arm, times in timed:
        if arm.is_eager and not why:
            eager.setdefault(arm.release, times.median)
    measured = [(arm.role, arm.name, _in_words(arm, times, eager), times) for arm, times in timed]
    return TimeView(unit, bar_chart(measured, f"Time of a {unit}, all arms"), why)


def _in_words(arm: ArmView, times: Times, eager: Mapping[str, float]) -> str:
    text = f"{metrics.milliseconds(times.median)} ({metrics.spread(times)})"
    if arm.is_eager or not times.median or arm.release not in eager:
        return text
    return f"{text}, {eager[arm.release] / times.median:.1f} × eager’s speed"


def _no_speed(arms: Sequence[ArmView]) -> str:
    """Why the times say nothing of the speed, in a sentence; empty where they do."""
    if not is_training(arms):
        return "Arms that generate run side by side, so their times are not compared."
    medians = {arm.role: metrics.step_seconds(arm.run) for arm in arms}
    first, second = medians.get(EAGER), medians.get(EAGER_AGAIN)
    if not first or not second:
        return "No second eager run shows how far times repeat, so they are not compared."
    apart = max(first, second) / min(first, second) - 1
    if apart <= REPEATS:
        return ""
    return f"Two eager runs differ by {100 * apart:.0f} %, so times are not compared."

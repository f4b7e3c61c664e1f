"""Charts as plain values: where curves, marks, ticks and bars are. ``templates/charts.html.j2`` draws them as SVG.

Colours are classes (``role-migrated``) that the page's style sheet fills, so that they follow light, dark and print.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cgmigrate.verify.arms import EAGER, EAGER_AGAIN, EAGER_SOURCE, LEGACY_SOURCE, LEGACY_TARGET, MIGRATED
from cgmigrate.verify.metrics import Times

WIDTH, HEIGHT = 480.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 12.0, 26.0, 40.0
"""The chart and its margins, in units of the view box."""

DASH = 6.0
NEAR = 2.0
"""Curves that are nowhere farther apart than this look like one, and share its length in dashes."""

LARGEST = 1e39
"""More than a loss in single precision can be; what is beyond is not drawn."""

_MARKERS = {
    # Shapes of about the same weight around (0, 0); the colour is never the only difference.
    EAGER: "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
    EAGER_AGAIN: "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5",
    EAGER_SOURCE: "M-4 0L4 0M0 -4L0 4",
    LEGACY_SOURCE: "M-3.2 -3.2L3.2 -3.2L3.2 3.2L-3.2 3.2z",
    LEGACY_TARGET: "M0 -4.2L4.2 3.4L-4.2 3.4z",
    MIGRATED: "M0 -4.6L4.6 0L0 4.6L-4.6 0z",
}


@dataclass(frozen=True, slots=True)
class Curve:
    """One arm's values, one a step; values that are not finite, or beyond LARGEST, leave a gap."""

    role: str
    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class AxisMark:
    """Something at a place of the view box: a tick with its text, or the mark of a step."""

    x: str
    y: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    """A curve as it is drawn. ``dashes`` and ``offset`` are empty where it shares its line with no other curve."""

    role: str
    name: str
    path: str
    dashes: str
    offset: str
    shape: str
    marks: tuple[AxisMark, ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Curves over the steps. ``title`` names it, ``summary`` says in words what it shows, ``unit`` labels the values.

    ``ident`` begins the ids of its elements; ``width`` to ``bottom`` are lengths of the view box.
    """

    ident: str
    title: str
    summary: str
    unit: str
    values: tuple[AxisMark, ...]
    steps: tuple[AxisMark, ...]
    lines: tuple[DrawnCurve, ...]
    zero: str = ""
    """Where 0 is, if the chart marks it."""
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    middle: float = (LEFT + WIDTH - RIGHT) / 2


# --- curves --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps steps (from 0) and values to the view box."""

    steps: int
    low: float
    high: float

    def x(self, step: float) -> float:
        return LEFT + 10 + (WIDTH - LEFT - RIGHT - 20) * (step / (self.steps - 1) if self.steps > 1 else 0.5)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def loss_chart(curves: Sequence[Curve], ident: str, summary: str) -> LineChart | None:
    """The losses of all arms; None where no loss is finite."""
    return _chart(curves, partial(LineChart, ident, "Loss at each step, all arms", summary, "loss (nats)"))


def difference_chart(curves: Sequence[Curve], ident: str, summary: str) -> LineChart | None:
    """What each arm's loss is above or below that of eager; None where no difference is finite.

    Differences are small, so the axis has a power of ten of its own: a tick says 2, the label 10⁻⁴ nats.
    """
    finite = [abs(value) for curve in curves for value in curve.values if _drawn(value)]
    power = _power(max(finite, default=0.0))
    unit = f"difference (10{str(power).translate(_RAISED)} nats)" if power else "difference (nats)"
    scaled = [Curve(curve.role, curve.name, tuple(value / 10.0**power for value in curve.values)) for curve in curves]
    made = partial(LineChart, ident, "Difference from eager at each step, all arms", summary, unit)
    return _chart(scaled, made, with_zero=True)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(most: float) -> int:
    """The power of ten of an axis; 0 where plain numbers do."""
    if most == 0.0:
        return 0
    # Smaller numbers are no longer exact, and 10 to their power is 0.
    power = max(-300, math.floor(math.log10(most)))
    return 0 if -2 <= power <= 3 else power


def _chart(curves: Sequence[Curve], made: partial[LineChart], *, with_zero: bool = False) -> LineChart | None:
    finite = [value for curve in curves for value in curve.values if _drawn(value)]
    if not finite:
        return None
    shown = [*finite, 0.0] if with_zero else finite
    steps = max(len(curve.values) for curve in curves)
    if with_zero and not any(shown):
        # Ticks around the zero line would suggest a size that no difference has.
        ticks, frame = [0.0], _Frame(steps, -1.0, 1.0)
    else:
        ticks = _ticks(min(shown), max(shown))
        frame = _Frame(steps, min(*shown, *ticks), max(*shown, *ticks))
    groups = _alike(curves, frame)
    lines = (_line(curve, frame, place, len(group)) for group in groups for place, curve in enumerate(group))
    zero = f"{frame.y(0.0):.1f}" if with_zero else ""
    return made(values=_values(frame, ticks), steps=_steps(frame), lines=tuple(lines), zero=zero)


def shape_of(role: str) -> str:
    """The path of an arm's mark."""
    return _MARKERS.get(role, _MARKERS[EAGER])


def _line(curve: Curve, frame: _Frame, place: int, sharing: int) -> DrawnCurve:
    points = [(frame.x(step), frame.y(value)) if _drawn(value) else None for step, value in enumerate(curve.values)]
    # Curves that lie on each other take turns in marking the steps.
    shown = [point for step, point in enumerate(points) if point and step % sharing == place % sharing]
    return DrawnCurve(
        role=curve.role,
        name=curve.name,
        path=_path(points),
        dashes=f"{DASH:g} {DASH * (sharing - 1):g}" if sharing > 1 else "",
        offset=f"{0 - DASH * place:g}" if sharing > 1 else "",
        shape=shape_of(curve.role),
        marks=tuple(AxisMark(f"{x:.1f}", f"{y:.1f}") for x, y in shown),
    )


def _drawn(value: float) -> bool:
    return abs(value) < LARGEST


def _path(points: Sequence[tuple[float, float] | None]) -> str:
    parts, joined = [], False
    for point in points:
        if point:
            parts.append(f"{'L' if joined else 'M'}{point[0]:.2f} {point[1]:.2f}")
        joined = point is not None
    return "".join(parts)


def _alike(curves: Sequence[Curve], frame: _Frame) -> list[list[Curve]]:
    """The curves, those together that look the same in one group."""
    groups: list[list[Curve]] = []
    for curve in curves:
        home = next((group for group in groups if _looks_like(curve, group[0], frame)), None)
        if home is None:
            groups.append([curve])
        else:
            home.append(curve)
    return groups


def _looks_like(one: Curve, other: Curve, frame: _Frame) -> bool:
    pairs = list(zip(one.values, other.values, strict=False))
    if any(_drawn(left) != _drawn(right) for left, right in pairs):
        return False
    return all(abs(frame.y(left) - frame.y(right)) < NEAR for left, right in pairs if _drawn(left))


def _values(frame: _Frame, ticks: Sequence[float]) -> tuple[AxisMark, ...]:
    digits = _digits(ticks)
    # Adding 0.0 turns a negative zero, which would be written "-0", into a plain one.
    texts = [f"{round(tick, digits) + 0.0:.{digits}f}" if abs(tick) < 1e6 else f"{tick:.3g}" for tick in ticks]
    return tuple(AxisMark("", f"{frame.y(tick):.1f}", text) for tick, text in zip(ticks, texts, strict=True))


def _steps(frame: _Frame) -> tuple[AxisMark, ...]:
    every = max(1, math.ceil(frame.steps / 12))
    return tuple(AxisMark(f"{frame.x(step):.1f}", "", str(step + 1)) for step in range(0, frame.steps, every))


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round values around the values shown."""
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - max(0.5, abs(low) * 1e-3), high + max(0.5, abs(high) * 1e-3)
    span = high - low
    unit = 10.0 ** math.floor(math.log10(span / 4))
    step = next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [index * step for index in range(first, last + 1)]


def _digits(ticks: Sequence[float]) -> int:
    gap = min((right - left for left, right in itertools.pairwise(ticks)), default=1.0)
    return max(0, min(9, -math.floor(math.log10(gap) + 1e-9)))


# --- bars ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeBar:
    """One arm's time with its spread; ``note`` is the time in words, the rest shares of the chart's width (percent)."""

    role: str
    name: str
    note: str
    share: str
    least: str
    most: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """One bar an arm, from 0; the bars are as wide as the page, so the words beside them stay text."""

    title: str
    bars: tuple[TimeBar, ...]


def bar_chart(measured: Sequence[tuple[str, str, str, Times]], title: str) -> BarChart:
    """The times as shares of the longest: the role, the name and the words of each bar, with its times."""
    longest = max((times.most for *_, times in measured), default=0.0) or 1.0

    def share(seconds: float) -> str:
        return f"{100 * seconds / longest:.2f}%"

    bars = (
        TimeBar(role, name, note, share(times.median), share(times.least), share(times.most))
        for role, name, note, times in measured
    )
    return BarChart(title, tuple(bars))

"""Charts as inline SVG: all loss curves in one chart, and bars of step times.

Colours are classes (``role-migrated``) that the page's style sheet fills, so that they follow light and dark.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cgmigrate.verify.arms import EAGER, EAGER_AGAIN, EAGER_SOURCE, LEGACY_SOURCE, LEGACY_TARGET, MIGRATED
from cgmigrate.verify.page.markup import Markup, element, together

WIDTH, HEIGHT = 480.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 12.0, 22.0, 40.0
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
    """One arm's losses (nats a token), a value a step; values that are not finite, or beyond LARGEST, leave a gap."""

    role: str
    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """One arm's step time (s); ``note`` is its value in words."""

    role: str
    name: str
    seconds: float
    note: str


# --- loss curves ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps steps (from 0) and losses to the view box."""

    steps: int
    low: float
    high: float

    def x(self, step: float) -> float:
        return LEFT + 10 + (WIDTH - LEFT - RIGHT - 20) * (step / (self.steps - 1) if self.steps > 1 else 0.5)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def loss_chart(curves: Sequence[Curve], ident: str, summary: str) -> Markup:
    """All curves in one chart; ``summary`` says in a sentence what it shows. Empty where no loss is finite."""
    finite = [value for curve in curves for value in curve.values if _drawn(value)]
    if not finite:
        return Markup("")
    ticks = _ticks(min(finite), max(finite))
    frame = _Frame(max(len(curve.values) for curve in curves), min(*finite, *ticks), max(*finite, *ticks))
    drawn = [
        _curve(curve, frame, place, len(group)) for group in _alike(curves, frame) for place, curve in enumerate(group)
    ]
    return element(
        "svg",
        element("title", "Loss at each step, all arms", id=f"{ident}-title"),
        element("desc", summary, id=f"{ident}-desc"),
        _axes(frame, ticks),
        *drawn,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        class_="chart",
    )


def sample(role: str) -> Markup:
    """A piece of an arm's curve, for the legend."""
    line = element("path", d="M1 7L27 7", class_="curve")
    mark = element("path", d=_MARKERS.get(role, _MARKERS[EAGER]), transform="translate(14 7)", class_="marker")
    return element("svg", line, mark, viewBox="0 0 28 14", class_=f"sample role-{role}", aria_hidden="true")


def _curve(curve: Curve, frame: _Frame, place: int, sharing: int) -> Markup:
    points = [(frame.x(step), frame.y(value)) if _drawn(value) else None for step, value in enumerate(curve.values)]
    dashes = f"{DASH:g} {DASH * (sharing - 1):g}" if sharing > 1 else None
    line = element(
        "path",
        d=_path(points),
        class_="curve",
        stroke_dasharray=dashes,
        stroke_dashoffset=f"{0 - DASH * place:g}" if sharing > 1 else None,
    )
    # Curves that lie on each other take turns in marking the steps.
    shown = [point for step, point in enumerate(points) if point and step % sharing == place % sharing]
    shape = _MARKERS.get(curve.role, _MARKERS[EAGER])
    marks = [element("path", d=shape, transform=f"translate({x:.1f} {y:.1f})", class_="marker") for x, y in shown]
    return element("g", element("title", curve.name), line, *marks, class_=f"role-{curve.role}")


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


def _axes(frame: _Frame, ticks: Sequence[float]) -> Markup:
    parts = [element("text", "loss (nats)", x=0, y=12, class_="axis")]
    digits = _digits(ticks)
    for tick in ticks:
        y = frame.y(tick)
        parts.append(element("path", d=f"M{LEFT:g} {y:.1f}L{WIDTH - RIGHT:g} {y:.1f}", class_="grid"))
        text = f"{tick:.{digits}f}" if abs(tick) < 1e6 else f"{tick:.3g}"
        parts.append(element("text", text, x=LEFT - 8, y=f"{y + 4:.1f}", class_="axis", text_anchor="end"))
    every = max(1, math.ceil(frame.steps / 12))
    for step in range(0, frame.steps, every):
        where = {"x": f"{frame.x(step):.1f}", "y": f"{HEIGHT - BOTTOM + 18:g}"}
        parts.append(element("text", str(step + 1), **where, class_="axis", text_anchor="middle"))
    middle = {"x": f"{(LEFT + WIDTH - RIGHT) / 2:g}", "y": f"{HEIGHT - 5:g}"}
    parts.append(element("text", "step", **middle, class_="axis", text_anchor="middle"))
    return together(*parts)


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round values around the losses."""
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - max(0.5, abs(low) * 1e-3), high + max(0.5, abs(high) * 1e-3)
    span = high - low
    unit = 10.0 ** math.floor(math.log10(span / 4))
    step = next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [index * step for index in range(first, last + 1)]


def _digits(ticks: Sequence[float]) -> int:
    gap = min(right - left for left, right in itertools.pairwise(ticks))
    return max(0, min(9, -math.floor(math.log10(gap) + 1e-9)))


# --- bars ----------------------------------------------------------------------------------------------------

ROW = 40.0
"""The height of one bar with its label, in pixels: this chart is as wide as its place and does not scale."""


def bar_chart(bars: Sequence[Bar], ident: str, heading: str) -> Markup:
    """One bar an arm, from 0; empty where there is no bar."""
    if not bars:
        return Markup("")
    longest = max(bar.seconds for bar in bars) or 1.0
    described = "; ".join(f"{bar.name}: {bar.note}" for bar in bars)
    return element(
        "svg",
        element("title", heading, id=f"{ident}-title"),
        element("desc", described, id=f"{ident}-desc"),
        *(_bar(bar, index * ROW, bar.seconds / longest) for index, bar in enumerate(bars)),
        width="100%",
        height=f"{ROW * len(bars):g}",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        class_="bars",
    )


def _bar(bar: Bar, top: float, share: float) -> Markup:
    return element(
        "g",
        element("text", bar.name, x=0, y=f"{top + 14:g}"),
        element("text", bar.note, x="100%", y=f"{top + 14:g}", text_anchor="end", class_="value"),
        element("rect", x=0, y=f"{top + 20:g}", width="100%", height=10, class_="track"),
        element("rect", x=0, y=f"{top + 20:g}", width=f"{100 * share:.2f}%", height=10, class_="bar"),
        class_=f"role-{bar.role}",
    )

"""What graphs cost and gain in a job: times without hooks, the GPU's share of them, kernels, and memory, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import linear_regression, median

from cgmigrate.verify.arms import DONE, EAGER, EAGER_AGAIN, MIGRATED, ArmResult, Rank
from cgmigrate.verify.metrics import REPEATS, label, memory, milliseconds

LEAST_SIZES = 4
"""Numbers of layers from which the memory of more layers is extrapolated."""


def measured(results: Mapping[str, ArmResult]) -> Iterator[str]:
    """Yield a line for each form that was measured, by role, and whether their times can be compared."""
    ranks = {role: result.ranks[0] for role, result in results.items() if result.outcome == DONE and result.ranks}
    timed = {role: rank for role, rank in ranks.items() if rank.timed}
    if not timed:
        return
    eager = timed.get(EAGER)
    not_compared = why_not_compared(eager, timed.get(EAGER_AGAIN))
    for role, rank in timed.items():
        is_compared = eager is not None and role not in (EAGER, EAGER_AGAIN) and not not_compared
        yield f"{label(role, results[role].arm.release)}: {_line(rank, eager, is_compared=is_compared)}"
    if not_compared:
        yield not_compared


def why_not_compared(eager: Rank | None, again: Rank | None) -> str:
    """Return why the times of a step cannot be compared, where two eager runs do not show that they repeat."""
    if eager is None or again is None:
        return "the times are not compared with each other: there are no two eager runs"
    times = median(eager.timed), median(again.timed)
    apart = abs(times[0] - times[1]) / min(times)
    return (
        f"the times are not compared with each other: two eager runs differ by {apart:.0%}" if apart > REPEATS else ""
    )


def extrapolated(sizes: Mapping[int, Mapping[str, ArmResult]], layers: int) -> Iterator[str]:
    """Yield what graphs of the job's own number of ``layers`` take, from runs with fewer layers, each by role."""
    if not sizes:
        return
    ranks = {
        size: {role: one.ranks[0] for role, one in results.items() if one.outcome == DONE and one.ranks}
        for size, results in sizes.items()
    }
    pools = {size: float(one[MIGRATED].pool_bytes) for size, one in ranks.items() if MIGRATED in one}
    net = {
        size: float(one[MIGRATED].reserved_bytes - one[EAGER].reserved_bytes)
        for size, one in ranks.items()
        if {MIGRATED, EAGER} <= one.keys()
    }
    for name, known in (("mempools of graphs", pools), ("reserved against eager", net)):
        if len(known) < LEAST_SIZES or not layers:
            yield f"{name}: not extrapolated, since only {len(known)} sizes ran with fewer layers than the job has"
            continue
        seen = ", ".join(f"{size}: {_signed(round(value))}" for size, value in sorted(known.items()))
        value, error = _line_through(known, layers)
        whole = f"{_signed(round(value))} ± {memory(round(error))}"
        yield f"{name} by number of layers: {seen}; with {layers} layers {whole}"


def _line_through(known: Mapping[int, float], at: int) -> tuple[float, float]:
    """Return the value of the line through known ones, and how far it moves at most without one of them."""

    def value(points: Mapping[int, float]) -> float:
        slope, intercept = linear_regression(list(points), list(points.values()))
        return slope * at + intercept

    every = value(known)
    without = [value({size: one for size, one in known.items() if size != left}) for left in known]
    return every, max(abs(one - every) for one in without)


def _line(rank: Rank, eager: Rank | None, *, is_compared: bool) -> str:
    step = median(rank.timed)
    parts = [f"step {milliseconds(step)} ({milliseconds(min(rank.timed))} to {milliseconds(max(rank.timed))})"]
    if is_compared and eager is not None:
        parts[0] += f", {median(eager.timed) / step:.2f} times as fast as eager"
    if rank.busy:
        share = max(0.0, 1 - rank.busy / step)
        parts.append(f"GPU busy {milliseconds(rank.busy)}, so {share:.0%} of the step waits for the host")
        parts.append(f"{kernels_outside(rank)} of {rank.launched} kernels outside graphs")
    if captures := _capture_seconds(rank):
        parts.append(f"the steps that capture took {captures:.1f} s")
    if rank.pool_bytes:
        net = f", {_signed(rank.reserved_bytes - eager.reserved_bytes)} reserved against eager" if eager else ""
        parts.append(f"mempools of graphs {memory(rank.pool_bytes)}{net}")
    return "; ".join(parts)


def kernels_outside(rank: Rank) -> int:
    """Return how many kernels of a step no graph replays."""
    inside = sum(graph.kernels * (graph.replays[-1] if graph.replays else 0) for graph in rank.graphs)
    return max(0, rank.launched - inside)


def _capture_seconds(rank: Rank) -> float:
    steps = {graph.captured_at for graph in rank.graphs}
    return sum(seconds for number, seconds in enumerate(rank.seconds) if number in steps)


def _signed(count: int) -> str:
    return ("+" if count >= 0 else "-") + memory(abs(count))

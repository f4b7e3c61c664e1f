"""Metrics that the reports show of an arm's result: pure functions of the plain data in ``arms``."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cgmigrate.megatron.settings import LAYER_MODULES
from cgmigrate.text.plurals import counted
from cgmigrate.verify.arms import (
    EAGER,
    EAGER_AGAIN,
    EAGER_SOURCE,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    TRAINING,
    ArmResult,
    Graph,
    Rank,
)

REPEATS = 0.05
"""Two eager runs may be apart by this share of the faster one; beyond it a ratio of speeds says nothing."""
_ROLE_NAMES = {
    EAGER: "eager",
    EAGER_AGAIN: "eager again",
    EAGER_SOURCE: "eager",
    LEGACY_SOURCE: "legacy",
    LEGACY_TARGET: "legacy",
    MIGRATED: "migrated",
}
_PARTS = {
    # Class of megatron-core → the word of the settings for it, where they have one.
    "SelfAttention": "attn",
    "MLASelfAttention": "attn",
    "CrossAttention": "cross-attention",
    "MLP": "mlp",
    "TEFusedMLP": "mlp",
    "TopKRouter": "moe_router",
    "InferenceTopKRouter": "moe_router",
    "SharedExpertMLP": "shared experts",
    "GroupedMLP": "experts",
    "TEGroupedMLP": "experts",
    "SequentialMLP": "experts",
    "MambaMixer": "mamba",
    "LanguageModelEmbedding": "embedding",
}


_MODULES = {"experts": ("moe", "moe_preprocess")}
"""What else the settings can name of a layer that has such a part."""


def modules_of(rank: Rank) -> list[str]:
    """Return the modules that a process called, as `cuda_graph_modules` names them, in the order of its values."""
    parts = {_PARTS[name] for step in rank.eager for name in step if name in _PARTS}
    named = {*parts, *(module for part in parts for module in _MODULES.get(part, ()))}
    return [module for module in LAYER_MODULES if module in named]


def role_name(role: str) -> str:
    """The role of an arm in words, without its release."""
    return _ROLE_NAMES.get(role, role)


def label(role: str, release: str) -> str:
    """An arm in words: ``legacy on 0.17.1``."""
    return f"{role_name(role)} on {release}"


def short(digest: str) -> str:
    """The first 8 hexadecimal digits of a digest, as people compare them."""
    return digest[:8]


# --- one process ---------------------------------------------------------------------------------------------


def all_graphs(result: ArmResult) -> int:
    """How many graphs an arm captured, over all its processes."""
    return sum(len(rank.graphs) for rank in result.ranks)


def replays_per_step(rank: Rank) -> int:
    """How many replays the last step had, all graphs together; 0 where nothing was captured."""
    return sum(_settled(graph) for graph in rank.graphs)


@dataclass(frozen=True, slots=True)
class Times:
    """Wall times of settled steps (s): their median, the shortest and the longest, and how many steps they are of."""

    median: float
    least: float
    most: float
    count: int


def steady_times(rank: Rank) -> Times | None:
    """The wall times of the steps once everything is captured; None where no such step ran.

    The first half of the steps never counts, so that arms are measured on the same steps, warm ones, whether they
    capture or not.
    """
    captured = max((graph.captured_at for graph in rank.graphs), default=-1)
    steady = rank.seconds[max(captured + 1, len(rank.seconds) // 2) :]
    return Times(median(steady), min(steady), max(steady), len(steady)) if steady else None


def capture_steps(rank: Rank) -> str:
    """The steps, counted from 1, in or before which graphs were captured: ``4``, ``1–3, 5``; empty for none."""
    return spans([graph.captured_at + 1 for graph in rank.graphs])


def _settled(graph: Graph) -> int:
    return graph.replays[-1] if graph.replays else 0


# --- the census ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphGroup:
    """Graphs of one process that differ in their layer only.

    ``kernels`` and ``nodes`` are each graph's (-1: not counted), ``replays`` each graph's in the last step, ``total``
    each graph's in all steps. ``layers`` are counted from 1, sorted; empty where the graphs belong to none.
    """

    what: str
    direction: str
    modules: tuple[str, ...]
    kernels: int
    nodes: int
    replays: int
    total: int
    layers: tuple[int, ...]
    count: int

    @property
    def shape(self) -> tuple[Hashable, ...]:
        """What should not change between releases: kernels and classes do."""
        return self.what, self.direction, parts_of(self.modules), self.replays, self.layers, self.count

    def line(self, unit: str = "step") -> str:
        """The group in words: ``4 × layer forward: attn, mlp; 57 kernels; 2 replays a step``."""
        whole = {"iteration": "full iteration"}.get(self.what, self.what)
        name = whole if self.direction == "both" else f"{whole} {self.direction}"
        parts = parts_of(self.modules)
        inside = f": {', '.join(parts)}" if parts else ""
        return f"{self.count} × {name}{inside}; {self._size()}; {self._use(unit)}"

    def _size(self) -> str:
        if self.kernels < 0:
            return "kernels not counted"
        others = f" of {self.nodes} nodes" if self.nodes > self.kernels else ""
        return counted(self.kernels, "kernel") + others

    def _use(self, unit: str) -> str:
        if not self.total:
            return "never replayed"
        if not self.replays:
            return f"{counted(self.total, 'replay')} in all, none in the last {unit}"
        return f"{counted(self.replays, 'replay')} a {unit}"


def census_groups(rank: Rank) -> tuple[GraphGroup, ...]:
    """The graphs of a process, like ones together, in the order in which the first of each was captured."""
    groups: dict[tuple[str, str, tuple[str, ...], int, int, int, int], list[int]] = {}
    for graph in rank.graphs:
        key = (graph.what, graph.direction, graph.modules, graph.kernels, graph.nodes)
        groups.setdefault((*key, _settled(graph), sum(graph.replays)), []).append(graph.layer)
    return tuple(
        GraphGroup(*key, layers=tuple(sorted({layer for layer in layers if layer})), count=len(layers))
        for key, layers in groups.items()
    )


def census_lines(rank: Rank, unit: str = "step") -> tuple[str, ...]:
    """The graphs of a process in words, a line for like ones; ``unit`` is what a replay is counted by."""
    return tuple(group.line(unit) for group in census_groups(rank))


def parts_of(modules: Sequence[str]) -> tuple[str, ...]:
    """What ran inside a graph, in the settings' words; the classes that only hold others where nothing else did."""
    parts = tuple(dict.fromkeys(_PARTS[name] for name in modules if name in _PARTS))
    return parts or tuple(modules)


def eager_calls(rank: Rank) -> Mapping[str, int]:
    """Calls of each module class outside graphs in the last step."""
    return rank.eager[-1] if rank.eager else {}


# --- a result, all processes together ------------------------------------------------------------------------


def step_times(result: ArmResult) -> Times | None:
    """``steady_times`` of the process with the longest median; None where a process has none."""
    times_of_ranks = [steady_times(rank) for rank in result.ranks]
    known = [times for times in times_of_ranks if times is not None]
    return max(known, key=lambda times: times.median) if known and len(known) == len(times_of_ranks) else None


def step_seconds(result: ArmResult) -> float | None:
    """The median of ``step_times``; None where a process has none."""
    times = step_times(result)
    return None if times is None else times.median


def peak_bytes(result: ArmResult) -> int:
    """The most memory (bytes) that tensors used in any process."""
    return max((rank.peak_bytes for rank in result.ranks), default=0)


def reserved_bytes(result: ArmResult) -> int:
    """The most memory (bytes) that the allocator reserved in any process, graphs' pools included."""
    return max((rank.reserved_bytes for rank in result.ranks), default=0)


def losses(result: ArmResult) -> tuple[float, ...]:
    """The losses (nats a token) of the first process that has any: with pipelines that is a late one."""
    return next((tuple(map(float.fromhex, rank.losses)) for rank in result.ranks if rank.losses), ())


def parameters_digest(result: ArmResult) -> str:
    """The digest of the parameters after the last step, of all processes together; empty where there is none."""
    return _together([rank.parameters[-1] if rank.parameters else "" for rank in result.ranks])


def logits_digest(result: ArmResult) -> str:
    """The digest of all logits, of all processes together; empty where there is none."""
    return _together([rank.logits for rank in result.ranks])


def tokens(result: ArmResult) -> tuple[tuple[int, ...], ...]:
    """The generated tokens of each request, of the first process that has any."""
    return next((rank.tokens for rank in result.ranks if rank.tokens), ())


def compared(result: ArmResult) -> Mapping[str, Hashable]:
    """What must be equal to the last bit, of all processes, by name; without quantities that no process has."""
    ranks = result.ranks
    if result.arm.workload == TRAINING:
        values_of: dict[str, tuple[Hashable, ...]] = {
            "losses": tuple(rank.losses for rank in ranks),
            "gradient norms": tuple(rank.gradient_norms for rank in ranks),
            "parameters": tuple(rank.parameters for rank in ranks),
            "random-number states": tuple(rank.rng for rank in ranks),
        }
    else:
        values_of = {
            "tokens": tuple(rank.tokens for rank in ranks),
            "logits": tuple(rank.logits for rank in ranks),
        }
    return {name: values for name, values in values_of.items() if any(values)}


def _together(digests: Sequence[str]) -> str:
    known = [digest for digest in digests if digest]
    return known[0] if len(known) == 1 else hashlib.sha256("\n".join(known).encode()).hexdigest() if known else ""


# --- one against another -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Departure:
    """How two series part: the first step (from 1) at which they differ, the most they differ by and where.

    ``most`` is NaN where a value of either is not finite, or a step of either is missing.
    """

    first: int
    most: float
    at: int


def departure(ours: Sequence[float], theirs: Sequence[float]) -> Departure | None:
    """Where ``ours`` departs from ``theirs``; None where they are equal to the last bit."""
    count = max(len(ours), len(theirs))
    gaps = [_gap(ours, theirs, step) for step in range(count)]
    steps = [step for step, gap in enumerate(gaps) if gap != 0.0]
    if not steps:
        return None
    # A value that is no number outweighs every distance.
    at = max(steps, key=lambda step: (math.isnan(gaps[step]), gaps[step]))
    return Departure(steps[0] + 1, gaps[at], at + 1)


def _gap(ours: Sequence[float], theirs: Sequence[float], step: int) -> float:
    if step >= min(len(ours), len(theirs)):
        return math.nan
    one, other = ours[step], theirs[step]
    if one.hex() == other.hex():
        return 0.0
    # Zeros of either sign differ in their bits, which is no distance but no equality either.
    return abs(one - other) or math.ulp(0.0) if math.isfinite(one) and math.isfinite(other) else math.nan


def first_difference(
    ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]
) -> tuple[int, int, int | None, int | None] | None:
    """The first token that differs: (request from 1, token from 1, ours, theirs); None for one where one ends.

    Returns None where all requests have the same tokens.
    """
    for request in range(max(len(ours), len(theirs))):
        left = ours[request] if request < len(ours) else ()
        right = theirs[request] if request < len(theirs) else ()
        for place in range(max(len(left), len(right))):
            one = left[place] if place < len(left) else None
            other = right[place] if place < len(right) else None
            if one != other:
                return request + 1, place + 1, one, other
    return None


def letters(values: Sequence[Hashable | None]) -> tuple[str, ...]:
    """A letter for each value, the same for equal ones, in order of appearance; empty for None and empty text."""
    known = {value: index for index, value in enumerate(dict.fromkeys(value for value in values if value))}
    return tuple(_letter(known[value]) if value else "" for value in values)


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else _letter(index // 26 - 1) + _letter(index % 26)


# --- words ---------------------------------------------------------------------------------------------------


def spans(numbers: Sequence[int]) -> str:
    """Numbers in few words: ``1–3, 5``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in runs)


def milliseconds(seconds: float) -> str:
    """A time with three significant digits and its unit: ``7.90 ms``, ``57.1 ms``, ``412 ms``."""
    value = seconds * 1e3
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} ms"


def spread(times: Times) -> str:
    """The shortest and the longest time: ``7.70 to 8.60 ms``."""
    if times.count == 1:
        return "one measured"
    return f"{milliseconds(times.least).removesuffix(' ms')} to {milliseconds(times.most)}"


def memory(count: int) -> str:
    """An amount of memory with its unit: ``412 MiB``, ``1.25 GiB``."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"

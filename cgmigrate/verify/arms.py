"""Arms of a verification and their results: plain data that goes through JSON between processes.

An *arm* is one process that trains (or generates with) a small proxy model under one release of
megatron-core and one set of CUDA-graph settings. This module imports the standard library only, because the
probe reads it in environments that hold megatron-core and little else.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = 1
"""Version of the results' JSON form."""

TRAINING, STATIC, DYNAMIC = "training", "static", "dynamic"
"""Training steps; generation with the static, with the dynamic batching engine."""

EAGER, EAGER_AGAIN, EAGER_SOURCE = "eager", "eager-again", "eager-source"
LEGACY_SOURCE, LEGACY_TARGET, MIGRATED = "legacy-source", "legacy-target", "migrated"
ROLES = (EAGER, EAGER_AGAIN, EAGER_SOURCE, LEGACY_SOURCE, LEGACY_TARGET, MIGRATED)
"""What an arm is in a comparison. Eager arms capture nothing; the second one on the target measures nondeterminism."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Packed sequences (THD): how many documents each microbatch of a step holds, in turn.

    ``cap`` pads ``cu_seqlens`` to ``cap + 1`` entries by repeating the last one, so that its shape is the same
    for every microbatch; None leaves one entry a document and one more.
    """

    documents: tuple[int, ...]
    cap: int | None = None


@dataclass(frozen=True, slots=True)
class Proxy:
    """The small model that stands for the configuration's own.

    Sizes are counts (layers, heads, experts), widths in elements, ``sequence`` in tokens. ``spec`` is the layer
    specification, ``te`` (Transformer Engine) or ``local``. ``fields`` are further fields of TransformerConfig
    that the configuration gives (normalization, recompute_granularity, moe_*, ...); one that a release does not
    know is an error of that arm. ``notes`` say what was scaled down or omitted.
    """

    layers: int = 4
    hidden: int = 256
    heads: int = 4
    vocabulary: int = 512
    sequence: int = 128
    micro_batch: int = 2
    microbatches: int = 2
    spec: str = "te"
    precision: str = "bf16"
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    context: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)
    packing: Packing | None = None
    notes: tuple[str, ...] = ()

    @property
    def expert_tensor(self) -> int:
        """How many ways an expert is split: the tensor size, unless the configuration says otherwise."""
        return int(self.fields.get("expert_tensor_parallel_size") or self.tensor)

    @property
    def processes(self) -> int:
        """The fewest processes (one a GPU) that the sizes of the dense layers and of the experts both divide."""
        return self.pipeline * math.lcm(self.tensor * self.context, self.expert_tensor * self.expert)


@dataclass(frozen=True, slots=True)
class Arm:
    """One run of the probe.

    ``settings`` are the CUDA-graph settings as TransformerConfig gets them (empty: eager), ``release`` the
    version of megatron-core (``0.19.2``), ``steps`` the training steps or generated tokens, ``processes`` one a GPU.
    """

    release: str
    workload: str
    settings: Mapping[str, Any]
    proxy: Proxy
    steps: int = 8
    processes: int = 1
    repeat: int = 0
    """Distinguishes a second run of the same arm from the first."""
    measure: int = 0
    """How many further steps of training are timed, without the census."""

    @property
    def key(self) -> str:
        """A short name that is the same for the same arm: two configurations share it and it runs once."""
        # Results that were recorded before arms were measured keep their names.
        values = {name: value for name, value in asdict(self).items() if value or name != "measure"}
        text = json.dumps(values, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def model_key(self) -> str:
        """The same for all arms whose model has the same parameters: they start from one saved state."""
        model = asdict(self.proxy)
        for name in ("sequence", "micro_batch", "microbatches", "packing", "notes"):
            del model[name]
        text = json.dumps([model, self.processes], sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def as_json(self) -> dict[str, Any]:
        """The arm as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Arm:
        """The inverse of ``as_json``."""
        proxy = dict(data["proxy"])
        packing = proxy.pop("packing", None)
        if packing is not None:
            packing = Packing(tuple(packing["documents"]), packing["cap"])
        proxy["notes"] = tuple(proxy.get("notes", ()))
        return cls(**{**data, "proxy": Proxy(**proxy, packing=packing)})


@dataclass(frozen=True, slots=True)
class Graph:
    """One captured CUDA graph.

    ``what`` is ``layer``, ``block``, ``iteration``, ``optimizer`` or ``other``; ``layer`` the layer's number from 1
    (0 where it is none); ``direction`` is ``forward``, ``backward`` or ``both``. ``modules`` are the classes of the
    model whose forward ran inside, outermost first. ``kernels`` counts kernel nodes, ``nodes`` all of them (-1 where
    the driver did not say). ``replays`` holds one count a step.
    """

    what: str
    layer: int
    direction: str
    modules: tuple[str, ...]
    kernels: int
    nodes: int
    captured_at: int
    replays: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rank:
    """What one process measured.

    Floats that are compared to the last bit are kept as ``float.hex``. ``losses`` and ``gradient_norms`` have one
    entry a step (empty where this rank has none), ``parameters`` one digest a step, ``rng`` the digest of all RNG
    states after the last step. ``tokens`` are the generated ids of each request and ``logits`` a digest of their
    logits. ``eager`` counts, a step, the calls of each module class that ran outside graphs. ``seconds`` is wall
    time a step, ``peak_bytes`` the most memory allocated by tensors, graphs' pools included in ``reserved_bytes``.

    Where a job is measured, ``timed`` is the wall time of further steps, in seconds, without the observer's hooks;
    ``busy`` the seconds of one step in which the GPU ran kernels, and ``launched`` how many kernels there were;
    ``pool_bytes`` the memory of graphs' pools. ``initial`` is a digest of the parameters before the first step, where
    models of two kinds are compared.
    """

    rank: int
    losses: tuple[str, ...] = ()
    gradient_norms: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    rng: str = ""
    tokens: tuple[tuple[int, ...], ...] = ()
    logits: str = ""
    graphs: tuple[Graph, ...] = ()
    eager: tuple[Mapping[str, int], ...] = ()
    seconds: tuple[float, ...] = ()
    peak_bytes: int = 0
    reserved_bytes: int = 0
    timed: tuple[float, ...] = ()
    busy: float = 0.0
    launched: int = 0
    pool_bytes: int = 0
    initial: str = ""


DONE, REFUSED, CRASHED, TIMED_OUT, MISSING = "done", "refused", "crashed", "timed out", "missing"
"""``refused``: megatron-core does not accept the settings; ``missing``: something needed is not there (a package,
a GPU), so nothing was learnt."""


_KEYS = {"failure": "telling"}
"""Fields of a result whose key in JSON has another name."""


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What became of an arm.

    ``failure`` is the one line of its log that says why it did not end well; ``effective`` the CUDA-graph fields of
    the validated TransformerConfig; ``remarks`` what a reader must know of the run (a stand-in kernel, say).
    """

    arm: Arm
    outcome: str
    failure: str = ""
    ranks: tuple[Rank, ...] = ()
    effective: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    command: str = ""
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        values = asdict(self)
        return {"format": FORMAT, **{_KEYS.get(name, name): value for name, value in values.items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ArmResult:
        """The inverse of ``as_json``. Raises ValueError for another version of the form."""
        if data.get("format") != FORMAT:
            raise ValueError(f"a result of format {data.get('format')!r}; this version reads {FORMAT}")
        names = {key: name for name, key in _KEYS.items()}
        values = {names.get(key, key): value for key, value in data.items() if key != "format"}
        values["arm"] = Arm.from_json(values["arm"])
        values["ranks"] = tuple(_rank(rank) for rank in values["ranks"])
        values["remarks"] = tuple(values["remarks"])
        return cls(**values)


def result_of_ranks(arm: Arm, files: Sequence[Mapping[str, Any]]) -> ArmResult:
    """One result of what an arm's processes wrote (see ``probe``); the first that did not end well speaks for all."""
    bad = [rank for rank in files if rank["outcome"] != DONE]
    # A rank that waits for a dead one ends with an error of its own, which says less.
    first = min(bad, key=lambda rank: "NCCL" in rank["failure"] or "onnection" in rank["failure"], default=None)
    shown = files[0] if files else {}
    return ArmResult(
        arm,
        first["outcome"] if first else DONE,
        first["failure"] if first else "",
        ranks=tuple(_rank(rank["rank"]) for rank in files if rank.get("rank")),
        effective=shown.get("effective", {}),
        environment=shown.get("environment", {}),
        remarks=tuple(shown.get("remarks", ())),
    )


def _rank(data: Mapping[str, Any]) -> Rank:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    values["tokens"] = tuple(tuple(ids) for ids in data["tokens"])
    values["graphs"] = tuple(
        Graph(**{**graph, "modules": tuple(graph["modules"]), "replays": tuple(graph["replays"])})
        for graph in data["graphs"]
    )
    return Rank(**values)

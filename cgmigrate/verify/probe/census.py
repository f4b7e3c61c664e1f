"""The census: every CUDA graph of a process, what ran inside it while it was captured, and how often it is replayed.

It wraps ``torch.cuda.CUDAGraph.capture_begin``, ``.capture_end`` and ``.replay``, through which each of megatron-core's
implementations goes (``CudaGraphManager``, Transformer Engine's ``make_graphed_callables``, ``FullCudaGraphWrapper``,
``OptimizerCudaGraphWrapper``), and ``torch.nn.Module.__call__``, to see which modules run inside a capture and which
run eagerly. It changes nothing of what they do.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from cgmigrate.verify.arms import Graph

PARTS = (
    "TransformerBlock",
    "MambaStack",
    "HybridStack",
    "TransformerLayer",
    "MoETransformerLayer",
    "MambaLayer",
    "SelfAttention",
    "CrossAttention",
    "MLASelfAttention",
    "MLP",
    "TEFusedMLP",
    "MoELayer",
    "TopKRouter",
    "InferenceTopKRouter",
    "SharedExpertMLP",
    "GroupedMLP",
    "TEGroupedMLP",
    "SequentialMLP",
    "MambaMixer",
    "LanguageModelEmbedding",
)
"""Classes of megatron-core whose calls are counted: those that the settings name, and the classes that contain them."""

_MAKERS = {
    # The function that starts a capture → what it captures, in which direction.
    "create_fwd_graph": ("layer", "forward"),
    "create_bwd_graph": ("layer", "backward"),
    "_make_graphed_callables": ("layer", ""),
    "FullCudaGraphWrapper.__call__": ("iteration", "both"),
    "OptimizerCudaGraphWrapper.__call__": ("optimizer", "both"),
}
_NODE_KERNEL = 0
"""``CU_GRAPH_NODE_TYPE_KERNEL``."""


@dataclass(slots=True)
class _Record:
    what: str
    layer: int
    direction: str
    captured_at: int
    modules: list[str] = field(default_factory=list)
    kernels: int = -1
    nodes: int = -1
    replays: Counter[int] = field(default_factory=Counter)


class Census:
    """Counts from ``install`` on; ``step`` delimits training steps or rounds of generation."""

    def __init__(self) -> None:
        self._graphs: dict[int, _Record] = {}
        self._keep: list[object] = []
        self._capturing: _Record | None = None
        self._eager: list[Counter[str]] = []
        self._in_step = False
        self._start = 0.0
        self._real: tuple[Any, ...] = ()
        self.seconds: list[float] = []
        self.counts_calls = True

    def install(self) -> None:
        """Wrap the methods; once a process."""
        census = self
        graph: Any = torch.cuda.CUDAGraph
        module: Any = torch.nn.Module
        begin, end, replay, call = graph.capture_begin, graph.capture_end, graph.replay, module.__call__
        self._real = (begin, end, replay, call)

        def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
            census._begin(self, sys._getframe(1))
            return begin(self, *args, **kwargs)

        def capture_end(self: Any) -> Any:
            census._count_nodes()
            census._capturing = None
            return end(self)

        def count_replay(self: Any) -> Any:
            if record := census._graphs.get(id(self)):
                record.replays[census.now] += 1
            return replay(self)

        def count_call(self: Any, *args: Any, **kwargs: Any) -> Any:
            census._called(self)
            return call(self, *args, **kwargs)

        graph.capture_begin, graph.capture_end, graph.replay = capture_begin, capture_end, count_replay
        module.__call__ = count_call

    def uninstall(self) -> None:
        """Unwrap the methods, to measure times; what was counted stays."""
        graph: Any = torch.cuda.CUDAGraph
        module: Any = torch.nn.Module
        graph.capture_begin, graph.capture_end, graph.replay, module.__call__ = self._real

    @property
    def now(self) -> int:
        """The step that runs, or the next one, from 0."""
        return len(self._eager) - 1 if self._in_step else len(self._eager)

    @contextmanager
    def step(self) -> Iterator[None]:
        """One training step or round of generation; its wall time ends when the GPU has finished."""
        self.begin_step()
        try:
            yield
            self.end_step()
        finally:
            self._in_step = False

    @property
    def begun(self) -> bool:
        """Whether a step is running."""
        return self._in_step

    def begin_step(self) -> None:
        """Begin a step, where it is not one block of code."""
        _synchronize()
        self._eager.append(Counter())
        self._in_step = True
        self._start = time.perf_counter()

    def end_step(self) -> None:
        """End the step once the GPU has finished."""
        _synchronize()
        self.seconds.append(time.perf_counter() - self._start)
        self._in_step = False

    def graphs(self) -> tuple[Graph, ...]:
        """All graphs in the order in which they were captured."""
        return tuple(
            Graph(
                record.what,
                record.layer,
                record.direction,
                tuple(record.modules),
                record.kernels,
                record.nodes,
                record.captured_at,
                tuple(record.replays[step] for step in range(len(self._eager))),
            )
            for record in self._graphs.values()
        )

    def eager(self) -> tuple[dict[str, int], ...]:
        """Calls outside graphs, by class, a step."""
        return tuple(dict(sorted(counts.items())) for counts in self._eager)

    def _begin(self, graph: object, frame: FrameType) -> None:
        what, layer, direction = _made_by(frame)
        record = _Record(what, layer, direction, self.now)
        # A graph that is dropped must not lend its id to a later one.
        self._keep.append(graph)
        self._graphs[id(graph)] = self._capturing = record

    def _called(self, module: Any) -> None:
        name = type(module).__name__
        if name not in PARTS:
            return
        if (record := self._capturing) is None:
            if self._in_step and self.counts_calls:
                self._eager[-1][name] += 1
            return
        if name not in record.modules:
            record.modules.append(name)
        if record.what == "layer":
            record.layer = record.layer or int(getattr(module, "layer_number", None) or 0)
            record.direction = record.direction or "forward"

    def _count_nodes(self) -> None:
        if (record := self._capturing) is not None:
            record.direction = record.direction or "backward"
            record.kernels, record.nodes = _nodes_under_capture(torch.cuda.current_stream().cuda_stream)


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _made_by(frame: FrameType | None) -> tuple[str, int, str]:
    """(what, layer, direction) of the capture that starts in ``frame``, from the functions that lead there."""
    while frame is not None:
        code = frame.f_code
        for name in (code.co_name, getattr(code, "co_qualname", code.co_name)):
            if name not in _MAKERS:
                continue
            what, direction = _MAKERS[name]
            module = getattr(frame.f_locals.get("self"), "base_module", None)
            if module is not None and "Layer" not in type(module).__name__:
                what = "block" if type(module).__name__ in PARTS else "other"
            layer = int(getattr(module, "layer_number", None) or 0) if what == "layer" else 0
            return what, layer, direction
        frame = frame.f_back
    return "other", 0, "forward"


def _nodes_under_capture(stream: int) -> tuple[int, int]:
    """(kernel nodes, all nodes) of the graph that ``stream`` is capturing; -1 each where the driver does not say.

    Source: CUDA driver API, ``cuStreamGetCaptureInfo``, ``cuGraphGetNodes``, ``cuGraphNodeGetType``.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return -1, -1
    status, graph, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t()
    ident = ctypes.c_uint64()
    status = driver.cuStreamGetCaptureInfo_v2(
        ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(ident), ctypes.byref(graph), None, None
    )
    if status != 0 or not graph.value or driver.cuGraphGetNodes(graph, None, ctypes.byref(count)) != 0:
        return -1, -1
    nodes = (ctypes.c_void_p * max(1, count.value))()
    if count.value and driver.cuGraphGetNodes(graph, nodes, ctypes.byref(count)) != 0:
        return -1, -1
    kernels, kind = 0, ctypes.c_int()
    for node in nodes[: count.value]:
        if driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)) == 0:
            kernels += kind.value == _NODE_KERNEL
    return kernels, count.value

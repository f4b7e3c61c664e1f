"""Observes a training job from inside: which graphs it captures, what it computes, and what it does eagerly.

`sitecustomize` starts it in every Python process of the command. It waits for modules of megatron-core and wraps, after
their body has run, the schedules, the wrapper of full-iteration graphs and the optimizers: nothing of
``megatron.training`` is needed to observe. After some steps each rank writes its result and ends the process, so that
no checkpoint is written. An error of the observer does not reach the job.

Sources: megatron-core 0.17.1 and 0.19.2; the hooks are those of ``run-observer.md``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cgmigrate.verify.arms import CRASHED, DONE, Rank
from cgmigrate.verify.probe.result import environment, failure_of, write
from cgmigrate.verify.probe.times import Times, pool_bytes
from cgmigrate.verify.probe.variable import VARIABLE

_CONFIG = "megatron.core.transformer.transformer_config"
_OFF = {"cuda_graph_impl": "none", "enable_cuda_graph": False, "external_cuda_graph": False}
"""What turns graphs off, as far as a release has the names."""
_LISTS = ("cuda_graph_scope", "cuda_graph_scope_deprecated", "cuda_graph_modules")
"""The second name is that of the old flag among the arguments of 0.18 and later."""
_BY_LAYER = ("moe_layer_freq", "linear_attention_freq")
"""Settings that can have a value for each layer."""


class Job:
    """What one process is observed with."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.folder, self.steps, self.eager = Path(task["folder"]), int(task["steps"]), bool(task["eager"])
        self.times = Times(int(task.get("measure", 0)))
        self.settings: Mapping[str, Any] = task.get("settings") or {}
        # The names of parameters differ where models of two kinds are compared, and so may the weights they start from.
        self.named, self.initial = not task.get("hybrid"), ""
        self.layers, self.own_layers = int(task.get("layers", 0)), 0
        self.census: Any = None
        self.model: Any = None
        self.outputs: Any = None
        self.depth = 0
        self.losses: list[str] = []
        self.norms: list[str] = []
        self.digests: list[str] = []
        self.effective: dict[str, Any] = {}
        self.reserved = self.pool = 0
        self.failure = ""
        self.is_written = False

    # --- hooks ------------------------------------------------------------------------------------

    @property
    def hooks(self) -> Mapping[str, Callable[[Any], None]]:
        """Module → what to do with it once its body has run."""
        return {
            _CONFIG: self.hook_configuration,
            "megatron.training.arguments": self.hook_arguments,
            "megatron.core.pipeline_parallel.schedules": self.hook_schedules,
            "megatron.core.full_cuda_graph": self.hook_iteration,
            "megatron.core.optimizer.optimizer": self.hook_optimizers,
            "megatron.core.optimizer.optimizer_cuda_graph": self.hook_optimizer_graph,
        }

    def hook_configuration(self, module: Any) -> None:
        """Begin to count; make configurations eager, and smaller."""
        from cgmigrate.verify.probe.census import Census

        self.census = Census()
        self.census.install()
        _before(module.TransformerConfig, "__post_init__", lambda config, *_, **__: self.change(config))

    def hook_arguments(self, module: Any) -> None:
        """Make parsed arguments eager, and smaller."""
        _after(module, "parse_args", lambda result, *_, **__: self.change(result))

    def change(self, settings: Any) -> None:
        """Make parsed arguments, or a configuration before it is validated, those of this form."""
        if self.eager:
            turn_off(settings)
        for name, value in {**_OFF, **self.settings}.items() if self.settings else ():
            if hasattr(settings, name):
                setattr(settings, name, _members(value) if isinstance(value, list) else value)
        own = getattr(settings, "num_layers", None)
        if self.layers and isinstance(own, int) and own > self.layers:
            self.own_layers = own
            settings.num_layers = self.layers
            for name in _BY_LAYER:
                if isinstance(value := getattr(settings, name, None), list):
                    setattr(settings, name, value[: self.layers])

    def hook_schedules(self, module: Any) -> None:
        """Keep what the schedule returns: the losses of each microbatch."""
        real = module.get_forward_backward_func

        @functools.wraps(real)
        def get(*args: Any, **named: Any) -> Any:
            return self.kept(real(*args, **named))

        module.get_forward_backward_func = get

    def kept(self, schedule: Any) -> Any:
        """Return a schedule that keeps its results, and the model."""

        @functools.wraps(schedule)
        def run(*args: Any, **named: Any) -> Any:
            # An evaluation, or the log-probabilities of a policy, are no part of the training that is compared.
            trains = not named.get("forward_only")
            with self.noted():
                if trains and not self.norms and not self.census.begun:
                    self.census.begin_step()
                    self.initial = "" if self.named else _digest(_listed(named.get("model")), named=False)
                self.census.counts_calls = trains
            result = schedule(*args, **named)
            self.census.counts_calls = True
            if trains:
                self.model, self.outputs = named.get("model", self.model), result
            return result

        return run

    def hook_iteration(self, module: Any) -> None:
        """Keep what a replayed iteration returns: it calls no schedule."""

        def keep(result: Any, *_: Any, **named: Any) -> None:
            if not named.get("forward_only"):
                self.outputs = result

        _after(module.FullCudaGraphWrapper, "__call__", keep)

    def hook_optimizers(self, module: Any) -> None:
        """See the ends of steps."""
        for one in vars(module).values():
            if isinstance(one, type) and "step" in vars(one) and one.__module__ == module.__name__:
                self.bound(one, "step")

    def hook_optimizer_graph(self, module: Any) -> None:
        """See the ends of steps where the optimizer itself is replayed."""
        self.bound(module.OptimizerCudaGraphWrapper, "__call__")

    def bound(self, owner: Any, name: str) -> None:
        """Take the end of the outermost call of a method for the end of a step: optimizers contain others."""
        real = getattr(owner, name)

        @functools.wraps(real)
        def call(*args: Any, **named: Any) -> Any:
            self.depth += 1
            try:
                result = real(*args, **named)
            finally:
                self.depth -= 1
            if self.depth == 0:
                self.end_step(result)
            return result

        setattr(owner, name, call)

    # --- steps ------------------------------------------------------------------------------------

    def end_step(self, result: Any) -> None:
        """Measure a step; after the last one, time some more without the hooks, write, and end the process."""
        with self.noted():
            if len(self.norms) < self.steps:
                self.census.end_step()
                self.measure(result)
                if len(self.norms) < self.steps:
                    self.census.begin_step()
                    return
                self.reserved = _reserved()
                self.pool = pool_bytes() if self.layers or self.times.steps else 0
                if self.times.steps:
                    self.census.uninstall()
            if self.times.goes_on():
                return
        self.finish()

    def measure(self, result: Any) -> None:
        """Read the losses, the norm of the gradients, and a digest of the parameters."""
        norm = result[1] if isinstance(result, tuple) and len(result) > 1 else None
        self.norms.append(float(norm or 0.0).hex())
        if (loss := _loss(self.outputs)) is not None:
            self.losses.append(loss.hex())
        chunks = _listed(self.model)
        self.digests.append(_digest(chunks, self.named))
        self.effective = self.effective or _effective(chunks[0])
        self.outputs = None

    def finish(self) -> None:
        """Write on every rank, and end the process without what the job does at its end."""
        with contextlib.suppress(Exception):
            import torch

            if torch.distributed.is_initialized():
                torch.distributed.barrier()
        self.write()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    @contextlib.contextmanager
    def noted(self) -> Any:
        """Note an error of the observer itself, and go on."""
        try:
            yield
        except Exception as error:  # the job must not end by it
            self.failure = self.failure or f"the observer failed: {failure_of(error)}"

    # --- the end ----------------------------------------------------------------------------------

    def at_exit(self) -> None:
        """Write what there is of a process that ended before the last step; one that never trained writes nothing."""
        if self.is_written or (not self.norms and not self.failure) or self.census is None:
            return
        if not self.failure and len(self.norms) < self.steps:
            done = len(self.norms)
            hint = f"; `--steps {done}` compares these" if done else ""
            self.failure = f"the job ended by itself after {done} of {self.steps} steps{hint}"
        self.write()

    def on_error(self, kind: Any, error: BaseException, trace: Any) -> None:
        """Note the error that ends the job."""
        with contextlib.suppress(Exception):
            self.failure = failure_of(error)
        sys.__excepthook__(kind, error, trace)

    def write(self) -> None:
        """Write the result of this rank."""
        self.is_written = True
        with contextlib.suppress(Exception):
            rank = _rank()
            result = {
                "outcome": CRASHED if self.failure else DONE,
                "failure": self.failure,
                "effective": self.effective,
                "environment": environment(),
                "remarks": [f"trained {_class_of(self.model)}"] if self.model and not self.named else [],
                "own_layers": self.own_layers,
                "rank": asdict(self.measured(rank)),
            }
            write(result, self.folder, rank)

    def measured(self, rank: int) -> Rank:
        """Return what was measured."""
        import torch

        return Rank(
            rank=rank,
            losses=tuple(self.losses),
            gradient_norms=tuple(self.norms),
            parameters=tuple(self.digests),
            initial=self.initial,
            graphs=self.census.graphs(),
            eager=self.census.eager(),
            seconds=tuple(self.census.seconds),
            peak_bytes=torch.cuda.max_memory_allocated(),
            reserved_bytes=self.reserved or torch.cuda.max_memory_reserved(),
            pool_bytes=self.pool,
            **self.times.measured(),
        )


def _reserved() -> int:
    import torch

    return int(torch.cuda.max_memory_reserved())


def turn_off(settings: Any) -> None:
    """Turn graphs off in parsed arguments or a configuration, before they are validated."""
    for name, value in _OFF.items():
        if hasattr(settings, name):
            setattr(settings, name, value)
    for name in _LISTS:
        # The default is a list, a text, or None, by release.
        if (value := getattr(settings, name, None)) is not None:
            setattr(settings, name, "full" if isinstance(value, str) else [])
    inference = getattr(settings, "inference_cuda_graph_scope", None)
    if inference is not None:
        settings.inference_cuda_graph_scope = "none" if isinstance(inference, str) else type(inference)["none"]
    if hasattr(settings, "optimizer_cuda_graph"):
        settings.optimizer_cuda_graph = False


def _members(names: list[str]) -> list[Any]:
    """Return modules as the release's own enum has them; their names where it has none."""
    kind = getattr(sys.modules.get("megatron.core.transformer.enums"), "CudaGraphModule", None)
    return names if kind is None else [kind[name] for name in names]


def _before(owner: Any, name: str, act: Callable[..., None]) -> None:
    real = getattr(owner, name)

    @functools.wraps(real)
    def call(*args: Any, **named: Any) -> Any:
        act(*args, **named)
        return real(*args, **named)

    setattr(owner, name, call)


def _after(owner: Any, name: str, act: Callable[..., None]) -> None:
    real = getattr(owner, name)

    @functools.wraps(real)
    def call(*args: Any, **named: Any) -> Any:
        result = real(*args, **named)
        act(result, *args, **named)
        return result

    setattr(owner, name, call)


def _loss(outputs: Any) -> float | None:
    """Return the mean loss of the microbatches: a tensor each, or a sum over tokens with their number."""
    import torch

    values = []
    for output in outputs or ():
        first = next(iter(output.values())) if isinstance(output, dict) and output else None
        first = first[0] if isinstance(first, (tuple, list)) else first
        if first is None:
            return None
        # A plain number, as policies of NeMo-RL have it, is one as well.
        value = torch.as_tensor(first).detach().double().flatten()
        values.append(float(value[0] / value[1]) if value.numel() == 2 else float(value.mean()))
    return sum(values) / len(values) if values else None


def _listed(model: Any) -> Any:
    return model if isinstance(model, (list, tuple)) else [model]


def _digest(chunks: Any, named: bool) -> str:
    """Return a digest of the bits of all parameters: a sum of integers each, computed on their device."""
    import hashlib

    import torch

    sums = []
    for chunk in chunks:
        for name, parameter in chunk.named_parameters():
            data = parameter.detach().contiguous()
            words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[data.element_size()]
            bits = data.view(words).flatten().long()
            sums.append((name if named else "", bits.sum(), (bits * bits).sum()))
    text = " ".join(sorted(f"{name} {int(first)} {int(second)}" for name, first, second in sums))
    return hashlib.sha256(text.encode()).hexdigest()


def _effective(chunk: Any) -> dict[str, Any]:
    from cgmigrate.verify.probe.model import effective

    while not hasattr(chunk, "config") and hasattr(chunk, "module"):
        chunk = chunk.module
    return effective(chunk.config)


def _class_of(model: Any) -> str:
    chunk = _listed(model)[0]
    while hasattr(chunk, "module"):
        chunk = chunk.module
    return type(chunk).__name__


def _rank() -> int:
    import torch

    is_group = torch.distributed.is_available() and torch.distributed.is_initialized()
    return int(torch.distributed.get_rank()) if is_group else int(os.environ.get("RANK", "0"))


class _Finder:
    """Lets the finders behind it find a module, and acts on it once its body has run."""

    def __init__(self, job: Job) -> None:
        self.job, self.hooks = job, dict(job.hooks)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:  # noqa: ARG002
        """Return the spec of a module that is waited for; None for any other."""
        hook = self.hooks.pop(name, None)
        if hook is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            with self.job.noted():
                hook(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def start() -> None:
    """Observe this process, if it is one of an observed job."""
    task = os.environ.get(VARIABLE)
    if not task:
        return
    job = Job(json.loads(task))
    sys.meta_path.insert(0, _Finder(job))
    sys.excepthook = job.on_error
    atexit.register(job.at_exit)

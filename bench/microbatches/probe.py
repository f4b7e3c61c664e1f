"""Runs Megatron-LM's pretrain_gpt.py in the current folder, and records what every training step trained on.

Every sample has a token of its own, so the rows of the embedding whose gradient is not zero after a step say which
samples reached the gradient. The job and its arguments are not changed, except by variables of the environment:

PROBE_KEEP=N    an eager step reads all of its microbatches and trains on the first N only
PROBE_BATCH=1   0.17's get_batch without the broadcast that no graph can capture; for one tensor-parallel rank
PROBE_SCALE=1   stands in for `multi_tensor_scale_tensor`, which Transformer Engine 2.12 lacks: the norm of gradients
                then stays on the device
PROBE_EAGER=1   the optimizer of --optimizer-cuda-graph runs without its graph
PROBE_OUT=FILE  one JSON a step goes to FILE.RANK.jsonl
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

SAMPLES = 800
"""Of the tokens, each belongs to one sample; the next 100 stay unused, and all samples share those after them."""
COUNTED = {"capture_begin": "captures", "replay": "replays"}


class Probe:
    """The record of one process."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        path = Path(f"{variables['PROBE_OUT']}.{variables.get('RANK', '0')}.jsonl")
        self.out = path.open("w", encoding="utf-8")
        self.variables = variables
        self.counts = dict.fromkeys(COUNTED.values(), 0)
        self.calls: list[list[Any]] = []

    def write(self, **record: Any) -> None:
        """Write one line; a job that dies leaves those before."""
        self.out.write(json.dumps(record) + "\n")
        self.out.flush()

    def patch(self) -> None:
        """Watch the graphs, the steps and the data."""
        for method, name in COUNTED.items():
            setattr(torch.cuda.CUDAGraph, method, self._counting(getattr(torch.cuda.CUDAGraph, method), name))
        if self.variables.get("PROBE_SCALE"):
            _scale_on_the_device()
        from megatron.core import full_cuda_graph
        from megatron.core.datasets import gpt_dataset
        from megatron.training import training, utils

        gpt_dataset.MockGPTDataset = _samples(gpt_dataset.MockGPTDataset)
        wrapper = full_cuda_graph.FullCudaGraphWrapper
        wrapper.__call__ = self._noting(wrapper.__call__)
        if keep := int(self.variables.get("PROBE_KEEP", "0")):
            training.get_forward_backward_func = _keeping(training.get_forward_backward_func, keep)
        if self.variables.get("PROBE_EAGER"):
            training.OptimizerCudaGraphWrapper = lambda step, **_: step
        if self.variables.get("PROBE_BATCH"):
            utils.get_batch_on_this_tp_rank = _batch
        training.train_step = self._step(training.train_step)
        training.evaluate = self._evaluation(training.evaluate)

    def run(self) -> None:
        """Run the program, and record how it ends."""
        from megatron.training import get_args

        sys.argv[0] = "pretrain_gpt.py"
        try:
            runpy.run_path("pretrain_gpt.py", run_name="__main__")
            self.write(end="done", consumed=get_args().consumed_train_samples)
        except BaseException as error:
            self.write(end=type(error).__name__, message=str(error)[:300], at=_first_cause(error))
            traceback.print_exc()
        self.out.close()

    def _counting(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self.counts[name] += 1
            return method(graph, *args, **kwargs)

        return call

    def _noting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
            self.calls.append(["validation" if kwargs["forward_only"] else "training", kwargs["num_microbatches"]])
            return method(wrapper, *args, **kwargs)

        return call

    def _since(self, before: Mapping[str, int]) -> dict[str, Any]:
        return {"calls": list(self.calls), **{name: self.counts[name] - before[name] for name in before}}

    def _step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        from megatron.core.num_microbatches_calculator import get_num_microbatches
        from megatron.training import get_args

        def call(*args: Any, **kwargs: Any) -> Any:
            before = dict(self.counts)
            self.calls.clear()
            result = step(*args, **kwargs)
            torch.cuda.synchronize()
            options = get_args()
            self.write(
                step=options.curr_iteration + 1,
                microbatches=get_num_microbatches(),
                consumed_before=options.consumed_train_samples,
                reached=_reached(args[2]),
                loss={name: float(value) for name, value in result[0].items()},
                norm=None if result[5] is None else float(result[5]),
                digest=_digest(args[2]),
                **self._since(before),
            )
            return result

        return call

    def _evaluation(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before = dict(self.counts)
            self.calls.clear()
            result = evaluate(*args, **kwargs)
            losses = {name: float(value) for name, value in (result[0] or {}).items()}
            self.write(evaluation=losses, **self._since(before))
            return result

        return call


def _scale_on_the_device() -> None:
    from transformer_engine.pytorch import optimizers

    def scaled(_chunk: int, _overflow: Any, lists: Any, scale: Any) -> None:
        for source, target in zip(*lists, strict=True):
            target.copy_(source * scale)

    assert not hasattr(optimizers, "multi_tensor_scale_tensor")
    optimizers.multi_tensor_scale_tensor = scaled


def _samples(dataset: type) -> type:
    class Samples(dataset):
        def __getitem__(self, index: int | None) -> dict[str, Any]:
            item = dict(super().__getitem__(index))
            if index is None:
                return item
            own = int(index) % SAMPLES
            generator = torch.Generator().manual_seed(own + 1)
            tokens = torch.randint(SAMPLES + 100, SAMPLES + 200, (len(item["tokens"]),), generator=generator)
            tokens[::4] = own
            return item | {"tokens": tokens, "labels": tokens.roll(-1)}

    return Samples


def _keeping(get: Callable[..., Any], keep: int) -> Callable[..., Any]:
    def got(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        function = get(*args, **kwargs)

        def call(**arguments: Any) -> Any:
            if not arguments["forward_only"] and arguments["num_microbatches"] > keep:
                source = arguments["data_iterator"]
                source = source[0] if isinstance(source, list) else source
                batches = [next(source) for _ in range(arguments["num_microbatches"])]
                arguments |= {"data_iterator": iter(batches[:keep]), "num_microbatches": keep}
            return function(**arguments)

        return call

    return got


def _batch(data_iterator: Iterator[dict[str, Any]], *_args: Any, **_kwargs: Any) -> dict[str, Any]:
    data = next(data_iterator)
    names = ("tokens", "labels", "loss_mask", "attention_mask", "position_ids")
    return {name: data[name].cuda(non_blocking=True) if name in data else None for name in names}


def _digest(model: list[Any]) -> str:
    total = hashlib.sha256()
    for chunk in model:
        for name, parameter in sorted(chunk.named_parameters()):
            total.update(name.encode() + parameter.detach().contiguous().view(torch.uint8).cpu().numpy().tobytes())
    return total.hexdigest()[:8]


def _reached(model: list[Any]) -> list[int] | None:
    """The samples that have a gradient in their own row of the embedding; None for a stage without embedding."""
    for chunk in model:
        for name, parameter in chunk.named_parameters():
            if name.endswith("word_embeddings.weight"):
                rows = parameter.main_grad[:SAMPLES].abs().sum(dim=1) > 0
                return [int(row) for row in rows.nonzero().flatten()]
    return None


def _first_cause(error: BaseException) -> str:
    """Where the first of the errors was raised that led to one."""
    while error.__context__ is not None:
        error = error.__context__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "megatron/" in frame.filename]
    return "; ".join(f"{frame.filename.rpartition('megatron/')[2]}: {frame.line}" for frame in frames[-2:])


if __name__ == "__main__":
    probe = Probe(os.environ)
    probe.patch()
    probe.run()
    os._exit(0)

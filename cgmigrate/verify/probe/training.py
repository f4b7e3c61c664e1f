"""The training workload: some steps of megatron-core's own schedules, data parallelism and optimizer.

What starts a capture is what Megatron-LM's trainer starts it with (``megatron/training/training.py``: ``get_model``,
``train_step``, ``train``); the gates for the three implementations are transcribed from there.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch

from cgmigrate.verify.arms import Arm, Proxy
from cgmigrate.verify.probe.census import Census
from cgmigrate.verify.probe.model import SEED
from cgmigrate.verify.probe.times import Times, pool_bytes

LEARNING_RATE = 1e-3


def train(model: Any, config: Any, arm: Arm, census: Census) -> dict[str, Any]:
    """Train ``arm.steps`` steps; return losses, gradient norms (``float.hex``) and a digest of parameters a step.

    Then time ``arm.measure`` steps.
    """
    chunks = _wrapped(model, config, arm.proxy)
    optimizer = _optimizer(chunks, arm.proxy)
    config.grad_scale_func = optimizer.scale_loss
    schedule, helper = _schedule(config), _helper(config, chunks, optimizer, arm.proxy)

    def one_step(step: int) -> tuple[Any, Any]:
        for chunk in chunks:
            chunk.zero_grad_buffer()
        optimizer.zero_grad()
        reduced = schedule(
            forward_step_func=_forward_step,
            data_iterator=[_batches(arm.proxy, step)],
            model=chunks,
            num_microbatches=arm.proxy.microbatches,
            seq_length=arm.proxy.sequence,
            micro_batch_size=arm.proxy.micro_batch,
            forward_only=False,
        )
        return reduced, optimizer.step()[1]

    losses, norms, digests = [], [], []
    for step in range(arm.steps):
        if helper is not None and step == config.cuda_graph_warmup_steps:
            helper.create_cudagraphs()
        with census.step():
            reduced, norm = one_step(step)
        if reduced:
            losses.append(float(torch.stack([item["loss"].detach().float() for item in reduced]).mean()).hex())
        norms.append(float(norm or 0.0).hex())
        digests.append(_digest(param for chunk in chunks for param in chunk.parameters()))
    measured = {"losses": losses, "gradient_norms": norms, "parameters": digests, "rng": rng_digest()}
    if not arm.measure:
        return measured
    census.uninstall()
    times = Times(arm.measure)
    while times.goes_on():
        one_step(arm.steps)
    return {**measured, **times.measured(), "pool_bytes": pool_bytes()}


def captures_iteration(config: Any) -> bool:
    """Whether the trainer of this release wraps the schedule in FullCudaGraphWrapper.

    Source: megatron/training/training.py, ``train``: since 0.18 the implementation ``full_iteration``, before that
    ``local`` with ``full_iteration`` in the scope.
    """
    if hasattr(config, "cuda_graph_modules"):
        return bool(config.cuda_graph_impl == "full_iteration")
    scope = config.cuda_graph_scope
    names = [scope] if isinstance(scope, str) else [getattr(item, "name", item) for item in scope]
    return config.cuda_graph_impl == "local" and "full_iteration" in names


def _schedule(config: Any) -> Any:
    from megatron.core.pipeline_parallel import get_forward_backward_func

    schedule = get_forward_backward_func()
    if not captures_iteration(config):
        return schedule
    from megatron.core.full_cuda_graph import FullCudaGraphWrapper

    options = {"cuda_graph_warmup_steps": config.cuda_graph_warmup_steps}
    if "use_single_mempool" in inspect.signature(FullCudaGraphWrapper.__init__).parameters:
        options["use_single_mempool"] = config.cuda_graph_use_single_mempool
    return FullCudaGraphWrapper(schedule, **options)


def _helper(config: Any, chunks: list[Any], optimizer: Any, proxy: Proxy) -> Any:
    if config.cuda_graph_impl != "transformer_engine":
        return None
    from megatron.core.transformer.cuda_graphs import TECudaGraphHelper

    return TECudaGraphHelper(
        model=chunks,
        config=config,
        seq_length=proxy.sequence,
        micro_batch_size=proxy.micro_batch,
        optimizers=[optimizer],
    )


def _wrapped(model: Any, config: Any, proxy: Proxy) -> list[Any]:
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
    from megatron.core.transformer.module import Float16Module

    config.finalize_model_grads_func = finalize_model_grads
    if proxy.precision != "fp32":
        model = Float16Module(config, model)
    stream = _stream_for_wrapping(config)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        wrapped = DistributedDataParallel(
            config,
            DistributedDataParallelConfig(
                grad_reduce_in_fp32=True, overlap_grad_reduce=False, use_distributed_optimizer=False
            ),
            model,
        )
    torch.cuda.current_stream().wait_stream(stream)
    wrapped.train()
    return [wrapped]


def _stream_for_wrapping(config: Any) -> Any:
    """Under which stream the trainer wraps the model: AccumulateGrad nodes must not sit on the default stream."""
    if captures_iteration(config):
        from megatron.core import full_cuda_graph

        if hasattr(full_cuda_graph, "get_shared_capture_stream"):
            return full_cuda_graph.get_shared_capture_stream()
    cuda: Any = torch.cuda
    return cuda.Stream()


def _optimizer(chunks: list[Any], proxy: Proxy) -> Any:
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

    config = OptimizerConfig(
        optimizer="adam",
        lr=LEARNING_RATE,
        min_lr=LEARNING_RATE,
        weight_decay=0.0,
        bf16=proxy.precision == "bf16",
        fp16=proxy.precision == "fp16",
        params_dtype={"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[proxy.precision],
        clip_grad=1.0,
        use_distributed_optimizer=False,
    )
    options: dict[str, Any] = {}
    if "use_gloo_process_groups" in inspect.signature(get_megatron_optimizer).parameters:
        options["use_gloo_process_groups"] = False
    return get_megatron_optimizer(config, chunks, **options)


# --- data: host tensors, since FullCudaGraphWrapper copies them to its own buffers ---------------------------


def _batches(proxy: Proxy, step: int) -> Iterator[dict[str, Any]]:
    from megatron.core import parallel_state

    rank = parallel_state.get_data_parallel_rank()
    for microbatch in range(proxy.microbatches):
        place = (step * proxy.microbatches + microbatch) * 1009 + rank
        generator = torch.Generator().manual_seed(SEED + place)
        shape = (proxy.micro_batch, proxy.sequence)
        tokens = torch.randint(0, proxy.vocabulary, shape, generator=generator)
        labels = torch.randint(0, proxy.vocabulary, shape, generator=generator)
        positions = torch.arange(proxy.sequence).expand(shape).contiguous()
        batch: dict[str, Any] = {"tokens": tokens, "labels": labels, "positions": positions}
        if proxy.packing is not None:
            documents = proxy.packing.documents
            count = documents[(step * proxy.microbatches + microbatch) % len(documents)]
            batch |= _packed(proxy, count)
        yield batch


def _packed(proxy: Proxy, documents: int) -> dict[str, Any]:
    """``documents`` documents of about equal length; ``bounds`` are their cumulative lengths, padded to the cap."""
    assert proxy.packing is not None
    total = proxy.micro_batch * proxy.sequence
    bounds = [round(total * index / documents) for index in range(documents + 1)]
    longest = max(right - left for left, right in pairwise(bounds))
    positions = torch.cat([torch.arange(right - left) for left, right in pairwise(bounds)])
    if proxy.packing.cap is not None:
        bounds += [total] * (proxy.packing.cap + 1 - len(bounds))
        longest = total
    return {
        "positions": positions.reshape(proxy.micro_batch, proxy.sequence),
        "bounds": torch.tensor(bounds, dtype=torch.int32),
        # A plain number: a tensor would have to be read back while the iteration is captured.
        "longest": longest,
    }


def _forward_step(iterator: Any, model: Any) -> tuple[Any, Any]:
    batch = next(iterator)
    packed = None
    if "bounds" in batch:
        from megatron.core.packed_seq_params import PackedSeqParams

        bounds = batch["bounds"].cuda(non_blocking=True)
        longest = batch["longest"]
        packed = PackedSeqParams(
            qkv_format="thd", cu_seqlens_q=bounds, cu_seqlens_kv=bounds, max_seqlen_q=longest, max_seqlen_kv=longest
        )
    tokens, labels, positions = (batch[name].cuda(non_blocking=True) for name in ("tokens", "labels", "positions"))
    output = model(tokens, positions, None, labels=labels, packed_seq_params=packed)
    return output, _loss


def _loss(output: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    loss = output.float().mean()
    return loss, {"loss": loss.detach().clone()}


# --- digests -------------------------------------------------------------------------------------------------


def _digest(tensors: Any) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().view(torch.uint8).cpu().numpy().tobytes())
    return digest.hexdigest()


def rng_digest() -> str:
    """Digests of the states of all generators: the CPU's, the GPU's default, and the tracker's, by name."""
    from megatron.core.tensor_parallel.random import get_cuda_rng_tracker

    states = {"cpu": torch.get_rng_state(), "gpu": torch.cuda.get_rng_state()}
    for name, state in sorted(get_cuda_rng_tracker().get_states().items()):
        states[name] = state.get_state() if isinstance(state, torch.Generator) else state
    return " ".join(f"{name}:{_digest([state])[:12]}" for name, state in states.items())

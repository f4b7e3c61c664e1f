"""Builds the proxy model with whatever release of megatron-core is on the path."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Mapping
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from cgmigrate.verify.arms import Arm, Proxy

SEED = 1234


class RefusedError(Exception):
    """megatron-core does not accept the configuration; the message is its own."""


class MissingError(Exception):
    """Something that the arm needs is not there."""


def start(arm: Arm) -> int:
    """Join the processes of this arm and set up megatron-core's parallel state; return this process's rank."""
    import torch
    from megatron.core import parallel_state
    from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    if not torch.cuda.is_available():
        raise MissingError("torch sees no GPU")
    rank, world, local = place_among_processes()
    proxy = arm.proxy
    # Slurm may show each of several tasks a GPU of its own, which is number 0 to each.
    torch.cuda.set_device(local % torch.cuda.device_count())
    # A process of its own needs no port to meet others at.
    distributed: Any = torch.distributed
    store = distributed.HashStore() if world == 1 else None
    distributed.init_process_group("nccl", store=store, rank=rank, world_size=world)
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=proxy.tensor,
        pipeline_model_parallel_size=proxy.pipeline,
        context_parallel_size=proxy.context,
        expert_model_parallel_size=proxy.expert,
        expert_tensor_parallel_size=proxy.expert_tensor,
    )
    data_parallel = world // (proxy.tensor * proxy.pipeline * proxy.context)
    init_num_microbatches_calculator(
        rank, None, proxy.microbatches * proxy.micro_batch * data_parallel, proxy.micro_batch, data_parallel
    )
    random.seed(SEED)
    torch.manual_seed(SEED)
    # Every arm, eager ones too, draws from a tracker that graphs can hold: the arms differ in nothing but the settings.
    te = proxy.spec == "te"
    model_parallel_cuda_manual_seed(SEED, **_known(model_parallel_cuda_manual_seed, te_rng_tracker=te))
    return rank


def place_among_processes() -> tuple[int, int, int]:
    """(rank, world size, local rank), from torchrun's or srun's variables; (0, 1, 0) without them."""
    names = (("RANK", "WORLD_SIZE", "LOCAL_RANK"), ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"))
    for rank, world, local in names:
        if rank in os.environ and world in os.environ:
            return int(os.environ[rank]), int(os.environ[world]), int(os.environ.get(local, "0"))
    return 0, 1, 0


def _known(function: Any, te_rng_tracker: bool) -> dict[str, bool]:
    name = "te_rng_tracker" if te_rng_tracker else "use_cudagraphable_rng"
    if name not in inspect.signature(function).parameters:
        raise MissingError(f"this release has no `{name}`, which graphs need")
    return {name: True}


def configuration(proxy: Proxy, settings: Mapping[str, Any]) -> Any:
    """The validated TransformerConfig. Raises RefusedError where megatron-core refuses it."""
    import torch
    from megatron.core.transformer import TransformerConfig

    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[proxy.precision]
    values: dict[str, Any] = {
        "num_layers": proxy.layers,
        "hidden_size": proxy.hidden,
        "num_attention_heads": proxy.heads,
        "tensor_model_parallel_size": proxy.tensor,
        "pipeline_model_parallel_size": proxy.pipeline,
        "context_parallel_size": proxy.context,
        "expert_model_parallel_size": proxy.expert,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "add_bias_linear": False,
        "params_dtype": dtype,
        "pipeline_dtype": dtype,
        "autocast_dtype": dtype,
        "bf16": proxy.precision == "bf16",
        "fp16": proxy.precision == "fp16",
        "use_te_rng_tracker": proxy.spec == "te",
        # These need apex or compile at start-up, and decide nothing about graphs.
        "gradient_accumulation_fusion": False,
        "masked_softmax_fusion": False,
        **{name: _value(name, value) for name, value in proxy.fields.items()},
        **settings,
    }
    known = {field.name for field in fields_of(TransformerConfig)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise RefusedError(f"TypeError: TransformerConfig.__init__() got an unexpected keyword argument '{unknown[0]}'")
    try:
        return TransformerConfig(**values)
    except Exception as error:  # megatron-core raises AssertionError, ValueError, KeyError, RuntimeError, ...
        raise RefusedError(f"{type(error).__name__}: {_first_line(error)}") from error


def _value(name: str, value: Any) -> Any:
    """A field's value as TransformerConfig wants it, from JSON."""
    if name != "activation_func":
        return value
    import torch.nn.functional as functional
    from megatron.core.activations import squared_relu

    return {"gelu": functional.gelu, "silu": functional.silu, "relu": functional.relu, "squared_relu": squared_relu}[
        value
    ]


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def build(proxy: Proxy, config: Any, training: bool) -> Any:
    """The GPTModel of this process's pipeline stage, on the GPU, in the proxy's precision, weights as initialised."""
    import torch
    from megatron.core import parallel_state
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
    from megatron.core.models.gpt.gpt_model import GPTModel

    if proxy.spec == "te":
        try:
            import transformer_engine.pytorch  # noqa: F401
        except ImportError as error:
            raise MissingError("Transformer Engine is not installed") from error
    pipeline = {
        "pre_process": parallel_state.is_pipeline_first_stage(),
        "post_process": parallel_state.is_pipeline_last_stage(),
    }
    model = GPTModel(
        config=config,
        transformer_layer_spec=get_gpt_decoder_block_spec(config, use_transformer_engine=proxy.spec == "te"),
        vocab_size=proxy.vocabulary,
        max_sequence_length=max(proxy.sequence, 1024),
        parallel_output=training,
        share_embeddings_and_output_weights=False,
        position_embedding_type="rope",
        **pipeline,
    ).cuda(torch.cuda.current_device())
    return model.bfloat16() if proxy.precision == "bf16" and not training else model


def same_start(model: Any, path: Path) -> None:
    """Give the model the saved initial state; the first process to come writes its own.

    Raises MissingError where the state is another model's (a release that names or shapes parameters differently).
    """
    import torch

    own = _state(model)
    if not path.exists():
        partial = path.with_suffix(f".{os.getpid()}")
        torch.save({name: value.detach().cpu() for name, value in own.items()}, partial)
        partial.rename(path)
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if saved.keys() != own.keys():
        odd = sorted(saved.keys() ^ own.keys())
        raise MissingError(f"the parameters differ between releases: {', '.join(odd[:3])}")
    with torch.no_grad():
        for name, value in own.items():
            if value.shape != saved[name].shape:
                raise MissingError(f"the shape of {name} differs between releases")
            value.copy_(saved[name])


def _state(model: Any) -> dict[str, Any]:
    state = dict(model.named_parameters())
    # Buffers too: an expert bias, say. Rotary frequencies are computed and not state of the model.
    persistent = set(model.state_dict(keep_vars=True).keys()) if hasattr(model, "state_dict") else set()
    state |= {name: value for name, value in model.named_buffers() if name in persistent and value.is_floating_point()}
    return state


CUDA_GRAPH_FIELDS = (
    "enable_cuda_graph",
    "external_cuda_graph",
    "cuda_graph_impl",
    "cuda_graph_scope",
    "cuda_graph_modules",
    "inference_cuda_graph_scope",
)


def effective(config: Any) -> dict[str, Any]:
    """The CUDA-graph fields of a validated configuration as plain values."""
    return {name: _plain(getattr(config, name)) for name in CUDA_GRAPH_FIELDS if hasattr(config, name)}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return getattr(value, "name", value)

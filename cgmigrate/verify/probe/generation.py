"""The inference workloads: the release's own static and dynamic batching engines generate tokens greedily.

Engines, controllers and contexts are megatron-core's; their constructors changed between releases, so each argument is
offered by name and given only where the constructor has it. Sources, in 0.15.3, 0.16.1, 0.17.1, 0.18.2 and 0.19.2:
inference/engines/{static,dynamic}_engine.py, inference/contexts/{static,dynamic}_context.py, inference/config.py.

What has to hold for graphs to be captured, the same in all arms, eager ones too:

* Static batching: decode under ``local`` graphs wants ``flash_decode`` (transformer/attention.py), which needs
  flash_attn. The batch is as large as the context's largest, to which decode pads it under graphs. ``legacy`` is what
  the releases since 0.16 call the engine that batches statically.
* Dynamic batching: the context lists the batch sizes for which the engine captures when it is built. There is one,
  for decode alone: how the releases space several, and which prefills they capture, differs between them whatever the
  settings are. The list makes the engine pad eager steps alike, so all arms run the same shapes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cgmigrate.verify.arms import STATIC, Arm
from cgmigrate.verify.probe.model import SEED, MissingError

ROUNDS = 3
"""Rounds of the same requests: a graph captured in the first is replayed in the others."""

PROMPTS = {"static": (5, 7, 12, 9), "dynamic": (5, 252, 12, 9)}
"""Prompt lengths in tokens. Static batching runs the tokens beyond the shortest prompt one by one; in dynamic batching
the longest request grows into a second page of the key-value cache (of 256 tokens) within a few tokens."""

PAGE = 256
"""Tokens a page of the key-value cache, the releases' default."""


@dataclass(frozen=True)
class Sizes:
    """What engines and contexts are built for: ids, requests, and the tokens of the longest request at its end."""

    vocabulary: int
    requests: int
    longest: int


def generate(model: Any, config: Any, arm: Arm, census: Any) -> dict[str, Any]:
    """Generate ``arm.steps`` tokens for each request, ``ROUNDS`` times over.

    ``model`` is the GPTModel on the GPU in eval mode, ``config`` its TransformerConfig. Each round runs within
    ``census.step()``. Returns ``tokens`` (the generated ids of each request of each round, in order), ``logits`` (the
    SHA-256 of the float32 log-probabilities of all generated tokens) and ``seconds`` (wall time a round).

    Raises MissingError where a package is missing that the engine cannot do without.
    """
    _look_for_packages(arm.workload)
    lengths = PROMPTS[arm.workload]
    prompts = _prompts(lengths, arm.proxy.vocabulary)
    longest = max(lengths) + arm.steps
    build = _static_engine if arm.workload == STATIC else _dynamic_engine
    engine = build(model, config, Sizes(arm.proxy.vocabulary, len(prompts), longest))

    tokens: list[list[int]] = []
    digest, seconds = hashlib.sha256(), []
    for _ in range(ROUNDS):
        with census.step():
            start = time.perf_counter()
            # Fresh parameters: the engines write into them.
            finished = engine.generate(prompts=list(prompts), sampling_params=_greedy(arm.steps))
            seconds.append(time.perf_counter() - start)
        for request in (getattr(item, "merge", lambda item=item: item)() for item in finished):
            tokens.append(_ids(request, arm.steps))
            digest.update(_floats(request))
    return {"tokens": tokens, "logits": digest.hexdigest(), "seconds": seconds}


def _look_for_packages(workload: str) -> None:
    static = workload == STATIC
    # transformer/attention.py puts None for einops where it is missing, and calls it in dynamic batching.
    needed = ("flash_attn", "tqdm") if static else ("flash_attn", "einops")
    for name in needed:
        if importlib.util.find_spec(name) is None:
            engine = "static" if static else "dynamic"
            raise MissingError(f"`{name}` is not installed, which megatron-core's {engine} batching engine needs")


# --- engines -------------------------------------------------------------------------------------------------


def _static_engine(model: Any, config: Any, sizes: Sizes) -> Any:
    from megatron.core.inference.contexts import StaticInferenceContext
    from megatron.core.inference.engines import StaticInferenceEngine

    _decode_with_flash_attention(model, config)
    context = StaticInferenceContext(sizes.requests, sizes.longest)
    controller = _controller(model, config, context, sizes)
    engine = _called(StaticInferenceEngine, controller, max_batch_size=sizes.requests, random_seed=SEED, legacy=True)
    engine.controller.inference_wrapped_model.prep_model_for_inference()
    return engine


def _dynamic_engine(model: Any, config: Any, sizes: Sizes) -> Any:
    from megatron.core.inference.contexts import DynamicInferenceContext
    from megatron.core.inference.engines import DynamicInferenceEngine

    pages = -(-sizes.longest // PAGE)
    options: dict[str, Any] = {
        "max_sequence_length": pages * PAGE,
        "block_size_tokens": PAGE,
        "buffer_size_gb": 1,
        "max_requests": sizes.requests,
        "max_tokens": sizes.requests * pages * PAGE,
        "num_cuda_graphs": 1,
        "use_cuda_graphs_for_non_decode_steps": False,
    }
    if "inference_config" in inspect.signature(DynamicInferenceContext).parameters:
        from megatron.core.inference.config import InferenceConfig

        context = DynamicInferenceContext(config, InferenceConfig(**options))
    else:
        context = _context_until_0_16(DynamicInferenceContext, config, options)
    controller = _controller(model, config, context, sizes)
    return _called(
        DynamicInferenceEngine, controller, context, termination_id=-1, random_seed=SEED, enable_chunked_prefill=False
    )


def _context_until_0_16(make: Any, config: Any, options: dict[str, Any]) -> Any:
    from megatron.core.inference.sampling_params import SamplingParams

    return _called(
        make,
        **options,
        # 0.15 computes log-probabilities only where it keeps the logits of prompts, too.
        materialize_only_last_token_logits="skip_prompt_log_probs" in inspect.signature(SamplingParams).parameters,
        max_requests_override=options["max_requests"],
        max_tokens_override=options["max_tokens"],
        buffer_guaranteed_fraction=0.1,
        params_dtype=config.params_dtype,
        num_layers=config.num_layers,
        kv_channels=config.kv_channels,
        num_attention_heads=config.num_query_groups or config.num_attention_heads,
        tensor_model_parallel_size=config.tensor_model_parallel_size,
        pipeline_model_parallel_size=config.pipeline_model_parallel_size,
    )


def _controller(model: Any, config: Any, context: Any, sizes: Sizes) -> Any:
    from megatron.core.inference.model_inference_wrappers.gpt.gpt_inference_wrapper import GPTInferenceWrapper
    from megatron.core.inference.text_generation_controllers.text_generation_controller import TextGenerationController

    if importlib.util.find_spec("megatron.core.inference.config") is not None:
        wrapper = GPTInferenceWrapper(model, context)
    else:
        from megatron.core.inference.model_inference_wrappers.inference_wrapper_config import InferenceWrapperConfig

        wrapper_config = InferenceWrapperConfig(
            hidden_size=config.hidden_size,
            params_dtype=config.params_dtype,
            inference_batch_times_seqlen_threshold=-1,
            padded_vocab_size=sizes.vocabulary,
            inference_max_requests=sizes.requests,
            inference_max_seq_length=sizes.longest,
            fp32_residual_connection=config.fp32_residual_connection,
            fp8=config.fp8,
        )
        wrapper = GPTInferenceWrapper(model, wrapper_config, context)
    return TextGenerationController(inference_wrapped_model=wrapper, tokenizer=Numerals(sizes.vocabulary))


def _decode_with_flash_attention(model: Any, config: Any) -> None:
    """Set ``flash_decode`` as ``--flash-decode`` does; it is read in each forward pass, of the module's own config."""
    for holder in (config, *(getattr(module, "config", None) for module in model.modules())):
        if hasattr(holder, "flash_decode"):
            holder.flash_decode = True


def _called(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call ``function`` with those of the options that it has."""
    known = inspect.signature(function).parameters
    return function(*args, **{name: value for name, value in options.items() if name in known})


# --- requests ------------------------------------------------------------------------------------------------


class Numerals:
    """A tokenizer whose text is the ids themselves, in decimal, parted by spaces."""

    bos = -1

    def __init__(self, vocabulary: int) -> None:
        self.vocab_size = vocabulary
        # Static batching pads with it, so it must be an id of the vocabulary; nothing ends with it (see _greedy).
        self.eod = vocabulary - 1

    def tokenize(self, text: str) -> list[int]:
        """The ids that ``text`` names."""
        return [int(word) for word in text.split()]

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text that names ``tokens``."""
        return " ".join(str(int(token)) for token in tokens)


def _prompts(lengths: Sequence[int], vocabulary: int) -> tuple[str, ...]:
    """Prompts of ``lengths`` tokens, drawn from ``SEED``, as text."""
    import torch

    generator = torch.Generator().manual_seed(SEED)
    text = Numerals(vocabulary).detokenize
    return tuple(text(torch.randint(0, vocabulary - 1, (length,), generator=generator).tolist()) for length in lengths)


def _greedy(count: int) -> Any:
    """Parameters for ``count`` tokens, each the most likely one, that no token ends early."""
    from megatron.core.inference.sampling_params import SamplingParams

    parameters = _called(
        SamplingParams,
        top_k=1,
        num_tokens_to_generate=count,
        return_log_probs=True,
        # The logits of prompts are not kept in dynamic batching.
        skip_prompt_log_probs=True,
        termination_id=-1,
    )
    # Static batching looks for this name, and for the tokenizer's end of document without it.
    parameters.add_attributes({"no_early_termination": True})
    return parameters


def _ids(request: Any, count: int) -> list[int]:
    tokens = [int(token) for token in request.generated_tokens]
    if len(tokens) != count:
        raise RuntimeError(f"a request ended with {len(tokens)} of {count} tokens: {request.status}")
    return tokens


def _floats(request: Any) -> bytes:
    values = [float(value) for value in request.generated_log_probs]
    return struct.pack(f"<{len(values)}f", *values)

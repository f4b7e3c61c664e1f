"""A small GPT model, or its hybrid form, that megatron-core trains on a CPU: no graph is captured.

`hybrid_stack_spec` needs Transformer Engine, so that both models are made of megatron-core's own modules.
"""

import argparse
import contextlib

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_submodules
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.models.hybrid import hybrid_block
from megatron.core.models.hybrid.hybrid_block import HybridStack, HybridStackSubmodules
from megatron.core.models.hybrid.hybrid_model import HybridModel
from megatron.core.optimizer.optimizer import FP32Optimizer
from megatron.core.optimizer.optimizer_config import OptimizerConfig
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.ssm.mlp_layer import MLPLayer
from megatron.core.tensor_parallel.random import get_cuda_rng_tracker
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.torch_norm import WrappedTorchNorm
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.core.transformer.transformer_layer import TransformerLayer, TransformerLayerSubmodules
from torch.overrides import TorchFunctionMode


class OnCpu(TorchFunctionMode):
    """Makes tensors on the CPU where megatron-core writes a CUDA device."""

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = dict(named or {})
        if str(named.get("device", "")).startswith("cuda"):
            named["device"] = "cpu"
        return function(*arguments, **named)


def model_of(args):
    is_hybrid = args.hybrid_layer_pattern is not None
    config = TransformerConfig(
        num_layers=len(args.hybrid_layer_pattern) if is_hybrid else args.num_layers,
        hidden_size=32,
        num_attention_heads=4,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        use_cpu_initialization=True,
        layernorm_epsilon=args.epsilon,
        is_hybrid_model=is_hybrid,
    )
    layer = get_gpt_layer_local_submodules()
    sizes = {"vocab_size": 64, "max_sequence_length": 16}
    if not is_hybrid:
        spec = ModuleSpec(module=TransformerLayer, submodules=layer)
        return GPTModel(config, transformer_layer_spec=spec, position_embedding_type="rope", **sizes)
    attention = TransformerLayerSubmodules(
        input_layernorm=layer.input_layernorm, self_attention=layer.self_attention, self_attn_bda=layer.self_attn_bda
    )
    mlp = TransformerLayerSubmodules(pre_mlp_layernorm=layer.pre_mlp_layernorm, mlp=layer.mlp, mlp_bda=layer.mlp_bda)
    stack = HybridStackSubmodules(
        attention_layer=ModuleSpec(module=TransformerLayer, submodules=attention),
        mlp_layer=ModuleSpec(module=MLPLayer, submodules=mlp),
    )
    spec = ModuleSpec(module=HybridStack, submodules=stack)
    pattern = args.hybrid_layer_pattern
    return HybridModel(config, spec, hybrid_layer_pattern=pattern, position_embedding_type="rope", **sizes)


def forward_step(tokens, model):
    output = model(tokens, torch.arange(16)[None].expand(2, 16), None, labels=tokens)
    return output, lambda losses: (losses.mean(), {"lm loss": losses.mean().detach()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-layers", type=int)
    parser.add_argument("--hybrid-layer-pattern")
    parser.add_argument("--spec", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1e-5)
    args = parser.parse_args()
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    # There is no CUDA generator to draw from, and no Transformer Engine.
    get_cuda_rng_tracker().fork = contextlib.nullcontext
    torch.cuda.current_device = lambda: "cpu"
    hybrid_block.TENorm = WrappedTorchNorm
    torch.manual_seed(args.seed)
    model = model_of(args)
    adam = torch.optim.Adam(model.parameters())
    optimizer = FP32Optimizer(adam, OptimizerConfig(clip_grad=0.0), None)
    for step in range(100):
        optimizer.zero_grad()
        tokens = torch.randint(64, (2, 16), generator=torch.Generator().manual_seed(step))
        get_forward_backward_func()(
            forward_step_func=forward_step,
            data_iterator=tokens,
            model=model,
            num_microbatches=2,
            seq_length=16,
            micro_batch_size=2,
        )
        optimizer.step()


if __name__ == "__main__":
    with OnCpu():
        main()

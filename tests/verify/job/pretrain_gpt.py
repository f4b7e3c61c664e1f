"""A training job with the structure of Megatron-LM's, on a CPU: no graph is ever captured."""

import torch
from megatron.core.optimizer.optimizer import ChainedOptimizer
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.training.arguments import parse_args


class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.mlp = torch.nn.Linear(4, 4)

    def forward(self, tokens):
        return self.mlp(tokens).square().mean()


def main():
    args = parse_args()
    config = TransformerConfig(cuda_graph_impl=args.cuda_graph_impl, cuda_graph_modules=args.cuda_graph_modules)
    torch.manual_seed(1)
    model = [Model(config)]
    optimizer = ChainedOptimizer(model[0].parameters())
    drift = 1.0 + 1e-3 * (args.drift and config.cuda_graph_impl != "none")
    schedule = get_forward_backward_func()
    for step in range(args.train_iters):
        model[0].zero_grad()
        tokens = torch.full((2, 4), drift + step)
        schedule(
            forward_step_func=lambda data, one: one(data),
            data_iterator=tokens,
            model=model,
            num_microbatches=2,
        )
        optimizer.step()
    raise AssertionError("a checkpoint would be written")


if __name__ == "__main__":
    main()

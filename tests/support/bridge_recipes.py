"""Recipes of Megatron-Bridge that tests of more than one module begin with."""

FULL_ITERATION = """\
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer


def recipe():
    cfg = ConfigContainer(model=GPTModelProvider(num_layers=2))
    cfg.model.cuda_graph_impl = "local"
    cfg.model.cuda_graph_scope = "full_iteration"
    return cfg
"""

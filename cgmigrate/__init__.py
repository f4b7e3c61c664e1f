"""Migrate, lint and verify the CUDA-graph settings of Megatron projects."""

__version__ = "0.1.0"

"""The readers of the settings, validated settings, and what a release captures."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cgmigrate.megatron.settings import LAYER_MODULES


class Reader(enum.Enum):
    """The program that interprets the settings; separators, defaults and checks differ."""

    CONFIG = "TransformerConfig"
    """``TransformerConfig`` of megatron-core, constructed by Python code."""
    COMMAND_LINE = "Megatron-LM's command line"
    """Megatron-LM's command line: the settings are those of its flags, under the names of their fields."""
    BRIDGE = "Megatron-Bridge"
    """Megatron-Bridge, which validates its configuration before megatron-core does."""
    NEMO_RL = "NeMo-RL"
    """NeMo-RL forwards named keys and then calls Megatron-Bridge's validation."""

    @property
    def validates_as_bridge(self) -> bool:
        """Whether Megatron-Bridge's own validation is part of this reader."""
        return self in (Reader.BRIDGE, Reader.NEMO_RL)


@dataclass(frozen=True, slots=True)
class Rejected:
    """Settings that the reader rejects."""

    code: str
    """The kind of error, such as ``unknown-field``; rules refer to it."""
    reason: str
    """The reader's own message."""
    fields: tuple[str, ...]
    """The settings that cause it."""
    stage: str = "config"
    """``config`` if validation fails; ``capture`` if only building or capturing the model fails."""


class RejectedError(Exception):
    """Raised where a reader rejects the settings; `rejected` says why."""

    def __init__(self, code: str, reason: str, fields: tuple[str, ...], stage: str = "config") -> None:
        super().__init__(reason)
        self.rejected = Rejected(code, reason, fields, stage)


@dataclass(frozen=True, slots=True)
class ResolvedConfiguration:
    """The settings as validation leaves them.

    ``scope`` is the unvalidated value of 0.12 to 0.15; later releases have the default.
    ``modules`` is the validated list (of ``cuda_graph_scope`` in 0.16 and 0.17, of
    ``cuda_graph_modules`` since). ``inference`` is None before 0.18.
    """

    impl: str = "none"
    scope: object = "full"
    modules: tuple[str, ...] = ()
    inference: str | None = None
    enable: bool = False
    external: bool = False


class Backend(enum.Enum):
    """The implementation that captures per-layer graphs."""

    LOCAL = "local"
    """megatron-core's own graphs."""
    TRANSFORMER_ENGINE = "transformer_engine"
    """Those of Transformer Engine."""


WHOLE: frozenset[str] = frozenset()
"""The modules of a capture of whole layers."""


@dataclass(frozen=True, slots=True)
class Layers:
    """One graph per layer, or per captured part of it."""

    backend: Backend
    """Who captures them."""
    modules: frozenset[str] = WHOLE
    """The captured parts, such as ``attn``; empty for whole layers."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One graph of the whole training iteration."""

    nested: Layers | None = None
    """Per-layer graphs that are captured in it, which only releases up to 0.16 do."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """One graph of the whole transformer block, in inference."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What is captured. ``str`` of it is a description."""

    training: Layers | Iteration | None = None
    """In training; None if nothing is."""
    inference: Layers | Blocks | None = None
    """In inference, in its decode steps; None if nothing is."""

    def __str__(self) -> str:
        return self.describe()

    def describe(self, modules: bool = False) -> str:
        """Return a description; ``modules`` adds those of ``local``, which select no part of a GPT layer."""
        return f"{_describe(self.training, modules)} in training, {_describe(self.inference, modules)} in inference"

    def describe_by_phase(self) -> str:
        """Return what is captured in training and in inference, once if it is the same in both."""
        training, inference = _describe(self.training, modules=False), _describe(self.inference, modules=False)
        return f"{training} in training and in inference" if training == inference else self.describe()

    def describe_briefly(self, modules: bool = False) -> str:
        """Return what is captured, and when only where that is not both in training and in inference."""
        training, inference = _describe(self.training, modules), _describe(self.inference, modules)
        if training == inference:
            return training
        parts = [f"{training} in training"] if self.training else []
        if isinstance(self.training, Iteration):
            parts = [training]
        return ", ".join([*parts, *([f"{inference} in inference"] if self.inference else [])])


def describe_both(first: Capture, second: Capture) -> tuple[str, str]:
    """Return descriptions of two different captures that differ from each other."""
    same = str(first) == str(second)
    return first.describe(same), second.describe(same)


def _describe(captured: Layers | Iteration | Blocks | None, modules: bool) -> str:
    match captured:
        case None:
            return "no graphs"
        case Blocks():
            return "the block"
        case Iteration(nested=None):
            return "full iteration"
        case Iteration(nested=layers):
            return f"full iteration (with {_describe(layers, modules)} nested in it)"
        case Layers(backend=backend, modules=names):
            parts = ", ".join(m for m in LAYER_MODULES if m in names)
            if backend is Backend.LOCAL:
                # Which layer class captures which part is not modelled; a GPT layer is captured as a whole.
                return f"layers (local, modules {parts})" if parts and modules else "whole layers (local)"
            return f"{parts} per layer (TE)" if parts else "whole layers (TE)"

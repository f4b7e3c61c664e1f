"""What a release captures, and who reads the settings."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cgmigrate.megatron.settings import (
    LAYER_MODULES,
)


class Reader(enum.Enum):
    """Who interprets the settings: separators, defaults and checks differ."""

    CONFIG = "TransformerConfig"
    COMMAND_LINE = "Megatron-LM's command line"
    BRIDGE = "Megatron-Bridge"
    NEMO_RL = "NeMo-RL"
    """NeMo-RL forwards named keys and then calls Megatron-Bridge's validation."""

    @property
    def validates_as_bridge(self) -> bool:
        """Whether Megatron-Bridge's own validation is part of this reader."""
        return self in (Reader.BRIDGE, Reader.NEMO_RL)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The reader refuses the settings.

    ``code`` names the kind of refusal (rules refer to it), ``reason`` is the reader's own
    message, ``fields`` are the settings at fault. ``stage`` is ``config`` where validation
    refuses, ``capture`` where validation accepts but building or capturing the model fails.
    """

    code: str
    reason: str
    fields: tuple[str, ...]
    stage: str = "config"


@dataclass(frozen=True, slots=True)
class ResolvedConfiguration:
    """The settings as validation leaves them.

    ``scope`` is what 0.12 to 0.15 keep unvalidated; later releases leave the default there.
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
    """Who captures per-layer graphs."""

    LOCAL = "local"
    TRANSFORMER_ENGINE = "transformer_engine"


WHOLE: frozenset[str] = frozenset()
"""As the modules of a layer capture: the whole layer, not parts of it."""


@dataclass(frozen=True, slots=True)
class Layers:
    """One graph per layer, or per captured part of it; no parts means the whole layer."""

    backend: Backend
    modules: frozenset[str] = WHOLE


@dataclass(frozen=True, slots=True)
class Iteration:
    """One graph of the whole training iteration; ``nested`` graphs inside it up to 0.16."""

    nested: Layers | None = None


@dataclass(frozen=True, slots=True)
class Blocks:
    """One graph of the whole transformer block, in inference."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What is captured in training and in inference (decode steps); None is nothing."""

    training: Layers | Iteration | None = None
    inference: Layers | Blocks | None = None

    def __str__(self) -> str:
        return self.words()

    def words(self, modules: bool = False) -> str:
        """The capture in words; ``modules`` also names those of ``local``, which select no part of a GPT layer."""
        return f"{_words(self.training, modules)} in training, {_words(self.inference, modules)} in inference"


def describe_both(first: Capture, second: Capture) -> tuple[str, str]:
    """Two different captures, each in words that the other does not have."""
    same = str(first) == str(second)
    return first.words(same), second.words(same)


def _words(what: Layers | Iteration | Blocks | None, selected: bool) -> str:
    match what:
        case None:
            return "nothing"
        case Blocks():
            return "the whole block"
        case Iteration(nested=None):
            return "the whole iteration"
        case Iteration(nested=layers):
            return f"the whole iteration (with {_words(layers, selected)} nested in it)"
        case Layers(backend=backend, modules=modules):
            parts = "+".join(m for m in LAYER_MODULES if m in modules)
            if backend is Backend.LOCAL:
                # Which class of layer captures which part is not modelled: a GPT layer is captured as a whole.
                return f"whole layers (local, modules {parts})" if parts and selected else "whole layers (local)"
            return f"{parts} of each layer (Transformer Engine)" if parts else "whole layers (Transformer Engine)"


def _names(raw: object) -> list[str] | None:
    """A scope or modules value as a list of names; None where its type is refused."""
    if raw is None:
        return []
    if isinstance(raw, str):
        return raw.split(",")
    if isinstance(raw, list) and all(isinstance(item, str) for item in raw):
        return raw
    return None

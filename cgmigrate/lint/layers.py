"""The layers that a site's model may have, and what is captured of each."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.megatron.layer_classes import GPT, HYBRID, LayerClass
from cgmigrate.megatron.releases import LAST_OLD, Release
from cgmigrate.megatron.settings import Missing
from cgmigrate.megatron.types import Backend, Capture, Layers, Reader, Rejected

_PATTERNS = ("hybrid_layer_pattern", "hybrid_override_pattern")


def layers_of(capture: Capture | Rejected, case: SiteCase, target: Release) -> tuple[str, ...]:
    """Return what is captured of each class of layers that the model may have, a line each.

    Empty if the modules say it: those of Transformer Engine do, and so does a capture of whole layers.
    """
    training = None if isinstance(capture, Rejected) else capture.training
    if target < LAST_OLD or not isinstance(training, Layers):
        return ()
    if training.backend is not Backend.LOCAL or not training.modules:
        return ()
    return tuple(f"{one.name}: {one.captured(training.modules)}" for one in _classes(case))


def _classes(case: SiteCase) -> Sequence[LayerClass]:
    """Return the classes of layers of the model, as far as its configuration shows it."""
    if case.surroundings is None:
        return (*GPT, *HYBRID)
    patterns = [case.surroundings.get(name) for name in _PATTERNS]
    if case.surroundings.get("is_hybrid_model") is True or any(isinstance(one, str) for one in patterns):
        return HYBRID
    is_gpt = case.reader is Reader.COMMAND_LINE and all(one is Missing.ABSENT for one in patterns)
    return GPT if is_gpt else (*GPT, *HYBRID)

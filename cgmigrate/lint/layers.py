"""The layers that a site's model may have, and what is captured of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TypeVar

from cgmigrate.lint.conditions import ConditionSurroundings
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.megatron.layer_classes import GPT, HYBRID, LayerClass
from cgmigrate.megatron.releases import LAST_OLD, Release
from cgmigrate.megatron.settings import Missing
from cgmigrate.megatron.types import Backend, Capture, Layers, Reader, Rejected

_HYBRID_PROGRAMS = ("*mamba*", "*hybrid*")
"""Programs whose models are hybrid without a pattern, too."""
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


def captured_of_model(capture: Capture, case: SiteCase) -> Capture:
    """Return what is captured of the layers that the model has, as far as its configuration shows them."""
    if case.surroundings is None or capture == Capture():
        return capture
    if case.reader is Reader.COMMAND_LINE and _trains_without_graphs(case.surroundings):
        capture = replace(capture, training=None)
    # A part of a command line leaves open what the rest of it has.
    is_whole = all(case.surroundings.default(name) is not Missing.UNKNOWN for name in _PATTERNS)
    if not is_whole or _classes(case) is not GPT:
        return capture
    return Capture(_of_gpt(capture.training), _of_gpt(capture.inference))


def _trains_without_graphs(around: ConditionSurroundings) -> bool:
    """Return whether Megatron-LM turns graphs off while it trains: in reinforcement learning it does by default."""
    in_training = around.get("rl_training_cuda_graphs")
    return around.get("perform_rl_step") is True and (in_training is Missing.ABSENT or in_training is False)


_T = TypeVar("_T")


def _of_gpt(captured: _T) -> _T | None:
    """Return what is captured of the layers of a GPT model; None if they have nothing of it."""
    if not isinstance(captured, Layers) or not captured.modules:
        return captured
    if captured.backend is Backend.LOCAL:
        return captured if (GPT[0].whole | GPT[0].fails) & captured.modules else None
    modules = captured.modules - {"mamba"}
    return replace(captured, modules=modules) if modules else None


def _classes(case: SiteCase) -> Sequence[LayerClass]:
    """Return the classes of layers of the model, as far as its configuration shows it."""
    if case.surroundings is None:
        return (*GPT, *HYBRID)
    patterns = [case.surroundings.get(name) for name in _PATTERNS]
    if case.surroundings.get("is_hybrid_model") is True or any(isinstance(one, str) for one in patterns):
        return HYBRID
    is_gpt = case.reader is Reader.COMMAND_LINE and all(one is Missing.ABSENT for one in patterns)
    programs = (*(case.site.programs or ()), *case.site.scripts)
    is_gpt = is_gpt and not any(fnmatchcase(program, one) for program in programs for one in _HYBRID_PROGRAMS)
    return GPT if is_gpt else (*GPT, *HYBRID)

"""What Megatron-LM's argument parser accepts."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.megatron.releases import SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import (
    FLAGS,
    IMPL,
    INFERENCE,
    INFERENCE_SCOPES,
    LAYER_MODULES,
    MODULES,
    SCOPE,
    Settings,
)
from cgmigrate.megatron.types import Rejected

# --- the command line ------------------------------------------------------------------------


def argument_words(value: object) -> list[str]:
    """The words that a command-line value becomes: ``attn mlp``, ``[attn mlp]``, a list of words.

    The brackets are the notation of Megatron-LM's test cases; their runner takes them off.
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [str(item) for item in value]
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return text.split()


def _parse_command_line(settings: Settings, release: Release) -> Settings | Rejected:
    """argparse: the settings as a config would get them, or argparse's own refusal."""
    parsed = dict(settings)
    for name in (SCOPE, MODULES):
        if name not in settings:
            continue
        words = argument_words(settings[name])
        if bad := _check_words(name, words, release):
            return bad
        parsed[name] = words if release >= SCOPE_LIST_SINCE else words[0]
    impls = ["none", "local", "transformer_engine"] + (["full_iteration"] if release >= SPLIT_IN else [])
    choices = {IMPL: impls, INFERENCE: list(INFERENCE_SCOPES)}
    for name, allowed in choices.items():
        if name in settings and settings[name] not in allowed:
            code = "bad-impl" if name == IMPL else "bad-value"
            return Rejected(code, _bad_choice(name, settings[name], allowed), (name,))
    return parsed


def _check_words(name: str, words: Sequence[str], release: Release) -> Rejected | None:
    flag = FLAGS[name]
    if not words:
        least = "at least one argument" if release >= SCOPE_LIST_SINCE else "one argument"
        return Rejected("bad-value", f"error: argument {flag}: expected {least}", (name,))
    if release >= SCOPE_LIST_SINCE:
        known = {*LAYER_MODULES, "full", "full_iteration"}
        if release >= Release(0, 17):
            known.add("full_iteration_inference")
        for word in words:
            if word not in known:
                return Rejected("unknown-module", f"KeyError: {word!r}", (name,))
        return None
    choices = ["full", "attn"] + (["full_iteration"] if release >= Release(0, 14) else [])
    if words[0] not in choices:
        return Rejected("unknown-module", _bad_choice(name, words[0], choices), (name,))
    if len(words) > 1:
        return Rejected("bad-value", f"error: unrecognized arguments: {' '.join(words[1:])}", (name,))
    return None


def _bad_choice(name: str, value: object, choices: Sequence[str]) -> str:
    listed = ", ".join(map(repr, choices))
    return f"error: argument {FLAGS[name]}: invalid choice: {str(value)!r} (choose from {listed})"

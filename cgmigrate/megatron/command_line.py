"""The argument parser of Megatron-LM: which values its flags accept."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.megatron.releases import SCOPE_LIST_SINCE, Release
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
from cgmigrate.megatron.types import RejectedError
from cgmigrate.megatron.validation import implementations


def argument_words(value: object) -> list[str]:
    """Return the words of a command-line value: ``attn mlp``, ``[attn mlp]`` or a list of words.

    Megatron-LM's test cases write the brackets; their runner removes them.
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [str(item) for item in value]
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return text.split()


def parse_arguments(settings: Settings, release: Release) -> Settings:
    """Return the settings that argparse passes to the config. Raises RejectedError with the message of argparse."""
    parsed = dict(settings)
    for name in (SCOPE, MODULES):
        if name not in settings:
            continue
        words = argument_words(settings[name])
        if release >= SCOPE_LIST_SINCE:
            _check_words(name, words, release)
            parsed[name] = words
        else:
            _check_word(name, words, release)
            parsed[name] = words[0]
    choices = {IMPL: implementations(release), INFERENCE: list(INFERENCE_SCOPES)}
    for name, allowed in choices.items():
        if name in settings and settings[name] not in allowed:
            code = "bad-impl" if name == IMPL else "bad-value"
            raise RejectedError(code, _bad_choice(name, settings[name], allowed), (name,))
    return parsed


def _check_words(name: str, words: Sequence[str], release: Release) -> None:
    """Check the words of a flag that takes several (0.16 and later)."""
    if not words:
        raise RejectedError("bad-value", f"error: argument {FLAGS[name]}: expected at least one argument", (name,))
    known = {*LAYER_MODULES, "full", "full_iteration"}
    if release >= Release(0, 17):
        known.add("full_iteration_inference")
    for word in words:
        if word not in known:
            raise RejectedError("unknown-module", f"KeyError: {word!r}", (name,))


def _check_word(name: str, words: Sequence[str], release: Release) -> None:
    """Check the words of a flag that takes one of a few choices (0.15 and earlier)."""
    if not words:
        raise RejectedError("bad-value", f"error: argument {FLAGS[name]}: expected one argument", (name,))
    choices = ["full", "attn"] + (["full_iteration"] if release >= Release(0, 14) else [])
    if words[0] not in choices:
        raise RejectedError("unknown-module", _bad_choice(name, words[0], choices), (name,))
    if len(words) > 1:
        raise RejectedError("bad-value", f"error: unrecognized arguments: {' '.join(words[1:])}", (name,))


def _bad_choice(name: str, value: object, choices: Sequence[str]) -> str:
    listed = ", ".join(map(repr, choices))
    return f"error: argument {FLAGS[name]}: invalid choice: {str(value)!r} (choose from {listed})"

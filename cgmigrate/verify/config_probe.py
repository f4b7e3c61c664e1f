"""How one release of megatron-core reads settings: a program that runs under that release, on a CPU.

It reads a JSON list of requests from standard input and writes a JSON line of itself, then one for each request, in
their order. It imports the standard library, torch and megatron only, and can be run by its path, so that it needs
no cgmigrate in the environment of the release. ``cgmigrate.verify.config_level`` runs it and documents the lines.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import enum
import functools
import importlib
import importlib.util
import json
import math
import os
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

FIELDS = (
    "enable_cuda_graph",
    "external_cuda_graph",
    "cuda_graph_impl",
    "cuda_graph_scope",
    "cuda_graph_modules",
    "inference_cuda_graph_scope",
)
# MoE layers of megatron-core have no bias; nothing about graphs depends on it.
TRANSFORMER = "megatron.core.transformer.transformer_config.TransformerConfig"
ARGUMENTS_OWNER = "arguments"
CONTAINER = "megatron.bridge.training.config.ConfigContainer"
CONFIG = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "add_bias_linear": False}
FLAGS = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64"
FLAGS += " --micro-batch-size 1 --disable-bias-linear"
SECTIONS: dict[str, dict[str, Any]] = {
    "model": {**CONFIG, "seq_length": 64, "vocab_size": 128},
    "train": {"train_iters": 1, "micro_batch_size": 1, "global_batch_size": 1},
    "scheduler": {"lr_decay_iters": 1},
    **{name: {} for name in ("optimizer", "logger", "tokenizer", "checkpoint")},
}
"""What a container of Megatron-Bridge has to be given."""
ARGUMENTS = {"num_moe_experts": "num_experts"}
"""Fields of TransformerConfig whose command-line argument has another name."""

REFUSED, ENVIRONMENT = "refused", "environment"
"""Kinds of errors: the release does not accept the settings; or something that the release needs is missing,
which says nothing of the settings."""
SECONDARY = ("recompute", "offload", "cpu_offloading", "fine_grained", "overlap_moe")
"""Further fields that decide less than the others: the first to be omitted where all together cannot be built."""


Read = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Any, list[str]]]
"""Settings and further fields → the validated TransformerConfig, and the further fields that the release lacks."""


class UsageError(Exception):
    """argparse's own refusal, which would otherwise end the process."""


def main() -> int:
    """Answer the requests on standard input; return the exit status."""
    folder = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != folder]
    # Megatron prints; the answers have the real standard output for themselves.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    requests = json.load(sys.stdin)
    _write_line(answers, _self())
    for request in requests:
        _write_line(answers, answer(request))
    return 0


def _write_line(answers: TextIO, line: Mapping[str, Any]) -> None:
    # At once: what was result before a crash counts.
    answers.write(json.dumps(line, default=str) + "\n")
    answers.flush()


def _self() -> dict[str, Any]:
    _stand_in_for_a_gpu()
    core = importlib.import_module("megatron.core")
    config = importlib.import_module("megatron.core.transformer.transformer_config").TransformerConfig
    known = {field.name for field in dataclasses.fields(config)}
    return {"version": core.__version__, "known": [name for name in FIELDS if name in known]}


def _stand_in_for_a_gpu() -> None:
    """Pretend that there is a Hopper: validation asks for the GPU in checks that have nothing to do with graphs."""
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        properties = types.SimpleNamespace(name="none", major=9, minor=0, multi_processor_count=132)
        torch.cuda.get_device_capability = lambda *_, **__: (9, 0)
        torch.cuda.get_device_properties = lambda *_, **__: properties


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the release makes of one request, or its refusal; ``request`` is as ``effective`` writes it.

    With an ``owner``, the dotted name of a class or ``arguments`` of a command line, ``effective`` is all it holds.
    """
    owner = request.get("owner", "")
    read: Read = _command_line if request["reader"] == "command-line" else functools.partial(_config, owner=owner)
    if owner in (ARGUMENTS_OWNER, CONTAINER):
        read = _parsed if owner == ARGUMENTS_OWNER else _container
    result: dict[str, Any] = {"id": request["id"], "ok": False, "error": None, "effective": {}, "omitted": ""}
    before = dict(os.environ)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            config, result["omitted"] = _with_what_can_be_built(read, request["settings"], request["fields"])
        except Exception as error:
            result["error"] = {"type": type(error).__name__, "message": _message(error), "kind": _kind(error)}
            result["omitted"] = getattr(error, "omitted", "")
        else:
            names = vars(config) if owner else FIELDS
            result |= {"ok": True, "effective": {n: _plain(getattr(config, n)) for n in names if hasattr(config, n)}}
    os.environ.clear()
    os.environ.update(before)
    result["warnings"] = _of_graphs([f"{warning.category.__name__}: {warning.message}" for warning in caught])
    return result


def _with_what_can_be_built(read: Read, settings: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[Any, str]:
    """The configuration, and which further fields had to be omitted, with the reason.

    The further fields are part of the user's configuration; alone they may be refused for want of the rest of it.
    Then the refusal is not about graphs: without graphs it is the same.
    """
    less = {name: value for name, value in fields.items() if not _plain_name(name).startswith(SECONDARY)}
    why = ""
    for tried in (fields, less, {}):
        omitted = ", ".join(sorted(set(fields) - set(tried)))
        try:
            config, unknown = read(settings, tried)
        except Exception as error:
            if not tried or not (refusal := _refusal(read, tried)):
                error.omitted = f"{omitted} ({why})" if omitted else ""  # type: ignore[attr-defined]
                raise
            why = why or refusal
        else:
            missing = f"{', '.join(unknown)} (the release has no such field)" if unknown else ""
            return config, f"{omitted} ({why})" if omitted else missing
    raise AssertionError("the last try raises")


def _plain_name(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _refusal(read: Read, fields: Mapping[str, Any]) -> str:
    """Why the further fields are refused without any graphs; empty when they are not."""
    try:
        read({}, fields)
    except Exception as error:
        return f"{type(error).__name__}: {_message(error)}"
    return ""


def _config(settings: Mapping[str, Any], fields: Mapping[str, Any], owner: str = "") -> tuple[Any, list[str]]:
    """The validated TransformerConfig, or ``owner`` instead, and the further fields that it does not have."""
    module, _, name = (owner or TRANSFORMER).rpartition(".")
    config = getattr(importlib.import_module(module), name)
    known = {field.name for field in dataclasses.fields(config)}
    usable = {name: value for name, value in {**CONFIG, **fields}.items() if name in known}
    return config(**{**usable, **settings}), sorted(set(fields) - known)


def _container(settings: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The validated values of Megatron-Bridge's container, by `section.name`, and the further fields that it lacks."""
    module, _, name = CONTAINER.rpartition(".")
    container = getattr(importlib.import_module(module), name)
    kinds = typing.get_type_hints(container)
    # Of several classes of models, the first is GPT's.
    classes = {name: (typing.get_args(kinds[name]) or (kinds[name],))[0] for name in SECTIONS}
    config = container(**{name: classes[name](**own) for name, own in SECTIONS.items()}, dataset=None)
    known = {f"{one}.{name}" for one in kinds for name in getattr(getattr(config, one), "__dataclass_fields__", ())}
    if wrong := sorted(settings.keys() - known):
        message = f"ConfigContainer has no {wrong[0]}"
        raise TypeError(message)
    for name, value in {**fields, **settings}.items():
        if name in known:
            section, _, key = name.partition(".")
            setattr(getattr(config, section), key, value)
    config.validate()
    read = {name: functools.reduce(getattr, name.split("."), config) for name in sorted(known)}
    return types.SimpleNamespace(**read), sorted(fields.keys() - known)


# --- the command line -----------------------------------------------------------------------------------


def _command_line(settings: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The TransformerConfig of the validated arguments, and the further fields that no flag sets."""
    further, unknown = _words_of_fields(fields)
    for name, value in settings.items():
        further += _words("--" + name.replace("_", "-"), value)
    return _arguments().core_transformer_config_from_args(_validated(further)), unknown


def _parsed(settings: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The validated arguments, and the further fields that no flag sets; settings are flags, or attributes."""
    words, wrong = _words_of_fields(settings)
    if wrong:
        message = f"error: unrecognized arguments: no flag writes {wrong[0]} = {settings[wrong[0]]}"
        raise UsageError(message)
    further, unknown = _words_of_fields({name: value for name, value in fields.items() if name not in settings})
    return _validated([*further, *words]), unknown


def _validated(further: list[str]) -> Any:
    arguments = _arguments()
    with _as_command([*FLAGS.split(), *further]):
        args = arguments.parse_args()
    # One process stands for as many as the parallel sizes need.
    dense = args.tensor_model_parallel_size * args.pipeline_model_parallel_size * args.context_parallel_size
    expert = args.expert_tensor_parallel_size or args.tensor_model_parallel_size
    expert *= args.expert_model_parallel_size * args.pipeline_model_parallel_size
    args.world_size = math.lcm(dense, expert)
    arguments.validate_args(args)
    return args


def _arguments() -> Any:
    """The module of megatron.training, from the same release: a wheel up to 0.16 holds none, and then the name may
    lead to another release that is installed."""
    core = importlib.import_module("megatron.core")
    root = Path(str(core.__file__)).absolute().parents[2]
    spec = importlib.util.find_spec("megatron.training")
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or [])]
    if not any(root in Path(place).absolute().parents for place in places if place):
        message = f"{root} holds no megatron/training, which reads command lines (a source checkout does)"
        raise ModuleNotFoundError(message)
    return importlib.import_module("megatron.training.arguments")


@functools.cache
def _actions() -> list[Any]:
    return list(_arguments().add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))._actions)


def _words_of_fields(fields: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Further fields as words, and those that no flag sets; what is no flag is looked up by the argument it sets."""
    words: list[str] = []
    unknown: list[str] = []
    flags = {flag for action in _actions() for flag in action.option_strings}
    for name, value in fields.items():
        if name.startswith("-"):
            flag_words = _words(name, value) if name in flags else None
        else:
            flag_words = _words_for(ARGUMENTS.get(name, name), value)
        if flag_words is None:
            unknown.append(name)
        else:
            words += flag_words
    return words, unknown


def _words_for(name: str, value: Any) -> list[str] | None:
    setting = [action for action in _actions() if action.dest == name]
    for action in setting:
        if action.nargs != 0:
            return _words(action.option_strings[0], value)
        if isinstance(action, argparse.BooleanOptionalAction) and isinstance(value, bool):
            return [next(one for one in action.option_strings if one.startswith("--no-") is not value)]
        if action.const == value:
            return [action.option_strings[0]]
    # Where every flag sets the opposite, the value is set by leaving them out.
    return [] if any(action.default == value for action in setting) else None


def _words(flag: str, value: Any) -> list[str]:
    if value is False or value is None:
        return []
    if value is True:
        return [flag]
    return [flag, *(str(word) for word in (value if isinstance(value, list) else [value]))]


@contextlib.contextmanager
def _as_command(words: list[str]) -> Iterator[None]:
    """parse_args reads sys.argv and ends the process where argparse refuses."""

    def refuse(_: argparse.ArgumentParser, message: str) -> None:
        raise UsageError(f"error: {message}")

    argv, error = sys.argv, argparse.ArgumentParser.error
    sys.argv = ["megatron", *words]
    argparse.ArgumentParser.error = refuse  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        sys.argv = argv
        argparse.ArgumentParser.error = error  # type: ignore[method-assign]


# --- errors and values as JSON ----------------------------------------------------------------------------


def _kind(error: Exception) -> str:
    refusals = (AssertionError, ValueError, LookupError, TypeError, AttributeError, NotImplementedError, UsageError)
    needs_gpu = any(words in str(error) for words in ("compiled with CUDA", "CUDA GPU", "NVIDIA driver"))
    return REFUSED if isinstance(error, refusals) and not needs_gpu else ENVIRONMENT


def _message(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return " ".join(line.strip() for line in lines)


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    # What is left, functions above all, has its address in its text.
    return re.sub(r" at 0x\w+", "", str(value))


def _of_graphs(messages: list[str]) -> list[str]:
    words = ("cuda_graph", "cuda graph", "cudagraph", "full scope", "full_iteration")
    return list(dict.fromkeys(text for text in messages if any(word in text.lower() for word in words)))


if __name__ == "__main__":
    sys.exit(main())

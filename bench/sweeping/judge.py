"""Real releases as judges: run this with the interpreter of an environment that has the release.

    python judge.py config|arguments|bridge < cases.jsonl > verdicts.jsonl
    python judge.py defaults                # the defaults of TransformerConfig's fields, as one JSON object

A case has `settings`, `control` (the same without those of graphs) and `env`. Of each the judge says why the release
refuses it, or nothing; and of an accepted case what the validation leaves in effect. Requirements of Transformer
Engine's version and of installed packages count as met: these files do not show them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.abc
import importlib.machinery
import io
import json
import logging
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
Judge = Callable[[Any], Any]
"""Takes settings and returns the validated configuration; what it raises is the refusal."""


# --- TransformerConfig ------------------------------------------------------------------------------

SHAPE = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4}


def _config_judge() -> Judge:
    from megatron.core.transformer import transformer_config

    transformer_config.is_te_min_version = lambda *_, **__: True

    def judge(settings: dict[str, Any]) -> Any:
        return transformer_config.TransformerConfig(**SHAPE, **_runnable(settings))

    return judge


def _runnable(settings: dict[str, Any]) -> dict[str, Any]:
    import torch

    # JSON has no types of torch.
    return {
        name: getattr(torch, value[6:]) if str(value)[:6] == "torch." else value for name, value in settings.items()
    }


def _defaults() -> dict[str, Any]:
    from megatron.core.transformer.transformer_config import TransformerConfig

    values = {}
    for field in dataclasses.fields(TransformerConfig):
        value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        with contextlib.suppress(TypeError):
            values[field.name] = json.loads(json.dumps(value))
    return values


# --- command lines ----------------------------------------------------------------------------------


def _arguments_judge() -> Judge:
    from megatron.core.transformer import transformer_config
    from megatron.training import arguments

    sys.modules["torch_memory_saver"] = types.SimpleNamespace(torch_memory_saver=None)
    arguments.is_te_min_version = transformer_config.is_te_min_version = lambda *_, **__: True

    # Thousands of options take longer to add than a command line to parse.
    parser = arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    arguments.add_megatron_arguments = lambda _: parser

    def judge(line: list[str]) -> Any:
        sys.argv = ["pretrain_gpt.py", *line]
        args = arguments.parse_args()
        args.world_size, args.rank = 8, 0
        arguments.validate_args(args)
        # The model is built from this, in the same start of the job.
        return arguments.core_transformer_config_from_args(args)

    return judge


# --- Megatron-Bridge --------------------------------------------------------------------------------


class _Class(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Class(name, (_Anything,), {})

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__


class _Anything(metaclass=_Class):
    """Stands for what is imported and not needed to validate a configuration."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *values: Any, **named: Any) -> Any:
        is_decorator = len(values) == 1 and not named and isinstance(values[0], (type, types.FunctionType))
        return values[0] if is_decorator else _Anything()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return (_Class("Base", (_Anything,), {}),)


class _StandIn(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = vars(self)[name] = _Class(name, (_Anything,), {}) if name[:1].isupper() else _Anything()
        return made


class _Imports(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stand-ins for modules of the Bridge that load weights, and for packages of it that are not installed."""

    def __init__(self, last: bool) -> None:
        self.last, self.known = last, set[str]()

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        weights = ("models.hf_pretrained", "models.conversion", "peft")
        if self.last:
            package = name.partition(".")[0] if not name.startswith("megatron.") else name
            is_stand_in = package in self.known or _importer().startswith("megatron.bridge")
            self.known |= {package} if is_stand_in else set()
        else:
            is_stand_in = any(f"{name}.".startswith(f"megatron.bridge.{one}.") for one in weights)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_stand_in else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _importer() -> str:
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_globals.get("__name__", "") if frame is not None else ""


def _bridge_package(name: str, folder: str) -> types.ModuleType:
    """A package of the Bridge whose own __init__ would import every model."""
    module = types.ModuleType(name)
    module.__path__ = [folder]
    sys.modules[name] = module
    return module


def _bridge_judge() -> Judge:
    """ConfigContainer of the Bridge on the path, validated as a training run does it before anything is built."""
    root = next(path for folder in sys.path if os.path.isdir(path := os.path.join(folder, "megatron", "bridge")))
    sys.meta_path.insert(0, _Imports(last=False))
    sys.meta_path.append(_Imports(last=True))
    _bridge_package("megatron.bridge", root)
    models = _bridge_package("megatron.bridge.models", os.path.join(root, "models"))
    from megatron.bridge.models.gpt_provider import GPTModelProvider

    models.GPTModelProvider, models.T5ModelProvider = GPTModelProvider, _Class("T5ModelProvider", (), {})
    from megatron.bridge.training import comm_overlap, config
    from megatron.core import utils
    from megatron.core.transformer import transformer_config

    for module in (comm_overlap, utils, transformer_config):
        module.is_te_min_version = lambda *_, **__: True

    def judge(settings: dict[str, Any]) -> Any:
        os.environ["WORLD_SIZE"] = "8"
        made = _container(config, GPTModelProvider, comm_overlap.CommOverlapConfig, settings)
        config.runtime_config_update(made)
        return made.model

    return judge


def _container(config: Any, provider: Any, overlap: Any, settings: dict[str, Any]) -> Any:
    arguments = {name: _runnable(value) for name, value in settings.items()}
    classes = {"train": config.TrainingConfig, "optimizer": config.OptimizerConfig, "scheduler": config.SchedulerConfig}
    classes |= {
        "dataset": config.GPTDatasetConfig,
        "logger": config.LoggerConfig,
        "checkpoint": config.CheckpointConfig,
    }
    classes |= {"ddp": config.DistributedDataParallelConfig, "rng": config.RNGConfig}
    classes |= {"rerun_state_machine": config.RerunStateMachineConfig, "tokenizer": config.TokenizerConfig}
    classes |= {"dist": config.DistributedInitConfig, "comm_overlap": overlap, "model": provider}
    sections = {name: classes[name](**values) for name, values in arguments.items()}
    for name in ("logger", "tokenizer", "checkpoint", "scheduler"):
        sections.setdefault(name, classes[name]())
    return config.ConfigContainer(**sections)


# --- protocol ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _verdict(judge: Judge, settings: Any, env: dict[str, str]) -> tuple[str, Any]:
    """Why the release refuses settings, empty if it does not, and the validated configuration."""
    errors = io.StringIO()
    with _environment(env), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            return "", judge(settings)
        except SystemExit:
            text = (errors.getvalue().strip().splitlines() or [""])[-1]
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return " ".join(text.split()) or "refused without a text", None


def _effective(config: Any) -> dict[str, Any]:
    modules = getattr(config, "cuda_graph_modules", None)
    modules = config.cuda_graph_scope if modules is None else modules
    inference = getattr(config, "inference_cuda_graph_scope", None)
    return {
        "impl": config.cuda_graph_impl,
        "modules": [module.name for module in modules or ()],
        "inference": getattr(inference, "name", inference),
    }


JUDGES = {"config": _config_judge, "arguments": _arguments_judge, "bridge": _bridge_judge}


def main() -> None:
    """Judge the cases of stdin."""
    out = sys.stdout
    if sys.argv[1] == "defaults":
        print(json.dumps(_defaults()))
        return
    with contextlib.redirect_stdout(io.StringIO()):
        judge = JUDGES[sys.argv[1]]()
    for line in sys.stdin:
        case = json.loads(line)
        refused, config = _verdict(judge, case["settings"], case["env"])
        control = _verdict(judge, case["control"], case["env"])[0] if refused else ""
        effective = None if refused else _effective(config)
        print(json.dumps({"refused": refused, "control": control, "effective": effective}), file=out, flush=True)


if __name__ == "__main__":
    main()

"""Random configurations of each reader, and the files that show them to cgmigrate."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from sweeping import nemo_rl, rows

Settings = dict[str, Any]
GRAPHS = ("cuda_graph_impl", "cuda_graph_modules", "cuda_graph_scope", "inference_cuda_graph_scope")
GRAPHS += ("enable_cuda_graph", "external_cuda_graph")
DECIDES = (
    *("num_moe_experts", "moe_layer_freq", "moe_expert_capacity_factor", "moe_pad_expert_input_to_capacity"),
    *("moe_token_dispatcher_type", "moe_router_padding_for_fp8", "moe_input_jitter_eps", "add_bias_linear"),
    *("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"),
    *("attention_dropout", "hidden_dropout", "cpu_offloading", "fine_grained_activation_offloading"),
    *("offload_modules", "cuda_graph_warmup_steps", "fine_grained_offloading_max_inflight_offloads"),
    *("overlap_moe_expert_parallel_comm", "delay_wgrad_compute", "moe_paged_stash", "gtp_weight_remat_size"),
    *("moe_expert_rank_capacity_factor", "fp8", "fp4", "moe_shared_expert_intermediate_size"),
    *("moe_shared_expert_overlap", "transformer_impl", "gated_linear_unit", "gradient_accumulation_fusion"),
    *("add_qkv_bias", "use_te_rng_tracker", "inference_grouped_gemm_backend"),
)
"""Settings that a validation combines with graphs."""


@dataclass(frozen=True)
class Case:
    """A configuration: what the judge gets, without graphs too, and the file for cgmigrate."""

    name: str
    text: str
    settings: Any
    control: Any
    env: dict[str, str] = field(default_factory=dict)

    @property
    def question(self) -> dict[str, Any]:
        """What the judge reads."""
        return {"settings": self.settings, "control": self.control, "env": self.env}


@dataclass(frozen=True)
class Reader:
    """Who reads a file: the judge of it, how a case is made, and whether keys that it omits have their defaults."""

    name: str
    judge: str
    releases: tuple[str, ...]
    make: Callable[[random.Random, str, int, Settings], Case]


def _chosen(choose: random.Random, release: str, most: int = 4) -> Settings:
    """Graphs of a release, with few settings of rows around them."""
    settings = dict(choose.choice(choose.choice(rows.graphs(release))))
    around = choose.sample(rows.around(release), choose.choice([0, 1, 1, 2, 2, 3, most]))
    for row in around:
        settings |= choose.choice(row)
    return settings


def _without_graphs(settings: Settings) -> Settings:
    return {name: value for name, value in settings.items() if name not in GRAPHS}


# --- calls of TransformerConfig ---------------------------------------------------------------------


def _call(choose: random.Random, release: str, number: int, _: Settings) -> Case:
    settings = _chosen(choose, release)
    return Case(f"call{number}.py", _call_text(choose, settings), settings, _without_graphs(settings))


def _call_text(choose: random.Random, settings: Settings) -> str:
    uses_torch = any(str(value).startswith("torch.") for value in settings.values())
    imports = ["import torch"] if uses_torch else []
    imports.append("from megatron.core.transformer import TransformerConfig")
    arguments = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4} | settings
    words = [f"{name}={value if str(value)[:6] == 'torch.' else repr(value)}" for name, value in arguments.items()]
    if choose.random() < 0.5:
        body = "config = TransformerConfig(\n" + "".join(f"    {word},\n" for word in words) + ")\n"
    else:
        lines = "".join(f"        {word},\n" for word in words)
        body = f"def model_config():\n    return TransformerConfig(\n{lines}    )\n"
    return "\n".join(imports) + "\n\n" + body


# --- YAML with all deciding keys --------------------------------------------------------------------


def _written(settings: Settings, release: str, defaults: Settings) -> Settings:
    """Settings with all that decide, in the order of a file."""
    scope = "cuda_graph_scope" if release == "0.17" else "cuda_graph_modules"
    graphs = {"cuda_graph_impl": "none"}
    if not {"cuda_graph_scope", "cuda_graph_modules"} & settings.keys():
        graphs[scope] = []
    return graphs | {name: defaults[name] for name in DECIDES if name in defaults} | settings


def _section(choose: random.Random, release: str, number: int, defaults: Settings) -> Case:
    chosen = {name: value for name, value in _chosen(choose, release).items() if name != "pipeline_dtype"}
    settings = _written(chosen, release, defaults)
    shape = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4}
    text = yaml.safe_dump({"model": shape | settings}, sort_keys=False)
    return Case(f"section{number}.yaml", text, settings, _without_graphs(settings))


# --- command lines ----------------------------------------------------------------------------------


def _line(choose: random.Random, release: str, number: int, _: Settings) -> Case:
    settings = _chosen(choose, release, most=3)
    words = rows.flags(settings)
    for row in choose.sample(rows.ONLY_FLAGS, choose.choice([0, 0, 1, 1, 2])):
        words += shlex.split(choose.choice(row).replace("(", "\\(").replace(")", "\\)"))
    whole = "full_iteration" in words and choose.random() < 0.7
    words += ["--no-check-for-nan-in-loss-and-grad"] if whole else []
    env = dict(choose.choice(rows.ENVIRONMENTS)) if choose.random() < 0.2 else {}
    words = rows.BASE_FLAGS.split() + words
    if "--fp16" in words:
        words.remove("--bf16")
    kept = _lines_without_graphs(words)
    text = _script(choose, words, env | {"NVTE_CPU_OFFLOAD_V1": "1"})
    return Case(f"line{number}.sh", text, words, kept, env | {"NVTE_CPU_OFFLOAD_V1": "1"})


def _options(words: list[str]) -> list[list[str]]:
    """The words of a command line: each flag with its values."""
    options: list[list[str]] = []
    for word in words:
        if word.startswith("--"):
            options.append([word])
        else:
            options[-1].append(word)
    return options


def _lines_without_graphs(words: list[str]) -> list[str]:
    return [word for option in _options(words) if "cuda-graph" not in option[0] for word in option]


def _script(choose: random.Random, words: list[str], env: dict[str, str]) -> str:
    lines = ["#!/bin/bash", *(f"export {name}={value}" for name, value in env.items())]
    options = [shlex.join(option) for option in _options(words)]
    if choose.random() < 0.5:
        lines += ["torchrun --nproc-per-node 8 pretrain_gpt.py \\", *(f"    {one} \\" for one in options[:-1])]
        lines.append(f"    {options[-1]}")
    else:
        half = len(options) // 2
        lines += ["MODEL_ARGS=(", *(f"    {one}" for one in options[:half]), ")"]
        lines += ["TRAINING_ARGS=(", *(f"    {one}" for one in options[half:]), ")"]
        lines.append('torchrun --nproc-per-node 8 pretrain_gpt.py "${MODEL_ARGS[@]}" "${TRAINING_ARGS[@]}"')
    return "\n".join(lines) + "\n"


# --- Megatron-Bridge --------------------------------------------------------------------------------

CLASSES = {
    "model": ("megatron.bridge.models", "GPTModelProvider"),
    "comm_overlap": ("megatron.bridge.training.comm_overlap", "CommOverlapConfig"),
} | {
    section: ("megatron.bridge.training.config", name)
    for section, name in {
        "train": "TrainingConfig",
        "optimizer": "OptimizerConfig",
        "scheduler": "SchedulerConfig",
        "dataset": "GPTDatasetConfig",
        "logger": "LoggerConfig",
        "tokenizer": "TokenizerConfig",
        "checkpoint": "CheckpointConfig",
        "ddp": "DistributedDataParallelConfig",
        "rng": "RNGConfig",
        "rerun_state_machine": "RerunStateMachineConfig",
        "dist": "DistributedInitConfig",
    }.items()
}
ALWAYS = ("scheduler", "logger", "tokenizer", "checkpoint")
"""Sections that a container needs, with their defaults."""


def _merged(*containers: dict[str, Settings]) -> dict[str, Settings]:
    merged: dict[str, Settings] = {}
    for container in containers:
        for section, settings in container.items():
            merged[section] = merged.get(section, {}) | settings
    return merged


def _container(choose: random.Random, release: str) -> dict[str, Settings]:
    model = {name: value for name, value in _chosen(choose, release, most=3).items() if name != "pipeline_dtype"}
    sections = [choose.choice(row) for row in choose.sample(rows.SECTIONS, choose.choice([0, 1, 1, 2]))]
    # What the model's own alternatives decide comes last.
    return _merged(rows.BASE_SECTIONS, *sections, {"model": model})


def _container_case(name: str, text: str, container: dict[str, Settings]) -> Case:
    control = container | {"model": _without_graphs(container["model"])}
    return Case(name, text, container, control, {"NVTE_CPU_OFFLOAD_V1": "1"})


def _recipe(choose: random.Random, release: str, number: int, defaults: Settings) -> Case:
    container = _container(choose, release)
    if choose.random() < 0.5:
        return _container_case(f"recipe{number}.py", constructor(container), container)
    container = _all_written(container, release, defaults)
    return _container_case(f"recipe{number}.py", _assignments(container), container)


def _bridge_yaml(choose: random.Random, release: str, number: int, defaults: Settings) -> Case:
    container = _all_written(_container(choose, release), release, defaults)
    text = yaml.safe_dump(container | {"logger": {"log_interval": 10}}, sort_keys=False)
    return _container_case(f"container{number}.yaml", text, container)


def _all_written(container: dict[str, Settings], release: str, defaults: Settings) -> dict[str, Settings]:
    written = _merged(rows.WRITTEN_SECTIONS, container)
    return written | {"model": _written(container["model"], release, defaults)}


def constructor(container: dict[str, Settings]) -> str:
    sections = list(container) + [name for name in ALWAYS if name not in container]
    imports = sorted({CLASSES[name] for name in sections} | {("megatron.bridge.training.config", "ConfigContainer")})
    lines = [f"from {module} import {name}" for module, name in imports]
    lines += ["", "", "def pretrain_config() -> ConfigContainer:", "    return ConfigContainer("]
    for section in sections:
        lines.append(f"        {section}={CLASSES[section][1]}(")
        lines += [f"            {name}={value!r}," for name, value in container.get(section, {}).items()]
        lines.append("        ),")
    return "\n".join([*lines, "    )"]) + "\n"


def _assignments(container: dict[str, Settings]) -> str:
    lines = ["from megatron.bridge.training.config import ConfigContainer", "", ""]
    lines += ["def configure(cfg: ConfigContainer) -> ConfigContainer:"]
    for section, settings in container.items():
        if section == "comm_overlap":
            words = ", ".join(f"{name}={value!r}" for name, value in settings.items())
            lines.insert(0, "from megatron.bridge.training.comm_overlap import CommOverlapConfig")
            lines.append(f"    cfg.comm_overlap = CommOverlapConfig({words})")
        else:
            lines += [f"    cfg.{section}.{name} = {value!r}" for name, value in settings.items()]
    return "\n".join([*lines, "    return cfg"]) + "\n"


# --- NeMo-RL ----------------------------------------------------------------------------------------


def _policy(choose: random.Random, _: str, number: int, __: Settings) -> Case:
    settings, control = nemo_rl.policy(choose)
    return Case(f"policy{number}.yaml", yaml.safe_dump(settings, sort_keys=False), settings, control)


READERS = (
    Reader("TransformerConfig calls", "config", ("0.17", "0.18", "0.19"), _call),
    Reader("Megatron-LM command lines", "arguments", ("0.17", "0.18", "0.19"), _line),
    Reader("Megatron-Bridge recipes", "bridge", ("0.19",), _recipe),
    Reader("YAML, TransformerConfig", "config", ("0.17", "0.18", "0.19"), _section),
    Reader("YAML, Megatron-Bridge", "bridge", ("0.19",), _bridge_yaml),
    Reader("NeMo-RL", "nemo-rl", ("0.19",), _policy),
)


def cases(reader: Reader, release: str, count: int, seed: int, defaults: Settings) -> Iterator[Case]:
    """Yield configurations of a reader, the same for the same seed."""
    choose = random.Random(f"{seed} {reader.name} {release}")
    for number in range(count):
        yield reader.make(choose, release, number, defaults)

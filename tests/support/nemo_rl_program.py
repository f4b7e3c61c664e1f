"""What NeMo-RL's own source makes of configurations: one in JSON a line, and a line in JSON for each.

Runs by itself in an environment with torch and megatron-core; arguments: the folder of Megatron-Bridge's package and a
folder with NeMo-RL's source. ``validate_and_set_config``, all that it calls, the start of the policy worker and
``ConfigContainer.validate`` are the real ones. What they do not need for a configuration is an empty stand-in: Ray,
Transformers, data sets, checkpoints, collective communication. Transformer Engine counts as new enough.

A request has ``policy`` (overrides of NeMo-RL's example ``grpo_math_1B.yaml``), ``model`` (fields of the model that
the checkpoint has) and ``fields`` (names to return). The answer has ``refused``: the error, or null; ``at``: ``start``
or ``first step``; ``fields``: name → value that the model is built with.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

_BRIDGE = "megatron.bridge"
_REPLACED = (
    *("transformers", "ray", "huggingface_hub", "safetensors", "accelerate", "peft", "datasets", "tqdm", "requests"),
    *("nvidia_resiliency_ext", "modelopt", "wandb", "PIL", "megatron.energon", "torch.utils.tensorboard"),
    *(f"{_BRIDGE}.{name}" for name in ("data", "peft", "models.conversion", "models.model_provider")),
    *(
        f"{_BRIDGE}.training.{name}"
        for name in ("checkpointing", "initialize", "model_load_save", "optim", "setup", "state", "fault_tolerance")
    ),
    f"{_BRIDGE}.training.utils.pg_utils",
    *(f"nemo_rl.{name}" for name in ("distributed", "algorithms", "data", "models.policy.utils")),
    *("nemo_rl.models.generation.interfaces", "nemo_rl.utils", "nemo_rl.models.megatron.draft"),
)
"""Modules that a configuration does not need."""
_EMPTY = (
    *(_BRIDGE, f"{_BRIDGE}.models", f"{_BRIDGE}.training", f"{_BRIDGE}.utils"),
    *("nemo_rl", "nemo_rl.models", "nemo_rl.models.megatron", "nemo_rl.models.generation"),
    "nemo_rl.models.generation.megatron",
)
"""Packages whose modules are real, but which import nothing by themselves."""

_KERNELS = {
    "megatron.core.models.common.embeddings.rope_utils": (
        "fused_apply_rotary_pos_emb",
        "fused_apply_rotary_pos_emb_thd",
    ),
    "megatron.core.transformer.moe.moe_utils": (
        *("fused_permute", "fused_permute_with_probs", "fused_sort_chunks_by_index"),
        *("fused_sort_chunks_by_index_with_probs", "fused_unpermute"),
    ),
}
"""Kernels of Transformer Engine: configurations need to find them."""


class _StandIn(types.ModuleType):
    """A module that has every name: a module of its package, or else a class."""

    __version__ = "5.0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"{self.__name__}.{name}")
        methods = {"__class_getitem__": classmethod(lambda cls, _: cls), "from_pretrained": classmethod(_accept)}
        made = type(name, (), {"__init__": _accept, **methods})
        setattr(self, name, made)
        return made


def _accept(self: object, *_: object, **__: object) -> None:
    """Take any arguments."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        last = name.rpartition(".")[2]
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        if any(name == one or (name.startswith(f"{one}.") and last[:1].islower()) for one in _REPLACED):
            return spec
        if name not in _EMPTY:
            return None
        folders = (os.path.join(folder, last) for folder in path or sys.path)
        spec.submodule_search_locations = [folder for folder in folders if os.path.isdir(folder)]
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it empty."""


class Judge:
    """NeMo-RL's source, loaded."""

    def __init__(self, bridge: str, source: str) -> None:
        sys.meta_path.insert(0, _Finder())
        sys.path[:0] = [bridge, source]
        os.environ["WORLD_SIZE"] = "64"
        import torch

        torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0, name="NVIDIA H100")
        self.setup: Any = importlib.import_module("nemo_rl.models.megatron.setup")
        self.provider: Any = importlib.import_module("megatron.bridge.models.gpt_provider").GPTModelProvider
        self.layer: Any = importlib.import_module("megatron.core.transformer.transformer_layer").TransformerLayer
        for name, kernels in _KERNELS.items():
            module = importlib.import_module(name)
            for kernel in kernels:
                setattr(module, kernel, _accept)
        for module in list(sys.modules.values()):
            if module is not None and "is_te_min_version" in vars(module):
                module.is_te_min_version = lambda *_, **__: True  # type: ignore[attr-defined]
        self.start = _start_of_worker(Path(source))
        self.base = _example(Path(source))
        self.checkpoint = tempfile.mkdtemp()
        first = Path(self.checkpoint, "iter_0000000")
        first.mkdir()
        (first / "run_config.yaml").touch()
        self.setup.load_model_config = lambda *_: (self._loaded, None)
        self.setup.ConfigContainer.from_yaml = lambda *_, **__: types.SimpleNamespace(model=self._loaded)
        self.setup._patch_hf_config_double_instantiation = lambda: None
        self._loaded: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Judge one request."""
        policy = _merged(self.base, request.get("policy", {}))
        self._loaded = self._model(request.get("model", {}))
        worker = types.SimpleNamespace(rank=0, cfg=policy)
        at = "start"
        try:
            self._begin(worker, policy)
            model = worker.megatron_cfg.model
            at = "first step"
            self._step(model, packed=bool(policy.get("sequence_packing", {}).get("enabled")))
        except Exception as error:
            return {"refused": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300], "at": at}
        return {
            "refused": None,
            "fields": {name: _plain(_field(worker.megatron_cfg, name)) for name in request.get("fields", ())},
        }

    def _model(self, arguments: dict[str, Any]) -> Any:
        """Return the model's configuration as a converted checkpoint has it."""
        model = self.provider(
            **{
                "num_layers": 4,
                "hidden_size": 64,
                "num_attention_heads": 8,
                "vocab_size": 1024,
                "hidden_dropout": 0.0,
                "attention_dropout": 0.0,
                "gated_linear_unit": True,
                "add_bias_linear": False,
                "seq_length": 4096,
                "gradient_accumulation_fusion": False,
                **arguments,
            }
        )
        model.finalize()
        return model

    def _begin(self, worker: Any, policy: dict[str, Any]) -> None:
        """Do what the policy worker does with its configuration before it builds the model, and the model's check."""
        names = vars(self.setup) | {"self": worker, "config": policy, "hf_model_name": policy["model_name"]}
        names |= {"pretrained_path": self.checkpoint, "weights_path": None, "optimizer_path": None}
        names |= {"warnings": warnings}
        exec(self.start, names)
        model = worker.megatron_cfg.model
        # The first lines of GPTModelProvider.provide.
        from megatron.bridge.utils.cuda_graph import validate_cuda_graph_configuration

        validate_cuda_graph_configuration(model)
        if model.cuda_graph_impl != "none":
            assert getattr(model, "use_te_rng_tracker", False), (
                "Transformer engine's RNG tracker is required for cudagraphs, it can be enabled with "
                "use_te_rng_tracker=True'."
            )

    def _step(self, model: Any, *, packed: bool) -> None:
        """Replay a graph of a layer, with the layer's own code, as far as its inputs decide."""
        if model.cuda_graph_impl != "transformer_engine":
            return
        layer = types.SimpleNamespace(config=model, _forward_attention=lambda *_, **__: (None, None))
        layer._te_cuda_graph_replay_impl = lambda *_: None
        layer.off_interface = types.SimpleNamespace(enter_replay=lambda: None, exit_replay=lambda: None)
        self.layer._te_cuda_graph_replay(layer, None, packed_seq_params=object() if packed else None)


def _start_of_worker(source: Path) -> types.CodeType:
    """Return what the policy worker's constructor does from ``validate_and_set_config`` to ``validate``."""
    path = source / "nemo_rl/models/policy/workers/megatron_policy_worker.py"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            texts = [ast.unparse(statement) for statement in node.body]
            if "self.megatron_cfg.validate()" in texts:
                first = next(i for i, text in enumerate(texts) if "validate_and_set_config(" in text)
                last = texts.index("self.megatron_cfg.validate()")
                return compile(ast.Module(node.body[first : last + 1], []), str(path), "exec")
    raise ValueError(f"{path} has no constructor that validates the configuration")


def _example(source: Path) -> dict[str, Any]:
    """Return the policy of NeMo-RL's example, with Megatron on."""
    from omegaconf import OmegaConf

    for name, of in (
        ("add", lambda a, b: a + b),
        ("mul", lambda a, b: a * b),
        ("div", lambda a, b: a / b),
        ("max", max),
    ):
        OmegaConf.register_new_resolver(name, of, replace=True)
    whole = OmegaConf.load(source / "examples/configs/grpo_math_1B.yaml")
    whole.policy.megatron_cfg.enabled = True
    whole.policy.dtensor_cfg.enabled = False
    policy = OmegaConf.to_container(whole, resolve=True)["policy"]  # type: ignore[call-overload]
    policy["megatron_cfg"]["train_iters"] = 100  # As the algorithms set it.
    # It imports Transformer Engine's optimizer.
    policy["megatron_cfg"]["optimizer"]["use_precision_aware_optimizer"] = False
    return dict(policy)


def _merged(base: Any, over: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{name: _merged(base.get(name), value) for name, value in over.items()}}


def _field(config: Any, name: str) -> Any:
    """Return a field of the model, or of another part of the configuration: ``ddp.overlap_grad_reduce``."""
    part, _, rest = name.rpartition(".")
    return getattr(getattr(config, part) if part else config.model, rest, "no such field")


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "name", str(value))


def main() -> None:
    """Answer the requests of the standard input."""
    warnings.simplefilter("ignore")
    bridge, source = sys.argv[1:3]
    with contextlib.redirect_stdout(io.StringIO()):
        judge = Judge(bridge, source)
    for line in sys.stdin:
        with contextlib.redirect_stdout(io.StringIO()):
            answer = judge.answer(json.loads(line))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

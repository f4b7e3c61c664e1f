"""Execute every recipe of a Megatron-Bridge tree that takes no argument, and compare two trees.

    python bench/bridge_recipes.py TREE              compares it with a copy on which plain `cgmigrate fix` ran
    python bench/bridge_recipes.py BEFORE AFTER      compares two trees; exit status 1 if a recipe raises or differs
    python bench/bridge_recipes.py --results TREE    prints what each recipe's settings are, or its error, as JSON

A tree is a checkout of Megatron-Bridge (`src/megatron/bridge`) or an unpacked wheel (`megatron/bridge`).

Recipes need checkpoints, Transformer Engine and datasets. So the recipe packages and `utils/cuda_graph.py` of the tree
are real, megatron-core and torch are the installed ones, and everything else is a stand-in that accepts everything
and keeps what is assigned to it. After the call a recipe's model is validated as `ConfigContainer.validate` of the
Bridge does it, by the tree's own functions, and its settings go through the real `TransformerConfig`.
A condition that only a real object can decide is taken both ways, in two executions.
"""

from __future__ import annotations

import abc
import argparse
import contextlib
import dataclasses
import enum
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from cgmigrate.megatron.releases import NEWEST

BRIDGE = "megatron.bridge"
RECIPES = (f"{BRIDGE}.recipes", f"{BRIDGE}.perf_recipes", f"{BRIDGE}.diffusion.recipes")
REAL = (*RECIPES, f"{BRIDGE}.utils.cuda_graph")
FLAGS = ("use_te_rng_tracker", "te_rng_tracker", "inference_rng_tracker")
ENDED = "not executed: it returns no configuration"
"""The result of a function that ends without an error, but is no recipe: of a test that passes."""
TRUTH = [True]
"""What a stand-in is as a condition."""
_FIELDS = dataclasses.fields


# --- stand-ins --------------------------------------------------------------------------------------


def _defaults() -> dict[str, Any]:
    """What a provider of the Bridge holds before anybody assigns a setting."""
    from megatron.core.transformer import TransformerConfig

    graphs = {f.name: f.default for f in dataclasses.fields(TransformerConfig) if "cuda_graph" in f.name}
    return {**dict.fromkeys(FLAGS, False), **graphs}


class _Class(abc.ABCMeta):
    """The type of stand-in classes, whose attributes are stand-ins as well (``AutoBridge.from_hf_pretrained``)."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Anything()

    def __getitem__(cls, key: Any) -> Any:
        # `Encoder[Sample]` is the class.
        del key
        return cls


class Anything(metaclass=_Class):
    """Accepts everything; what is assigned to it stays."""

    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, *_: Any, **attributes: Any) -> None:
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in Anything.defaults:
            return Anything.defaults[name]
        made = vars(self)[name] = Anything()
        return made

    def __call__(self, *values: Any, **named: Any) -> Any:
        if len(values) == 1 and not named and isinstance(values[0], (types.FunctionType, type)):
            return values[0]  # used as a decorator
        return Anything(**named)

    def __getitem__(self, key: Any) -> Any:
        return vars(self).setdefault(f"[{key!r}]", Anything())

    def __setitem__(self, key: Any, value: Any) -> None:
        vars(self)[f"[{key!r}]"] = value

    def __iter__(self) -> Iterator[Any]:
        return iter((Anything(), Anything()))

    def __bool__(self) -> bool:
        return TRUTH[0]

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __contains__(self, _: Any) -> bool:
        return TRUTH[0]

    def __len__(self) -> int:
        return 2

    def __int__(self) -> int:
        return 2

    __index__ = __int__
    __hash__ = object.__hash__

    def __float__(self) -> float:
        return 2.0

    def _another(self, *_: Any) -> Any:
        return Anything()


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or"):
    setattr(Anything, f"__{_name}__", Anything._another)
    setattr(Anything, f"__r{_name}__", Anything._another)
for _name in ("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Anything, f"__{_name}__", Anything._another)


class _StandIn(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        is_class = name[:1].isupper() and not (name.isupper() and "_" in name)
        made = vars(self)[name] = _Class(name, (Anything,), {}) if is_class else Anything()
        return made


class _Imports(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of the Bridge: real ones from the tree, or stand-ins. Of other packages: what is not installed."""

    def __init__(self, root: Path, last: bool) -> None:
        self.root, self.last = root, last

    def find_spec(
        self,
        name: str,
        path: Any = None,  # noqa: ARG002 - the signature is importlib's
        target: Any = None,  # noqa: ARG002 - the signature is importlib's
    ) -> importlib.machinery.ModuleSpec | None:
        ours = name == BRIDGE or name.startswith(BRIDGE + ".")
        if ours and not self.last:
            return self._real(name) or importlib.machinery.ModuleSpec(name, self, is_package=True)
        if self.last and not ours and _importer().startswith(BRIDGE):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def _real(self, name: str) -> importlib.machinery.ModuleSpec | None:
        if not any(name == real or name.startswith(real + ".") for real in REAL):
            return None
        place = self.root.joinpath(*name.split("."))
        if (place / "__init__.py").is_file():
            folders = [str(place)]
            return importlib.util.spec_from_file_location(
                name, place / "__init__.py", submodule_search_locations=folders
            )
        file = place.with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file) if file.is_file() else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:  # noqa: ARG002 - the signature is importlib's
        return None


def _importer() -> str:
    """The module whose import statement is being executed: megatron-core's own optional imports stay absent."""
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_globals.get("__name__", "") if frame is not None else ""


# --- execution --------------------------------------------------------------------------------------


def execute(tree: Path, read: Callable[[Any, Any], dict[str, Any]] | None = None) -> dict[str, Any]:
    """Import the recipe modules of a tree and run their public functions: name -> settings, or the error's text.

    ``read`` makes the settings from a recipe's model and its random number flags; without it they are validated.
    """
    results: dict[str, Any] = {}
    for name, module in modules_of(tree):
        if isinstance(module, str):
            results[name] = module
            continue
        for recipe, function in sorted(vars(module).items()):
            if _is_recipe(function, recipe, name):
                results[f"{name}.{recipe}"] = [_effect(function, truth, read or _validated) for truth in (True, False)]
    return results


def modules_of(tree: Path) -> Iterator[tuple[str, types.ModuleType | str]]:
    """Import the recipe modules of a tree, with stand-ins: yield each name with its module, or the error's text."""
    root = next(path for path in (tree / "src", tree) if (path / "megatron/bridge").is_dir())
    import megatron.core.transformer  # noqa: F401  (the real one, before any stand-in)

    Anything.defaults = _defaults()
    dataclasses.fields = _fields  # type: ignore[assignment]
    # Modules of the tree before must not meet those of this one.
    for known in [name for name in sys.modules if name == BRIDGE or name.startswith(BRIDGE + ".")]:
        del sys.modules[known]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Imports)]
    sys.meta_path.insert(0, _Imports(root, last=False))
    sys.meta_path.append(_Imports(root, last=True))
    for file in sorted(root.joinpath("megatron/bridge").rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not any(name == recipes or name.startswith(recipes + ".") for recipes in RECIPES):
            continue
        try:
            yield name, importlib.import_module(name)
        except Exception as error:
            yield name, f"not imported: {type(error).__name__}: {error}"


def _fields(one: Any) -> tuple[Any, ...]:
    """Older states of the Bridge ask stand-ins for their fields."""
    return _FIELDS(one) if dataclasses.is_dataclass(one) else ()


def _is_recipe(function: Any, name: str, module: str) -> bool:
    """A public function of this very module that returns a configuration and needs no argument."""
    if not isinstance(function, types.FunctionType) or name.startswith("_") or function.__module__ != module:
        return False
    code = function.__code__
    needed = code.co_argcount - len(function.__defaults__ or ())
    return needed == 0 and code.co_kwonlyargcount == len(function.__kwdefaults__ or {})


def _effect(function: Any, truth: bool, read: Callable[[Any, Any], dict[str, Any]]) -> dict[str, Any] | str:
    """The settings in effect after one call, or why it has none; an error of the recipe itself is no result."""
    TRUTH[0] = truth
    try:
        made = function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what a test of pytest fails with is no Exception
        return f"not executed: {type(error).__name__}: {error}"
    if not isinstance(made, Anything) or not isinstance(made.model, Anything):
        return ENDED
    try:
        return read(made.model, made.rng)
    except Exception as error:
        return f"raises: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _validated(model: Any, rng: Any) -> dict[str, Any]:
    """In the order of ConfigContainer.validate: the Bridge's rules, the model's own, the random number flags."""
    bridge = vars(importlib.import_module(f"{BRIDGE}.utils.cuda_graph"))
    # Older states have no rules of their own.
    validate = bridge.get("validate_cuda_graph_configuration", lambda _: None)
    is_full_iteration = bridge.get("is_full_iteration_cuda_graph", lambda one: one.cuda_graph_impl == "full_iteration")
    _read_flags(model)
    validate(model)
    config = _transformer_config({n: v for n, v in vars(model).items() if n in Anything.defaults and n not in FLAGS})
    if rng.te_rng_tracker or model.use_te_rng_tracker:
        model.use_te_rng_tracker = rng.te_rng_tracker = True
    validate(config)
    return {
        "impl": config.cuda_graph_impl,
        "modules": sorted(_name(module) for module in config.cuda_graph_modules or ()),
        "inference": _name(config.inference_cuda_graph_scope),
        "full iteration": is_full_iteration(config),
        "use_te_rng_tracker": bool(model.use_te_rng_tracker),
        "rng.te_rng_tracker": bool(rng.te_rng_tracker),
    }


def _read_flags(model: Any) -> None:
    """Read the old flags as megatron-core 0.17 does.

    The rules of Megatron-Bridge 0.6 clear the scope of an object without an implementation before megatron-core reads
    the flags; those for 0.17 had no such rules.
    """
    settings = vars(model)
    if settings.get("cuda_graph_impl", "none") == "none":
        if settings.get("external_cuda_graph") is True:
            model.cuda_graph_impl, model.external_cuda_graph = "transformer_engine", False
        elif settings.get("enable_cuda_graph") is True:
            model.cuda_graph_impl, model.enable_cuda_graph = "local", False


def _transformer_config(settings: dict[str, Any]) -> Any:
    """A provider as it is when `finalize` runs the real post-init: fields set, nothing derived yet."""
    from megatron.core.transformer import TransformerConfig

    config = object.__new__(TransformerConfig)
    for field in dataclasses.fields(TransformerConfig):
        if field.default is not dataclasses.MISSING:
            setattr(config, field.name, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            setattr(config, field.name, field.default_factory())
    # One dense layer, and one of experts that drops and pads, so that every module name is accepted.
    shape = {"num_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "add_bias_linear": False}
    shape |= {"num_moe_experts": 4, "moe_layer_freq": [0, 1], "moe_token_dispatcher_type": "alltoall"}
    shape |= {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True, "use_te_rng_tracker": True}
    for name, value in {**shape, **settings}.items():
        setattr(config, name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config.__post_init__()
    return config


def _name(value: Any) -> str:
    return value.name if isinstance(value, enum.Enum) else str(value)


# --- comparison -------------------------------------------------------------------------------------


def results_of(*trees: Path) -> list[dict[str, Any]]:
    """Execute trees, all in one process of its own: torch takes longer to import than most trees to run."""
    process = subprocess.run(
        [sys.executable, __file__, "--results", *map(str, trees)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        env=environment(),
    )
    results: list[dict[str, Any]] = json.loads(process.stdout)
    return results


def environment() -> dict[str, str]:
    """Return the environment of a process that imports what this one can import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path[1:]))}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How many recipes ran in the first tree; which of them raise or differ in the second, with both results."""

    executed: int
    capturing: int
    raises: dict[str, str]
    differs: dict[str, str]

    def __str__(self) -> str:
        lines = [f"raises now: {name}: {why}" for name, why in self.raises.items()]
        lines += [f"differs: {name}: {why}" for name, why in self.differs.items()]
        lines.append(
            f"{self.executed} recipes executed ({self.capturing} capture graphs): "
            f"{len(self.raises)} raise now, {len(self.differs)} differ"
        )
        return "\n".join(lines)


def compare(before: dict[str, Any], after: dict[str, Any]) -> Comparison:
    """Compare the results of two trees, recipe by recipe; what was refused before is no witness."""
    raises: dict[str, str] = {}
    differs: dict[str, str] = {}
    executed = capturing = 0
    for recipe, both in before.items():
        pairs = list(zip(both, after.get(recipe) or ["is gone"] * 2, strict=True)) if isinstance(both, list) else []
        good = [(was, now) for was, now in pairs if isinstance(was, dict)]
        executed += bool(good)
        capturing += any(was["impl"] != "none" for was, _ in good)
        for was, now in good:
            if isinstance(now, str):
                raises[recipe] = now
            elif was != now:
                differs[recipe] = f"{was} -> {now}"
    return Comparison(executed, capturing, raises, differs)


def failing_now(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """Return the functions that end without a configuration, as tests that pass do, and fail in the second tree."""
    failing: dict[str, str] = {}
    for name, both in before.items():
        pairs = zip(both, after.get(name) or ["is gone"] * 2, strict=True) if isinstance(both, list) else ()
        if why := next((str(now) for was, now in pairs if was == ENDED != now), ""):
            failing[name] = why
    return failing


def fixed_copy(tree: Path, into: Path) -> str:
    """Copy a tree and run plain `cgmigrate fix .` on it, to the newest release; returns its summary."""
    shutil.copytree(tree, into, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    # A released package has no pins, and code for several releases, which keeps old names.
    command = [sys.executable, "-m", "cgmigrate", "fix", "--from", "0.17", "--to", str(NEWEST), "."]
    process = subprocess.run(command, cwd=into, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return next((line for line in process.stdout.splitlines() if line.startswith("Fixed")), process.stdout[-2000:])


def main() -> int:
    """Print the results of trees as JSON, or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--results", action="store_true", help="print the settings of every recipe of each tree")
    options = parser.parse_args()
    if options.results:
        logging.disable()
        with contextlib.redirect_stdout(io.StringIO()):
            results = [execute(tree) for tree in options.trees]
        # What a recipe reads of a stand-in is one itself.
        print(json.dumps(results, indent=1, default=lambda value: type(value).__name__))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before, after = options.trees[0], options.trees[-1]
        if len(options.trees) == 1:
            after = Path(folder) / "after"
            print(fixed_copy(before, after))
        comparison = compare(*results_of(before, after))
    print(comparison)
    return 1 if comparison.raises or comparison.differs else 0


if __name__ == "__main__":
    sys.exit(main())

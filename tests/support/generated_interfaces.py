"""Hypothesis strategies for small packages whose code copies keys of a YAML file to megatron-core's settings."""

from __future__ import annotations

import runpy
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.support.generated_chains import FEW, nested, own_settings, text_of

PLACE = ("policy", "megatron_cfg")
CORE = "megatron.core.transformer.transformer_config"
NAMES = ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl", "cuda_graph_scope", "cuda_graph_modules")

Form = Callable[[tuple[str, ...]], str]


def allowlist(names: tuple[str, ...]) -> str:
    listed = ", ".join(map(repr, (*names, "num_layers")))
    return (
        f"def apply(config, model_cfg):\n    for name in ({listed}):\n"
        '        if name in config["megatron_cfg"]:\n'
        '            setattr(model_cfg, name, config["megatron_cfg"][name])\n    return model_cfg\n'
    )


def constant_allowlist(names: tuple[str, ...]) -> str:
    listed = "".join(f"    {name!r},\n" for name in (*names, "num_layers"))
    return (
        f"KEYS = [\n{listed}]\n\n\ndef apply(config, model_cfg):\n    cfg = config['megatron_cfg']\n"
        "    for key in KEYS:\n        value = cfg.get(key)\n        if value is not None:\n"
        "            setattr(model_cfg, key, value)\n    return model_cfg\n"
    )


def membership(names: tuple[str, ...]) -> str:
    lines = "".join(
        f'    if "{name}" in config["megatron_cfg"]:\n        model_cfg.{name} = config["megatron_cfg"]["{name}"]\n'
        for name in names
    )
    return f"def apply(config, model_cfg):\n{lines}    return model_cfg\n"


def subscript(names: tuple[str, ...]) -> str:
    lines = "".join(f'    model_cfg.{name} = cfg["{name}"]\n' for name in names[:1])
    return f'def apply(config, model_cfg):\n    cfg = config["megatron_cfg"]\n{lines}    return model_cfg\n'


def get(names: tuple[str, ...]) -> str:
    lines = "".join(
        f'    {name} = config["megatron_cfg"].get("{name}", None)\n'
        f"    if {name} is not None:\n        model_cfg.{name} = {name}\n"
        for name in names
    )
    return f"def apply(config, model_cfg):\n{lines}    return model_cfg\n"


def typed(names: tuple[str, ...]) -> str:
    fields = "".join(f"    {name}: NotRequired[object]\n" for name in names)
    head = f"from typing_extensions import NotRequired, TypedDict\n\n\nclass MegatronConfig(TypedDict):\n{fields}\n\n"
    body = membership(names).replace("def apply(config", "def apply(config: dict[str, MegatronConfig]")
    return head + body


def fields(names: tuple[str, ...]) -> str:
    lines = "".join(f"    {name}: object = None\n" for name in names)
    return (
        f"import dataclasses\n\n\n@dataclasses.dataclass\nclass Options:\n    num_layers: int = 2\n{lines}\n\n"
        "def apply(config, model_cfg):\n    known = {field.name for field in dataclasses.fields(Options)}\n"
        "    options = Options(**{k: v for k, v in config['megatron_cfg'].items() if k in known})\n"
        "    for name, value in dataclasses.asdict(options).items():\n        if value is not None:\n"
        "            setattr(model_cfg, name, value)\n    return model_cfg\n"
    )


def strict_fields(names: tuple[str, ...]) -> str:
    lines = "".join(f"    {name}: object = None\n" for name in names)
    copies = "".join(
        f"    if options.{name} is not None:\n        model_cfg.{name} = options.{name}\n" for name in names
    )
    return (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Options:\n    num_layers: int = 2\n"
        f"    num_attention_heads: int = 4\n{lines}\n\ndef apply(config, model_cfg):\n"
        f'    options = Options(**config["megatron_cfg"])\n{copies}    return model_cfg\n'
    )


def comprehension(names: tuple[str, ...]) -> str:
    return (
        f"from {CORE} import TransformerConfig\n\nKEYS = {names!r}\n\n\ndef apply(config, model_cfg):\n"
        "    cfg = config['megatron_cfg']\n"
        "    return TransformerConfig(num_layers=2, **{key: cfg[key] for key in KEYS if key in cfg})\n"
    )


def keywords(names: tuple[str, ...]) -> str:
    passed = "".join(f'        {name}=cfg.get("{name}"),\n' for name in names)
    return (
        f"from {CORE} import TransformerConfig\n\n\ndef apply(config, model_cfg):\n    cfg = config['megatron_cfg']\n"
        f"    return TransformerConfig(\n        num_layers=2,\n{passed}    )\n"
    )


FORMS: tuple[Form, ...] = (
    allowlist,
    constant_allowlist,
    membership,
    subscript,
    get,
    typed,
    fields,
    strict_fields,
    comprehension,
    keywords,
)


@dataclass(frozen=True)
class Package:
    """A package: its code and its YAML files."""

    files: Mapping[str, str]

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return "\n" + "\n".join(f"--- {name}\n{text}" for name, text in self.files.items())


@st.composite
def packages(draw: st.DrawFn) -> Package:
    """Code that reads some settings in one of the usual forms, and one to three YAML files."""
    form = draw(st.sampled_from(FORMS))
    names = draw(st.sampled_from([NAMES, NAMES[:4], NAMES[:2], NAMES[1:2], NAMES[2:4], NAMES[3:4], NAMES[2:]]))
    files = {"graphs/setup.py": form(names)}
    for number in range(draw(st.integers(1, 3))):
        own = {name: value for name, value in draw(own_settings).items() if name in names or draw(st.booleans())}
        files[f"configs/{'abc'[number]}.yaml"] = text_of(nested(PLACE, {**FEW, **own}))
    return Package(files)


# --- execution --------------------------------------------------------------------------------------


class Recorder:
    """What code sets on a configuration, as an object that accepts everything."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


@contextmanager
def recording() -> Iterator[None]:
    """Make ``TransformerConfig`` of megatron-core a recorder while code runs."""
    parts = CORE.split(".")
    names = [".".join(parts[: number + 1]) for number in range(len(parts))]
    saved = {name: sys.modules.get(name) for name in names}
    for name in names:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []  # type: ignore[attr-defined]
    sys.modules[CORE].TransformerConfig = Recorder  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name, module in saved.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


def executed(code: Path, configs: Path) -> dict[str, dict[str, Any] | str]:
    """Return by YAML file what the code sets, or the error that it raises."""
    results: dict[str, dict[str, Any] | str] = {}
    with recording():
        for path in sorted(configs.glob("*.yaml")):
            config = yaml.safe_load(path.read_text(encoding="utf-8"))["policy"]
            try:
                apply = runpy.run_path(str(code))["apply"]
                results[path.name] = dict(vars(apply(config, Recorder())))
            except Exception as error:
                results[path.name] = f"{type(error).__name__}: {error}"
    return results

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
from omegaconf import ListConfig

from tests.support.generated_chains import FEW, nested, own_settings, text_of

PLACE = ("policy", "megatron_cfg")
CORE = "megatron.core.transformer.transformer_config"
NAMES = ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl", "cuda_graph_scope", "cuda_graph_modules")

Form = Callable[[tuple[str, ...]], str | Mapping[str, str]]
"""Returns the text of ``setup.py``, or those of several modules."""
INERT = {"enable_cuda_graph": False, "external_cuda_graph": False, "cuda_graph_impl": "none"}
"""Settings that are off by a value other than None."""


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


def defaults(names: tuple[str, ...], scope: object = None) -> str:
    values = {**INERT, "cuda_graph_scope": scope}
    lines = "".join(f'    model_cfg.{name} = cfg.get("{name}", {values.get(name)!r})\n' for name in names)
    return f'def apply(config, model_cfg):\n    cfg = config["megatron_cfg"]\n{lines}    return model_cfg\n'


def scope_by_default(names: tuple[str, ...]) -> str:
    return defaults(names, "full")


def graphs_by_default(names: tuple[str, ...]) -> str:
    return defaults(names).replace("False", "True")


def attributes(names: tuple[str, ...]) -> str:
    lines = "".join(
        f'    if "{name}" in cfg.megatron_cfg:\n        model_cfg.{name} = cfg.megatron_cfg.{name}\n' for name in names
    )
    head = "from omegaconf import OmegaConf\n\n\ndef apply(config, model_cfg):\n    cfg = OmegaConf.create(config)\n"
    return f"{head}{lines}    return model_cfg\n"


def required_attributes(names: tuple[str, ...]) -> str:
    lines = "".join(f"    model_cfg.{name} = cfg.{name}\n" for name in names[:1])
    return (
        "from omegaconf import DictConfig, OmegaConf\n\n\ndef copy(cfg: DictConfig, model_cfg):\n"
        f"{lines}    return model_cfg\n\n\ndef apply(config, model_cfg):\n"
        "    return copy(OmegaConf.create(config).megatron_cfg, model_cfg)\n"
    )


def imported_list(names: tuple[str, ...]) -> Mapping[str, str]:
    code = (
        "from graphs.keys import KEYS\n\n\ndef apply(config, model_cfg):\n    for key in KEYS:\n"
        "        if key in config['megatron_cfg']:\n"
        "            setattr(model_cfg, key, config['megatron_cfg'][key])\n    return model_cfg\n"
    )
    return {"setup.py": code, "keys.py": f"KEYS = {[*names, 'num_layers']!r}\n"}


def admitted(names: tuple[str, ...]) -> Mapping[str, str]:
    code = (
        "import graphs.keys as keys\n\n\ndef apply(config, model_cfg):\n    cfg = config['megatron_cfg']\n"
        "    unknown = set(cfg) - keys.KEYS\n    if unknown:\n        raise KeyError(unknown)\n"
        "    vars(model_cfg).update(cfg)\n    return model_cfg\n"
    )
    listed = (*names, "num_layers", "num_attention_heads", "hidden_size")
    return {"setup.py": code, "keys.py": f"KEYS = frozenset({listed!r})\n"}


def typed_fields(names: tuple[str, ...]) -> Mapping[str, str]:
    types = {name: f"bool = {INERT[name]}" for name in INERT if name.startswith("e")} | {
        "cuda_graph_impl": 'str = "none"',
        "cuda_graph_scope": "str | list[str] | None = None",
    }
    lines = "".join(f"    {name}: {types.get(name, 'str | None = None')}\n" for name in names)
    options = (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Options:\n    num_layers: int = 2\n"
        f"    num_attention_heads: int = 4\n{lines}"
    )
    copies = "".join(f"    model_cfg.{name} = options.{name}\n" for name in names)
    code = (
        "from graphs.options import Options\n\n\ndef copy(options: Options, model_cfg):\n"
        f"{copies}    return model_cfg\n\n\ndef apply(config, model_cfg):\n"
        '    return copy(Options(**config["megatron_cfg"]), model_cfg)\n'
    )
    return {"setup.py": code, "options.py": options}


def all_fields(names: tuple[str, ...]) -> Mapping[str, str]:
    files = dict(typed_fields(names))
    files["setup.py"] = (
        "import dataclasses\n\nfrom graphs import options\n\n\ndef apply(config, model_cfg):\n"
        "    filled = options.Options(**config['megatron_cfg'])\n"
        "    vars(model_cfg).update(dataclasses.asdict(filled))\n    return model_cfg\n"
    )
    return files


def text(names: tuple[str, ...]) -> str:
    return (
        "import yaml\n\n\ndef apply(config, model_cfg):\n    on = str(False).lower()\n"
        f'    base = yaml.safe_load(f"  {names[0]}: {{on}}")\n'
        "    vars(model_cfg).update(base | config['megatron_cfg'])\n    return model_cfg\n"
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
    defaults,
    scope_by_default,
    graphs_by_default,
    attributes,
    required_attributes,
    imported_list,
    admitted,
    typed_fields,
    all_fields,
    text,
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
    code = form(names)
    modules = {"setup.py": code} if isinstance(code, str) else code
    files = {f"graphs/{name}": text for name, text in modules.items()}
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
def recording(top: Path) -> Iterator[None]:
    """Make ``TransformerConfig`` of megatron-core a recorder while code below a folder runs."""
    parts = CORE.split(".")
    names = [".".join(parts[: number + 1]) for number in range(len(parts))]
    saved = {name: sys.modules.get(name) for name in names}
    sys.path.insert(0, str(top))
    for name in names:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []  # type: ignore[attr-defined]
    sys.modules[CORE].TransformerConfig = Recorder  # type: ignore[attr-defined]
    try:
        yield
    finally:
        sys.path.remove(str(top))
        for name in [name for name in sys.modules if name.partition(".")[0] == "graphs"]:
            sys.modules.pop(name)
        for name, module in saved.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


def executed(code: Path, configs: Path) -> dict[str, dict[str, Any] | str]:
    """Return by YAML file what the code sets, or the error that it raises."""
    results: dict[str, dict[str, Any] | str] = {}
    with recording(code.parent.parent):
        for path in sorted(configs.glob("*.yaml")):
            config = yaml.safe_load(path.read_text(encoding="utf-8"))["policy"]
            try:
                apply = runpy.run_path(str(code))["apply"]
                of_model = vars(apply(config, Recorder()))
                results[path.name] = {k: list(v) if isinstance(v, ListConfig) else v for k, v in of_model.items()}
            except Exception as error:
                results[path.name] = f"{type(error).__name__}: {error}"
    return results

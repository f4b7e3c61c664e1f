"""A plain ``fix`` must not break a project: what other code can see is rewritten on request only."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.lint.diagnostics import Applicability
from tests.support.python_tools import Result, run

HEADER = """\
from dataclasses import dataclass
from functools import partial

from megatron.bridge.models import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.training.pretrain import pretrain
from megatron.core.transformer import TransformerConfig

"""
PAIR = """\
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["attn"]
"""
NEW = PAIR.replace("cuda_graph_scope", "cuda_graph_modules")


def plain(text: str, path: str = "") -> Result:
    """What `fix` without options does."""
    return run(HEADER + text, path=path, exposed=False)


def because(result: Result) -> str:
    return "\n".join(
        f.because for f in result.examined.diagnostics if f.applicability == Applicability.UNSAFE and f.because
    )


COMMON = 'def common(cfg):\n    if cfg.model.cuda_graph_impl == "none":\n        cfg.model.cuda_graph_scope = []\n\n\n'
MADE = "    cfg = ConfigContainer(model=GPTModelProvider(num_layers=2))\n"
OLD_CALL = "TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=['attn'])"
NEW_CALL = OLD_CALL.replace("scope", "modules")

READ = "    config = TransformerConfig(enable_cuda_graph=True)\n"
EXPOSED = {
    "a switch is read from the validated object": (
        f"def f():\n{READ}    return TransformerConfig(num_layers=2 if config.enable_cuda_graph else 1)\n",
        "line 11 may read `enable_cuda_graph`",
    ),
    "a switch is read by its name": (
        f"def f():\n{READ}    return getattr(config, 'enable_cuda_graph')\n",
        "may read `enable_cuda_graph`",
    ),
    "a switch is read in another function": (
        f"def f():\n{READ}    return TransformerConfig(num_layers=g(config))\n\n\n"
        "def g(config):\n    return 2 if config.enable_cuda_graph else 1\n",
        "may read `enable_cuda_graph`",
    ),
    "a switch is read by a list of names": (
        f"NAMES = ['enable_cuda_graph', 'num_layers']\n\n\ndef f():\n{READ}"
        "    return {name: getattr(config, name) for name in NAMES}\n",
        "line 9 may read `enable_cuda_graph`",
    ),
    "a switch is read by a comparison": (
        f"def f():\n{READ}    return [v for k, v in asdict(config).items() if k == 'enable_cuda_graph']\n",
        "may read `enable_cuda_graph`",
    ),
    "a switch is read by a pattern": (
        f"def f():\n{READ}    match config:\n"
        "        case TransformerConfig(enable_cuda_graph=True):\n            return 1\n",
        "may read `enable_cuda_graph`",
    ),
    "a parameter": (f"def f(cfg):\n{PAIR}", "`cfg` is a parameter of `f`"),
    "a keyword parameter": (f"def f(*, cfg=None):\n{PAIR}", "`cfg` is a parameter of `f`"),
    "self": ("class T:\n    def f(self):\n        self.config.cuda_graph_scope = ['attn']\n", "`self` is a parameter"),
    "helper in the file": (f"{COMMON}def f():\n{MADE}    common(cfg)\n{PAIR}", "`common` on line"),
    "helper after the setting": (f"{COMMON}def f():\n{MADE}{PAIR}    common(cfg.model)\n", "`common` on line"),
    "made by an unknown function": (f"def f():\n    cfg = base()\n{PAIR}", "`base`, whose body was not read"),
    "made by a recipe of Megatron": (
        f"from megatron.bridge.recipes.llama import llama3_8b\ndef f():\n    cfg = llama3_8b()\n{PAIR}",
        "`llama3_8b`, whose body was not read",
    ),
    "made elsewhere, and returned by a function of the file": (
        f"def base():\n    made = shared.recipe\n    return made\n\n\ndef f():\n    cfg = base()\n{PAIR}",
        "`base`, where `made` is another name of `shared.recipe`",
    ),
    "made by a recipe of the file": (
        f"def base():\n{MADE}    cfg.model.cuda_graph_scope = ['mlp']\n    return cfg\n"
        f"def f():\n    cfg = base()\n{PAIR}",
        "`base`, which names `cuda_graph_scope` (line 11)",
    ),
    "returned": (f"def f():\n{MADE}{PAIR}    return cfg\n", "`f` returns `cfg`"),
    "a part returned": (f"def f():\n{MADE}{PAIR}    return cfg.model\n", "`f` returns `cfg`"),
    "yielded": (f"def f():\n{MADE}{PAIR}    yield cfg\n", "`f` returns `cfg`"),
    "passed to an unknown function": (f"def f():\n{MADE}{PAIR}    launch(cfg)\n", "`launch` on line"),
    "passed as keyword": (f"def f():\n{MADE}{PAIR}    launch(config=cfg)\n", "`launch` on line"),
    "kept in a list": (f"def f():\n{MADE}{PAIR}    all_of_them = [cfg]\n", "another name or holder"),
    "kept in an attribute": (f"def f():\n{MADE}{PAIR}    state.config = cfg\n", "another name or holder"),
    "an alias": (
        "def f():\n" + MADE + "    model = cfg.model\n    model.cuda_graph_scope = ['attn']\n",
        "`model` is another name of `cfg.model`",
    ),
    "beside an alias": (f"def f():\n{MADE}    m = cfg.model\n{PAIR}    m.cuda_graph_scope = None\n", "another name"),
    "used by an inner function": (
        f"def f():\n{MADE}{PAIR}    def g():\n        print(cfg)\n    pretrain(g)\n",
        "line 13",
    ),
    "a name of the module": ("cfg = GPTModelProvider()\ncfg.cuda_graph_scope = ['attn']\n", "other files can import"),
    "known by name only": ("cfg.model.cuda_graph_scope = ['attn']\n", "only its name shows"),
    "global": (f"def f():\n    global cfg\n    cfg = ConfigContainer()\n{PAIR}", "uses `cfg` as well"),
    "from a loop": (
        f"def f():\n    for cfg in configs:\n    {PAIR.replace(chr(10), chr(10) + '    ').rstrip()}\n",
        "line 10",
    ),
    "set by computed names": (
        f"def f(names):\n{MADE}{PAIR}    for n in names:\n        setattr(cfg.model, n, None)\n",
        "by its name",
    ),
    "read by name": (f"def f():\n{MADE}{PAIR}    cfg.model.__dict__.update({{}})\n", "by its name"),
    "rebound part": (f"def f():\n    cfg = ConfigContainer()\n    cfg.model = make()\n{PAIR}", "`make`, whose body"),
    "a provider that is returned": (
        'def f():\n    return GPTModelProvider(cuda_graph_impl="transformer_engine", cuda_graph_scope=["attn"])\n',
        "`f` returns the object",
    ),
    "a provider that is set again": (
        'def f():\n    p = GPTModelProvider(cuda_graph_impl="transformer_engine", cuda_graph_scope=["attn"])\n'
        "    p.cuda_graph_scope = ['mlp']\n    pretrain(p)\n",
        "`p.cuda_graph_scope` is set again",
    ),
    "a provider inside what is returned": (
        "def f():\n    return ConfigContainer(\n"
        "        model=GPTModelProvider(cuda_graph_scope=['attn'], external_cuda_graph=True))\n",
        "`f` returns the object",
    ),
    "deferred": ('make = partial(TransformerConfig, cuda_graph_impl="local", cuda_graph_scope=["attn"])\n', "import"),
    "with unknown keywords": (
        'def f(kw):\n    return TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=["attn"], **kw)\n',
        "`**kw` may hold settings",
    ),
    "a class with a default": (
        "@dataclass\nclass Mine(TransformerConfig):\n    cuda_graph_scope: str = 'full'\n"
        "c = Mine(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n",
        "the class `Mine` names `cuda_graph_scope` (line 11)",
    ),
    "a class of a class with a default": (
        "class Base(TransformerConfig):\n    cuda_graph_impl: str = 'local'\nclass Mine(Base):\n    pass\n"
        "c = Mine(cuda_graph_scope=['attn'])\n",
        "the class `Base` names `cuda_graph_impl`",
    ),
    "a class that validates by itself": (
        "class Mine(TransformerConfig):\n    def __post_init__(self):\n        pass\n"
        "def f():\n    return Mine(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n",
        "`f` returns the object",
    ),
    "a guard function": (
        f"def f():\n{MADE}    if supports(cfg.train):\n        cfg.train.x = 1\n    else:\n"
        "        cfg.model.cuda_graph_scope = ['attn']\n",
        "it depends on `supports(...)`",
    ),
    "behind a guard function": (
        f"def f():\n{MADE}    if cfg.train.supports():\n        return\n{PAIR}    pretrain(cfg)\n",
        "it depends on `cfg.train.supports(...)`",
    ),
    "a constructor under a guard": (
        "c = TransformerConfig() if supports() else "
        "TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n",
        "it depends on `supports(...)`",
    ),
    "the other branch has the new names": (
        f"if NEW:\n    c = {NEW_CALL}\nelse:\n    c = {OLD_CALL}\n",
        "another branch of the condition on line 9 writes the new names",
    ),
    "the first branch has the old names": (
        f"if OLD:\n    c = {OLD_CALL}\nelif MORE:\n    c = {NEW_CALL}\n",
        "another branch of the condition on line 9 writes the new names",
    ),
    "the other value has the new names": (
        f"c = {NEW_CALL} if NEW else {OLD_CALL}\n",
        "another branch of the condition on line 9 writes the new names",
    ),
    "another case has the new names": (
        f"match NEW:\n    case True:\n        c = {NEW_CALL}\n    case _:\n        c = {OLD_CALL}\n",
        "another branch of the condition on line 9 writes the new names",
    ),
    "behind the new names": (
        f"def f():\n    if NEW:\n        return {NEW_CALL}\n    return {OLD_CALL}\n",
        "another branch of the condition on line 10 writes the new names",
    ),
    "behind a test of the release": (
        "def f():\n    if 'cuda_graph_modules' in TransformerConfig.__dataclass_fields__:\n"
        f"        return new_way()\n    return {OLD_CALL}\n",
        "so it is written for several releases",
    ),
    "arguments of another program": (
        "import subprocess\nsubprocess.run(['python', 'serve.py', '--enable-cuda-graph'])\n",
        "the program that gets these arguments is not known as Megatron's",
    ),
    "overrides": ("launch(['model.cuda_graph_scope=[attn]'])\n", "overrides a configuration"),
    "a dict that another is unpacked into": (
        "def f(base):\n"
        "    return TransformerConfig(**{'cuda_graph_impl': 'local', 'cuda_graph_scope': ['attn'], **base})\n",
        "`**base` may hold settings as well",
    ),
    "a dict inside another is unpacked into it": (
        "def f(base):\n"
        "    return TransformerConfig(**{**{**base}, 'cuda_graph_impl': 'local', 'cuda_graph_scope': ['attn']})\n",
        "`**base` may hold settings as well",
    ),
    "a dict with a computed key": (
        "def f(key):\n"
        "    return TransformerConfig(**{key: 1, 'cuda_graph_impl': 'local', 'cuda_graph_scope': ['attn']})\n",
        "the key `key` may be a setting",
    ),
    "a dict made of another": (
        "def f(base):\n"
        "    return TransformerConfig(**dict(base, cuda_graph_impl='local', cuda_graph_scope=['attn']))\n",
        "`**base` may hold settings as well",
    ),
    "a dict": (
        "megatron_cfg = {'cuda_graph_impl': 'transformer_engine', 'cuda_graph_scope': ['attn']}\n",
        "reads the keys",
    ),
    "arguments": ("args = ['--cuda-graph-impl', 'local', '--cuda-graph-scope', 'attn']\n", "to this list"),
}


@pytest.mark.parametrize("name", EXPOSED)
def test_what_other_code_sees_is_rewritten_on_request_only(name: str) -> None:
    text, reason = EXPOSED[name]
    result = plain(text)
    assert result.after == result.text
    assert reason in because(result)
    assert run(HEADER + text, unsafe=True).after != HEADER + text, "the fix is still offered"


def test_a_condition_that_is_cut_in_a_message_shows_it() -> None:
    test = "get_te_min_version() >= PkgVersion('0.18.0') and config.model.training_is_on"
    result = plain(f"def f(config):\n    if {test}:\n        config.model.cuda_graph_scope = None\n")
    assert [f"`{test[:59]}…`" in diagnostic.blocked_by for diagnostic in result.examined.diagnostics] == [True]


FOLLOWED = {
    "a dict that a literal is unpacked into": (
        "config = TransformerConfig(**{**{'x': 2}, 'cuda_graph_impl': 'local', 'cuda_graph_scope': ['attn']})\n"
    ),
    "made and used here": f"def f():\n{MADE}{PAIR}    pretrain(cfg)\n",
    "a script": 'if __name__ == "__main__":\n' + MADE + PAIR + "    pretrain(config=cfg)\n",
    "a helper that names no setting": (
        "def sizes(cfg, n):\n    cfg.train.steps = n\n    print(cfg)\n\n\n"
        f"def f():\n{MADE}    sizes(cfg, 3)\n{PAIR}    pretrain(cfg)\n"
    ),
    "made by a function that names no setting": (
        f"def base():\n{MADE}    cfg.train.steps = 3\n    return cfg\n\n\n"
        f"def f():\n    cfg = base()\n{PAIR}    pretrain(cfg)\n"
    ),
    "a condition of two scopes": (
        "def f(deep):\n    if deep:\n        print('deep')\n        c = TransformerConfig(cuda_graph_impl='local')\n"
        "    else:\n        c = TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n"
    ),
    "part of it is returned": f"def f():\n{MADE}{PAIR}    pretrain(cfg)\n    return cfg.train\n",
    "a condition of values": f"def f(args):\n{MADE}    if args.get('graphs') and isinstance(args, dict):\n    "
    + PAIR.replace("\n", "\n    ").rstrip()
    + "\n    pretrain(cfg)\n",
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_nothing_else_sees_is_rewritten(name: str) -> None:
    text = FOLLOWED[name]
    result = plain(text)
    assert because(result) == ""
    assert result.after == HEADER + text.replace("cuda_graph_scope", "cuda_graph_modules")


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return TransformerConfig({})\n",
        "CONFIG = TransformerConfig({})\n",
        "def f():\n    config = TransformerConfig({})\n    launch(config)\n    return config\n",
        "class Small(TransformerConfig):\n    num_layers: int = 2\n\n\nCONFIG = Small({})\n",
        "launch(TransformerConfig(**dict({})))\n",
    ],
)
def test_what_a_constructor_validates_is_rewritten_whoever_gets_it(text: str) -> None:
    """The old names are moved to the new ones there, so that code which gets the object sees no difference."""
    old, new = (f"cuda_graph_impl='local', cuda_graph_{word}=['attn']" for word in ("scope", "modules"))
    result = plain(text.format(old))
    assert result.after == HEADER + text.format(new)


def test_a_reader_of_an_object_that_others_set_is_rewritten_on_request_only() -> None:
    text = (
        "from megatron.core.transformer.enums import CudaGraphScope\n\n\n"
        "def f(cfg):\n    return CudaGraphScope.attn in cfg.model.cuda_graph_scope\n"
    )
    result = plain(text)
    assert result.after == result.text and "`cfg` is a parameter of `f`" in because(result)


# --- other files of the checkout ------------------------------------------------------------------

ELSEWHERE = {
    "a helper": ("from .common import helper\n", f"def f():\n{MADE}    helper(cfg)\n{PAIR}", "common.py:2"),
    "a helper of a helper": ("from .common import outer\n", f"def f():\n{MADE}    outer(cfg)\n{PAIR}", "common.py:2"),
    "a re-exported helper": ("from .api import helper\n", f"def f():\n{MADE}    helper(cfg)\n{PAIR}", "common.py:2"),
    "a base recipe": ("from .common import base\n", f"def f():\n    cfg = base()\n{PAIR}", "common.py:10"),
    "a class with a default": (
        "from .common import Mine\n",
        "def f():\n    cfg = Mine()\n    cfg.cuda_graph_scope = ['attn']\n    pretrain(cfg)\n",
        "the class `Mine` names `cuda_graph_impl`",
    ),
}
COMMON_FILE = """\
def helper(cfg):
    cfg.model.cuda_graph_scope = []

def outer(cfg):
    cfg.train.steps = 1
    helper(cfg)

def base():
    cfg = unknown()
    cfg.model.cuda_graph_scope = ["mlp"]
    return cfg

from megatron.bridge.models import GPTModelProvider
class Mine(GPTModelProvider):
    cuda_graph_impl: str = "transformer_engine"

def sizes(cfg):
    cfg.train.steps = 1
"""


@pytest.mark.parametrize("name", ELSEWHERE)
def test_functions_and_classes_of_other_files_are_read(project: Path, name: str) -> None:
    imports, text, reason = ELSEWHERE[name]
    (project / "common.py").write_text(COMMON_FILE)
    (project / "api.py").write_text("from .common import helper\n")
    result = plain(imports + text, str(project / "train.py"))
    assert result.after == result.text
    assert reason in because(result)


def test_a_helper_of_another_file_that_names_no_setting_prevents_nothing(project: Path) -> None:
    (project / "common.py").write_text(COMMON_FILE)
    text = f"from .common import sizes\ndef f():\n{MADE}    sizes(cfg)\n{PAIR}    pretrain(cfg)\n"
    assert plain(text, str(project / "train.py")).after == HEADER + text.replace("_scope", "_modules")


# --- objects of others ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "from serving import ServeOptions\ncfg = ServeOptions(); cfg.enable_cuda_graph = True\n",
        "cfg = ServeOptions(); cfg.enable_cuda_graph = True\n",
        "class ServeOptions:\n    pass\n\n\ncfg: ServeOptions = ServeOptions()\ncfg.enable_cuda_graph = True\n",
        "from deepspeed.inference.config import DeepSpeedInferenceConfig\n"
        "def e(config: DeepSpeedInferenceConfig): config.enable_cuda_graph = True\n",
        "def e(config: DeepSpeedInferenceConfig): config.enable_cuda_graph = True\n",
        "from typing import Optional\nfrom serving import O\n"
        "def e(config: Optional[O] = None):\n    config.enable_cuda_graph = True\n",
        "from serving import O\ndef e(config: 'O | None'):\n    config.enable_cuda_graph = True\n",
        "from serving import O\ndef e(config: O):\n    setattr(config, 'cuda_graph_scope', 'attn')\n",
    ],
)
def test_objects_of_other_classes_are_not_megatrons(text: str) -> None:
    result = run(HEADER + text, unsafe=True)
    assert result.after == result.text
    assert "CG006" in result.rules or any("another system" in owner for _, owner in result.examined.skipped)


@pytest.mark.parametrize(
    "annotation", ["TransformerConfig", "'TransformerConfig'", "TransformerConfig | None", "Any", "T", "dict[str, Any]"]
)
def test_an_annotation_that_may_be_megatrons_is_no_other_class(annotation: str) -> None:
    text = f"from typing import Any\ndef e(config: {annotation}):\n    config.cuda_graph_scope = ['attn']\n"
    assert "`config` is a parameter of `e`" in because(plain(text))

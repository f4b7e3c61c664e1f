"""A plain ``fix`` must not break a project: what other code can see is rewritten on request only."""

from __future__ import annotations

import pytest

from cgmigrate.lint.diagnostics import Applicability
from tests.support.python_tools import Result, run
from tests.support.tables import from_table

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


MADE = "    cfg = ConfigContainer(model=GPTModelProvider(num_layers=2))\n"
OLD_CALL = "TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=['attn'])"
NEW_CALL = OLD_CALL.replace("scope", "modules")

READ = "    config = TransformerConfig(enable_cuda_graph=True)\n"
EXPOSED = {
    "a switch is read from the validated object": (
        f"def f():\n{READ}    return TransformerConfig(num_layers=2 if config.enable_cuda_graph else 1)\n",
        "line 11 may read or set `enable_cuda_graph`",
    ),
    "a switch is read by its name": (
        f"def f():\n{READ}    return getattr(config, 'enable_cuda_graph')\n",
        "may read or set `enable_cuda_graph`",
    ),
    "a switch is read in another function": (
        f"def f():\n{READ}    return TransformerConfig(num_layers=g(config))\n\n\n"
        "def g(config):\n    return 2 if config.enable_cuda_graph else 1\n",
        "may read or set `enable_cuda_graph`",
    ),
    "a switch is read by a list of names": (
        f"NAMES = ['enable_cuda_graph', 'num_layers']\n\n\ndef f():\n{READ}"
        "    return {name: getattr(config, name) for name in NAMES}\n",
        "line 9 may read or set `enable_cuda_graph`",
    ),
    "a switch is read by a comparison": (
        f"def f():\n{READ}    return [v for k, v in asdict(config).items() if k == 'enable_cuda_graph']\n",
        "may read or set `enable_cuda_graph`",
    ),
    "a switch is read by a pattern": (
        f"def f():\n{READ}    match config:\n"
        "        case TransformerConfig(enable_cuda_graph=True):\n            return 1\n",
        "may read or set `enable_cuda_graph`",
    ),
    "a switch is set again": (
        f"def f():\n{READ}    config.enable_cuda_graph = False\n    pretrain(config)\n",
        "line 11 may read or set `enable_cuda_graph`",
    ),
    "a parameter": (f"def f(cfg):\n{PAIR}", "`cfg` is a parameter of `f`"),
    "a keyword parameter": (f"def f(*, cfg=None):\n{PAIR}", "`cfg` is a parameter of `f`"),
    "self": ("class T:\n    def f(self):\n        self.config.cuda_graph_scope = ['attn']\n", "`self` is a parameter"),
    "made and used here": (f"def f():\n{MADE}{PAIR}    pretrain(cfg)\n", "where `cfg.model` is created"),
    "another name of a part": (
        f"def f():\n{MADE}    model = cfg.model\n    model.cuda_graph_scope = ['attn']\n",
        "where `model` is created",
    ),
    "returned": (f"def f():\n{MADE}{PAIR}    return cfg\n", "`f` returns `cfg`"),
    "a part returned": (f"def f():\n{MADE}{PAIR}    return cfg.model\n", "`f` returns `cfg`"),
    "a name of the module": ("cfg = GPTModelProvider()\ncfg.cuda_graph_scope = ['attn']\n", "other files can import"),
    "known by name only": ("cfg.model.cuda_graph_scope = ['attn']\n", "other files can import"),
    "a provider that is returned": (
        'def f():\n    return GPTModelProvider(cuda_graph_impl="transformer_engine", cuda_graph_scope=["attn"])\n',
        "cgmigrate does not follow the result of `GPTModelProvider(...)`",
    ),
    "deferred": (
        'make = partial(TransformerConfig, cuda_graph_impl="local", cuda_graph_scope=["attn"])\n',
        "cgmigrate does not follow the result of `partial(...)`",
    ),
    "with unknown keywords": (
        'def f(kw):\n    return TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=["attn"], **kw)\n',
        "`**kw` on line 10 may also set these settings",
    ),
    "a class with a default": (
        "@dataclass\nclass Mine(TransformerConfig):\n    cuda_graph_scope: str = 'full'\n"
        "c = Mine(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n",
        "the class `Mine` uses `cuda_graph_scope` (line 11)",
    ),
    "a class of a class with a default": (
        "class Base(TransformerConfig):\n    cuda_graph_impl: str = 'local'\nclass Mine(Base):\n    pass\n"
        "c = Mine(cuda_graph_scope=['attn'])\n",
        "the class `Base` uses `cuda_graph_impl`",
    ),
    "a class that validates by itself": (
        "class Mine(TransformerConfig):\n    def __post_init__(self):\n        pass\n"
        "def f():\n    return Mine(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n",
        "cgmigrate does not follow the result of `Mine(...)`",
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
        "these arguments go to a program that cgmigrate does not know as Megatron's",
    ),
    "overrides": ("launch(['model.cuda_graph_scope=[attn]'])\n", "overrides a configuration"),
    "a dict that another is unpacked into": (
        "def f(base):\n"
        "    return TransformerConfig(**{'cuda_graph_impl': 'local', 'cuda_graph_scope': ['attn'], **base})\n",
        "the code that reads the keys",
    ),
    "a dict made of another": (
        "def f(base):\n"
        "    return TransformerConfig(**dict(base, cuda_graph_impl='local', cuda_graph_scope=['attn']))\n",
        "the code that reads the keys",
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


def test_one_of_two_constructors_is_rewritten() -> None:
    text = (
        "def f(deep):\n    if deep:\n        print('deep')\n        c = TransformerConfig(cuda_graph_impl='local')\n"
        "    else:\n        c = TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n"
    )
    result = plain(text)
    assert because(result) == ""
    assert result.after == HEADER + text.replace("cuda_graph_scope", "cuda_graph_modules")


@from_table
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


# --- objects of others ------------------------------------------------------------------------------


@from_table
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

"""Code that passes Megatron's settings on: the findings of NeMo-RL's pull request 1736, and what is near to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.files import write

TYPES = """from typing import Literal, NotRequired, TypedDict

CudaGraphScope = Literal["full_iteration", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba"]


class MegatronConfig(TypedDict):
    enable_cuda_graph: bool
    cuda_graph_scope: CudaGraphScope


class PolicyConfig(TypedDict):
    megatron_cfg: NotRequired[MegatronConfig]
"""

SETUP = """import warnings
from typing import Any, get_args

from megatron.bridge.training.config import ConfigContainer

from project.policy import CudaGraphScope, PolicyConfig


def apply(model_cfg: Any, config: PolicyConfig) -> None:
    if "enable_cuda_graph" in config["megatron_cfg"]:
        model_cfg.enable_cuda_graph = config["megatron_cfg"]["enable_cuda_graph"]
        if "cuda_graph_scope" in config["megatron_cfg"]:
            scope = config["megatron_cfg"]["cuda_graph_scope"]
            valid_scopes = get_args(CudaGraphScope)
            if scope not in valid_scopes:
                raise ValueError(f"Invalid scope '{scope}'")
            model_cfg.cuda_graph_scope = scope
            if not model_cfg.enable_cuda_graph:
                warnings.warn("enable_cuda_graph is False, so cuda_graph_scope will have no effect.")
"""

Check = Callable[..., set[tuple[str, int, str]]]
CODES = {"CG609", "CG610", "CG611", "CG612", "CG613", "CG614"}


@pytest.fixture
def reported(project: Path, cgmigrate: Callable[..., Result]) -> Check:
    """Return a function that checks modules of a package, and returns file, line and code of each diagnostic."""

    def check(*options: str, **texts: str) -> set[tuple[str, int, str]]:
        for name, text in {"__init__": "", **texts}.items():
            write(f"project/{name}.py", text)
        diagnostics = json.loads(cgmigrate("check", "--preview", *options, "--output-format", "json", ".").stdout)[
            "findings"
        ]
        return {(Path(one["path"]).stem, one["line"], one["rule"]) for one in diagnostics if one["rule"] in CODES}

    return check


def test_the_pull_request_that_is_the_model(reported: Check) -> None:
    assert reported(policy=TYPES, setup=SETUP) == {
        ("policy", 8, "CG610"),
        ("setup", 10, "CG609"),
        ("setup", 11, "CG613"),
        ("setup", 12, "CG609"),
        ("setup", 15, "CG611"),
        ("setup", 19, "CG612"),
    }


def test_the_pull_request_after_its_review(reported: Check) -> None:
    types = """from typing import NotRequired, TypedDict


class MegatronConfig(TypedDict):
    cuda_graph_impl: NotRequired[str]
    cuda_graph_modules: NotRequired[str | list[str]]


class PolicyConfig(TypedDict):
    megatron_cfg: MegatronConfig
"""
    setup = """from megatron.bridge.training.config import ConfigContainer

from project.policy import PolicyConfig


def apply(model_cfg: object, config: PolicyConfig) -> None:
    if "cuda_graph_impl" in config["megatron_cfg"]:
        model_cfg.cuda_graph_impl = config["megatron_cfg"]["cuda_graph_impl"]
        model_cfg.use_te_rng_tracker = model_cfg.cuda_graph_impl != "none"
    if "cuda_graph_modules" in config["megatron_cfg"]:
        model_cfg.cuda_graph_modules = config["megatron_cfg"]["cuda_graph_modules"]
"""
    assert reported(policy=types, setup=setup) == set()


READER = """from dataclasses import dataclass
from typing import TypedDict

from megatron.core.transformer import TransformerConfig


class Keys(TypedDict%s):
    cuda_graph_impl: str


@dataclass
class Fields:
    cuda_graph_impl: str%s


class Worker:
    def __init__(self, keys: Keys, fields: Fields) -> None:
        self.keys = keys
        self.fields = fields

    def implementation(self, fields: Fields) -> str:
        own = self.keys
        return %s
"""


@pytest.mark.parametrize(
    ("keys", "fields", "read", "is_reported"),
    [
        ("", "", 'own.get("cuda_graph_impl", "none")', True),
        ("", "", 'self.keys.get("cuda_graph_impl")', True),
        ("", "", 'getattr(fields, "cuda_graph_impl", "none")', True),
        ("", "", '"x" if hasattr(self.fields, "cuda_graph_impl") else ""', True),
        ("", "", 'own["cuda_graph_impl"]', False),
        ("", "", 'getattr(fields, "cuda_graph_impl")', False),
        ("", "", 'other().get("cuda_graph_impl")', False),
        (", total=False", "", 'own.get("cuda_graph_impl", "none")', False),
        ("", ' = "none"', 'getattr(fields, "cuda_graph_impl", "none")', False),
    ],
)
def test_a_key_is_followed_to_its_class(reported: Check, keys: str, fields: str, read: str, is_reported: bool) -> None:
    diagnostics = reported(worker=READER % (keys, fields, read))
    assert diagnostics == ({("worker", 23, "CG609")} if is_reported else set())


def test_a_list_that_is_made_of_itself_is_not_known(reported: Check) -> None:
    text = """from megatron.core.transformer import TransformerConfig

IMPLEMENTATIONS = NAMES
NAMES = IMPLEMENTATIONS


def check(cuda_graph_impl: str, names: list[str]) -> None:
    names = set(names)
    if cuda_graph_impl not in names:
        raise ValueError
    assert cuda_graph_impl in NAMES
"""
    assert reported(check=text) == set()


def test_values_are_those_of_the_target(reported: Check) -> None:
    """Up to 0.17 the implementation could not be the full iteration."""
    text = """def check(cuda_graph_impl: str) -> None:
    assert cuda_graph_impl in ("none", "local", "transformer_engine")
"""
    diagnostics = {
        target: reported("--from", "0.17", "--to", target, check=text) for target in ("0.17", "0.18", "0.19")
    }
    refused = {("check", 2, "CG611")}
    assert diagnostics == {"0.17": set(), "0.18": refused, "0.19": refused}


LIST = 'MODULES = ["attn", "mlp", "moe", "moe_router", "moe_preprocess"]\n\n\ndef check(config, modules):\n'


@pytest.mark.parametrize(
    ("body", "is_reported"),
    [
        (
            'for one in config["cuda_graph_modules"]:\n        if one not in MODULES:\n            raise ValueError',
            True,
        ),
        ('for one in config["cuda_graph_modules"]:\n        assert one in MODULES', True),
        ('names = config["cuda_graph_modules"]\n    if any(one not in MODULES for one in names):\n        raise', True),
        ('if not all(one in MODULES for one in config["cuda_graph_modules"]):\n        raise ValueError', True),
        ('assert all(one in MODULES for one in config["cuda_graph_modules"])', True),
        # Nothing is refused, other values are compared, or what is refused is in the list.
        ('for one in config["cuda_graph_modules"]:\n        if one not in MODULES:\n            print(one)', False),
        ("for one in modules:\n        if one not in MODULES:\n            raise ValueError", False),
        ('assert any(one in MODULES for one in config["cuda_graph_modules"])', False),
        ('if any(one in MODULES for one in config["cuda_graph_modules"]):\n        raise ValueError', False),
    ],
)
def test_each_name_of_a_list_is_compared(reported: Check, body: str, is_reported: bool) -> None:
    assert {code for *_, code in reported(check=f"{LIST}    {body}\n")} == ({"CG611"} if is_reported else set())


@pytest.mark.parametrize(
    ("inside", "after", "is_reported"),
    [
        ("", 'cfg.cuda_graph_modules = config["cuda_graph_modules"]', True),
        ("; return", 'cfg.cuda_graph_modules = config["cuda_graph_modules"]', False),
        ("", "cfg.cuda_graph_modules = []", False),
        ("", 'if config["cuda_graph_impl"] != "none":\n        cfg.cuda_graph_modules = ["attn"]', False),
    ],
)
def test_a_field_may_be_set_after_the_warning(reported: Check, inside: str, after: str, is_reported: bool) -> None:
    text = f"""import warnings

from megatron.bridge.models import GPTModelProvider


def apply(cfg: GPTModelProvider, config: dict) -> None:
    if not config["enable_cuda_graph"]:
        warnings.warn("cuda_graph_modules has no effect"){inside}
    {after}
"""
    assert {code for *_, code in reported(setup=text)} == ({"CG612"} if is_reported else set())

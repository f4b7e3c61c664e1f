"""CG616 against TransformerConfig: copies of configurations, which the release makes."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from typing import Any

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.lint.diagnostics import Context
from cgmigrate.megatron.releases import Release
from tests.lint.test_companions import fetched
from tests.lint.test_companions_of_ecosystems import OWNERS, RULES
from tests.support.nightly import nightly_only
from tests.support.plans import examine
from tests.support.release_judges import printed

JUDGE = """
import dataclasses, json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from megatron.core.transformer.transformer_config import TransformerConfig
for line in sys.stdin:
    made, changed = json.loads(line)
    config = TransformerConfig(num_layers=2, hidden_size=64, num_attention_heads=4, **made)
    try:
        dataclasses.replace(config, **changed)
        print()
    except AssertionError as error:
        print(" ".join(str(error).split()))
"""
IMPLEMENTATIONS = ["none", "local", "transformer_engine"]
MADE: list[dict[str, Any]] = [
    {},
    {"enable_cuda_graph": True},
    {"external_cuda_graph": True},
    *({"cuda_graph_impl": one} for one in IMPLEMENTATIONS),
]
CHANGED: list[dict[str, Any]] = [
    {},
    {"hidden_dropout": 0.0},
    {"enable_cuda_graph": False, "external_cuda_graph": False},
    *({"cuda_graph_impl": one} for one in IMPLEMENTATIONS),
    *({"cuda_graph_impl": one, "enable_cuda_graph": False, "external_cuda_graph": False} for one in IMPLEMENTATIONS),
]
SINCE_0_18: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *product([{"cuda_graph_impl": "full_iteration"}], CHANGED),
    *product(MADE, [{"cuda_graph_impl": "full_iteration"}]),
    *product(MADE, [{"cuda_graph_impl": one, "inference_cuda_graph_scope": None} for one in IMPLEMENTATIONS]),
    *product([{"cuda_graph_impl": "local", "inference_cuda_graph_scope": "block"}], CHANGED),
]


def is_reported(made: dict[str, Any], changed: dict[str, Any], release: Release) -> bool:
    first, second = ("".join(f", {name}={value!r}" for name, value in one.items()) for one in (made, changed))
    text = (
        "import dataclasses\n\nfrom megatron.core.transformer import TransformerConfig\n\n\n"
        f"def copied():\n    config = TransformerConfig(num_layers=2{first})\n"
        f"    return dataclasses.replace(config{second})\n"
    )
    plan = examine(PythonDocument(text), Context(release, release, RULES, OWNERS))
    return "CG616" in {diagnostic.rule for diagnostic in plan.diagnostics}


def check(copies: list[Any], package: str, release: Release) -> None:
    said = printed(JUDGE, copies, package)
    assert set(map(bool, said)) == {True, False}
    differ = [(*one, text) for one, text in zip(copies, said, strict=True) if is_reported(*one, release) != bool(text)]
    assert differ == []


def test_copies_of_the_installed_release() -> None:
    if find_spec("megatron") is None or find_spec("megatron.core") is None:
        pytest.skip("the judge is the installed megatron-core")
    check([*product(MADE, CHANGED), *SINCE_0_18], "", Release(0, 19))


@nightly_only
@pytest.mark.parametrize(("version", "release"), [("0.17.1", Release(0, 17)), ("0.18.2", Release(0, 18))])
def test_copies_of_former_releases(version: str, release: Release) -> None:
    more = SINCE_0_18 if release >= Release(0, 18) else []
    check([*product(MADE, CHANGED), *more], fetched(version), release)


NOT_KNOWN = [
    "def copied(config: TransformerConfig):\n    return replace(config, cuda_graph_impl='local')",
    "config = own(cuda_graph_impl='local')\nother = replace(config, cuda_graph_impl='none')",
    "config = TransformerConfig(cuda_graph_impl='local', **more)\nother = replace(config, cuda_graph_impl='none')",
    "config = TransformerConfig(cuda_graph_impl=impl)\nother = replace(config, cuda_graph_impl='none')",
    "config = TransformerConfig(cuda_graph_impl='local')\nconfig.inference_cuda_graph_scope = None\n"
    "other = replace(config, cuda_graph_impl='none')",
    "config = TransformerConfig(cuda_graph_impl='local')\nother = text.replace(config, cuda_graph_impl='none')",
    "for config in (TransformerConfig(cuda_graph_impl='local'),):\n    replace(config, cuda_graph_impl='none')",
]


@pytest.mark.parametrize("code", NOT_KNOWN)
def test_a_configuration_that_is_not_known_is_not_reported(code: str) -> None:
    imported = "from dataclasses import replace\nfrom megatron.core.transformer import TransformerConfig\n"
    release = Release(0, 19)
    plan = examine(PythonDocument(f"{imported}{code}\n"), Context(release, release, RULES, OWNERS))
    assert "CG616" not in {diagnostic.rule for diagnostic in plan.diagnostics}

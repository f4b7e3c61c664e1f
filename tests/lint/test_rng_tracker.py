"""CG408 against Megatron-Bridge's own assertion, executed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.bridge_assertions import assertion_of
from tests.support.paths import FETCHED
from tests.support.plans import examine

RULES = load()
OWNERS = ecosystems.load()
RECIPE = """\
model:
  cuda_graph_impl: {impl}
  use_te_rng_tracker: {tracker}
rng:
  te_rng_tracker: {tracker}
ddp:
  overlap_grad_reduce: true
"""


def reported(release: Release, impl: str, tracker: bool) -> bool:
    document = YamlDocument(RECIPE.format(impl=impl, tracker=str(tracker).lower()))
    plan = examine(document, Context(release, release, RULES, OWNERS))
    return "CG408" in {diagnostic.rule for diagnostic in plan.diagnostics}


def accepts(version: str, impl: str, tracker: bool) -> bool:
    """Whether the provider of a Megatron-Bridge goes on to build a model."""
    path = FETCHED / f"megatron-bridge-{version}/megatron/bridge/models/gpt_provider.py"
    provider = SimpleNamespace(cuda_graph_impl=impl, use_te_rng_tracker=tracker)
    return assertion_of(path, "use_te_rng_tracker", {})(provider)


@pytest.mark.parametrize("tracker", [True, False])
@pytest.mark.parametrize(
    ("version", "release", "impl"),
    [
        *(("0.4.2", Release(0, 17), impl) for impl in ("none", "local", "transformer_engine")),
        *(("0.6.2", Release(0, 19), impl) for impl in ("none", "local", "transformer_engine", "full_iteration")),
    ],
)
def test_the_rule_reports_what_megatron_bridge_refuses(
    version: str, release: Release, impl: str, tracker: bool
) -> None:
    if not (FETCHED / f"megatron-bridge-{version}").is_dir():
        pytest.skip(f"Megatron-Bridge {version} is not fetched")
    assert reported(release, impl, tracker) is not accepts(version, impl, tracker)

"""CG408 against Megatron-Bridge's own assertion, and CG430 against what its harness turns off, both executed."""

from __future__ import annotations

import ast
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from cgmigrate.documents.shell import ShellDocument
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.bridge_assertions import assertion_of
from tests.support.comparisons import assert_judged
from tests.support.paths import FETCHED, MEGATRON_BRIDGE
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


def codes(text: str, release: Release) -> set[str]:
    plan = examine(YamlDocument(text), Context(release, release, RULES, OWNERS))
    return {diagnostic.rule for diagnostic in plan.diagnostics}


def reported(release: Release, impl: str, tracker: bool) -> bool:
    return "CG408" in codes(RECIPE.format(impl=impl, tracker=str(tracker).lower()), release)


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
    assert_judged("CG408", reported(release, impl, tracker), not accepts(version, impl, tracker))


@pytest.fixture
def override() -> Any:
    """The function of the performance harness that sets graphs in a recipe, without its validation."""
    if not MEGATRON_BRIDGE.is_dir():
        pytest.skip("no clone of Megatron-Bridge lies beside the checkout")
    path = MEGATRON_BRIDGE / "scripts/performance/utils/overrides.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (node,) = (one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "_set_cuda_graph_overrides")
    names: dict[str, Any] = {
        "validate_cuda_graph_configuration": lambda *_, **__: None,
        "is_full_iteration_cuda_graph": lambda _: False,
        "cuda_graph_module_names": lambda model: model.cuda_graph_modules,
    }
    future = ast.parse("from __future__ import annotations").body
    exec(compile(ast.Module([*future, node], []), path.name, "exec"), names)
    return names[node.name]


@pytest.mark.parametrize(("model", "rng"), list(product([True, False], repeat=2)))
@pytest.mark.parametrize("impl", ["none", "transformer_engine"])
def test_the_harness_turns_off_the_tracker_that_the_rule_reports(
    override: Any, impl: str, model: bool, rng: bool
) -> None:
    recipe = SimpleNamespace(
        model=SimpleNamespace(cuda_graph_impl=impl, use_te_rng_tracker=model, cuda_graph_modules=["attn"]),
        rng=SimpleNamespace(te_rng_tracker=rng),
    )
    override(recipe)

    is_off = (model or rng) and not (recipe.model.use_te_rng_tracker or recipe.rng.te_rng_tracker)
    text = RECIPE.replace("{tracker}", str(model).lower(), 1).replace("{tracker}", str(rng).lower(), 1)
    assert_judged("CG430", "CG430" in codes(text.format(impl=impl), Release(0, 19)), is_off)


@pytest.mark.parametrize("impl", ["none", "local", "full_iteration"])
@pytest.mark.parametrize("version", ["0.17.1", "0.18.2"])
def test_megatron_lm_gives_other_layers_a_tracker_that_graphs_capture(version: str, impl: str) -> None:
    path = FETCHED / f"megatron-core-{version}/megatron/training/initialize.py"
    if not path.is_file():
        pytest.skip(f"megatron-core {version} is not fetched")
    keywords = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.keyword))
    (passed,) = (one.value for one in keywords if one.arg == "use_cudagraphable_rng" and "args" in ast.dump(one.value))
    is_set = eval(compile(ast.Expression(passed), path.name, "eval"), {"args": SimpleNamespace(cuda_graph_impl=impl)})
    assert is_set is (impl != "none")

    flags = f"--num-layers 4 --transformer-impl local --cuda-graph-impl {impl} --train-iters 9"
    release = Release(*map(int, version.split(".")[:2]))
    plan = examine(ShellDocument(f"torchrun pretrain_gpt.py {flags}\n"), Context(release, release, RULES, OWNERS))
    assert "CG408" not in {diagnostic.rule for diagnostic in plan.diagnostics}

"""CG401 against what it is about: Megatron-Bridge's own assertion, executed, and megatron-core's check of gradients."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import pytest

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.bridge_assertions import assertion_of
from tests.support.comparisons import assert_judged
from tests.support.paths import FETCHED
from tests.support.plans import examine

RULES = load()
OWNERS = ecosystems.load()


class Scope(Enum):
    """Megatron-core's class of scopes, as far as the Bridge's assertion reads it."""

    full_iteration = 1
    attn = 2


def reported(release: Release, impl: str, name: str, names: list[str], check: bool) -> bool:
    text = (
        f"model:\n  cuda_graph_impl: {impl}\n  {name}: [{', '.join(names)}]\n"
        f"rerun_state_machine:\n  check_for_nan_in_loss: {str(check).lower()}\nddp:\n  check_for_nan_in_grad: false\n"
    )
    plan = examine(YamlDocument(text), Context(release, release, RULES, OWNERS))
    return "CG401" in {diagnostic.rule for diagnostic in plan.diagnostics}


def assertion_in(package: Path, names: dict[str, object]) -> Callable[[SimpleNamespace], bool]:
    """Megatron-Bridge's assertion about the check of the loss: whether it accepts a configuration."""
    path = package / "megatron/bridge/training/config.py"
    return assertion_of(path, "rerun_state_machine.check_for_nan_in_loss", names)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("names", [[], ["attn"], ["full_iteration"], ["full_iteration", "attn"]])
@pytest.mark.parametrize("impl", ["none", "local", "transformer_engine"])
def test_the_rule_reports_what_megatron_bridge_of_0_17_refuses(impl: str, names: list[str], check: bool) -> None:
    package = FETCHED / "megatron-bridge-0.4.2"
    if not package.is_dir():
        pytest.skip("Megatron-Bridge 0.4.2 is not fetched")
    accepts = assertion_in(package, {"CudaGraphScope": Scope})
    model = SimpleNamespace(cuda_graph_impl=impl, cuda_graph_scope=[Scope[name] for name in names])
    configuration = SimpleNamespace(model=model, rerun_state_machine=SimpleNamespace(check_for_nan_in_loss=check))
    is_reported = reported(Release(0, 17), impl, "cuda_graph_scope", names, check)
    assert_judged("CG401", is_reported, not accepts(configuration))


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("names", [[], ["attn"], ["full_iteration"]])
@pytest.mark.parametrize("name", ["cuda_graph_modules", "cuda_graph_scope"])
@pytest.mark.parametrize("impl", ["none", "local", "transformer_engine", "full_iteration"])
def test_the_rule_reports_what_megatron_bridge_of_0_18_refuses(
    impl: str, name: str, names: list[str], check: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = FETCHED / "megatron-bridge-0.6.2"
    if not package.is_dir():
        pytest.skip("Megatron-Bridge 0.6.2 is not fetched")
    module = types.ModuleType("cuda_graph")
    enums = types.ModuleType("megatron.core.transformer.enums")
    enums.CudaGraphScope = Scope  # type: ignore[attr-defined]
    for parent in ("megatron", "megatron.core", "megatron.core.transformer"):
        monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
    monkeypatch.setitem(sys.modules, "megatron.core.transformer.enums", enums)
    exec((package / "megatron/bridge/utils/cuda_graph.py").read_text(encoding="utf-8"), module.__dict__)
    accepts = assertion_in(package, {"is_full_iteration_cuda_graph": module.is_full_iteration_cuda_graph})
    model = SimpleNamespace(cuda_graph_impl=impl, **{name: names})
    configuration = SimpleNamespace(model=model, rerun_state_machine=SimpleNamespace(check_for_nan_in_loss=check))
    assert_judged("CG401", reported(Release(0, 19), impl, name, names, check), not accepts(configuration))


def test_the_check_of_gradients_of_megatron_core_reads_its_result_on_the_host() -> None:
    pytest.importorskip("megatron.core")
    torch = pytest.importorskip("torch")
    from megatron.core.rerun_state_machine import RerunStateMachine
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

    machine = RerunStateMachine()
    with FakeTensorMode():
        norm = torch.ones(4).norm(p=2)
        with pytest.raises(DataDependentOutputException):
            machine.validate_result(result=norm, rejection_func=torch.isnan, message="", fatal=True)


@pytest.mark.parametrize(
    ("release", "expected"),
    [(Release(0, 15), False), (Release(0, 16), True), (Release(0, 17), True), (Release(0, 19), True)],
)
def test_the_rule_begins_with_the_release_that_captures_the_iteration_by_a_scope(
    release: Release, expected: bool
) -> None:
    assert reported(release, "local", "cuda_graph_scope", ["full_iteration"], True) is expected


def test_what_a_release_refuses_at_start_is_reported_by_default() -> None:
    assert not RULES["CG401"].preview

"""`verify --run --hybrid`: a GPT model and its hybrid form, both trained by megatron-core itself on a CPU."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.verify.arms import EAGER, EAGER_AGAIN, LEGACY_TARGET, MIGRATED
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE, judge
from tests.support.nightly import nightly_only
from tests.support.tables import from_table
from tests.verify.test_compare import NEW, failed, layers, result

PROGRAM = Path(__file__).parent / "hybrid_job/pretrain_gpt.py"
GPT = (sys.executable, "-W", "ignore", "pretrain_gpt.py", "--num-layers", "2")
needs_release = pytest.mark.skipif(find_spec("megatron") is None, reason="needs the verify extra")


@pytest.fixture
def verify(project: Path, cgmigrate: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    for name in ("pretrain_gpt.py", "pretrain_hybrid.py"):
        shutil.copy(PROGRAM, project / name)

    def run(*command: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
        common = ("--hybrid", "--steps", "5", "--output-format", "json")
        done = cgmigrate("verify", "--run", *common, *options, "--", *command)
        [one] = json.loads(done.stdout)["comparisons"]
        return {**one, "status": done.exit_code}

    return run


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((sys.executable, "train.py", "--num-layers", "2"), "neither the command nor a file that it names shows a GPT"),
        ((*GPT, "--rotary-interleaved"), "`--rotary-interleaved`: the hybrid model does not read it"),
    ],
)
def test_what_has_no_hybrid_form_does_not_run(
    command: tuple[str, ...], reason: str, verify: Callable[..., Any]
) -> None:
    one = verify(*command)
    assert (one["status"], one["verdict"], one["roles"]) == (2, INCONCLUSIVE, {})
    assert reason in one["reason"]


@needs_release
def test_a_gpt_model_and_its_hybrid_form_compute_the_same(verify: Callable[..., Any]) -> None:
    one = verify(*GPT)
    assert (one["status"], one["verdict"]) == (0, EQUIVALENT), one
    assert "the same numbers on 0.19.2 to the last bit, from the same weights" in one["reason"]
    assert "--hybrid-layer-pattern '*-*-'" in one["diff"]
    assert {"trained GPTModel", "trained HybridModel"} <= set(one["notes"])


@needs_release
@nightly_only
@from_table
def test_another_model_is_not_equivalent(after: str, verdict: str, reason: str, verify: Callable[..., Any]) -> None:
    one = verify(*GPT, options=("--after", f"{sys.executable} -W ignore {after}"))
    assert one["verdict"] == verdict
    assert reason in one["reason"]


def test_verdicts_on_two_models() -> None:
    gpt, hybrid = (replace(result(NEW), remarks=(f"trained {name}Model",)) for name in ("GPT", "Hybrid"))
    roles = {EAGER: gpt, LEGACY_TARGET: gpt, MIGRATED: hybrid, EAGER_AGAIN: gpt}
    other = replace(hybrid, ranks=tuple(replace(rank, initial="other") for rank in hybrid.ranks))
    losses = replace(result(NEW, losses=(6.5, 6.25, 6.0, 5.0)), remarks=hybrid.remarks)
    graphs = replace(result(NEW, layers(count=2)), remarks=hybrid.remarks)
    for role, changed, verdict, reason in (
        (MIGRATED, hybrid, EQUIVALENT, "the same numbers on 0.19.2 to the last bit"),
        (MIGRATED, gpt, INCONCLUSIVE, "both forms trained GPTModel"),
        (MIGRATED, other, INCONCLUSIVE, "both forms start from other weights"),
        (MIGRATED, losses, DIFFERENT, "the GPT model and its hybrid form on 0.19.2, other numbers: losses differ"),
        (MIGRATED, graphs, EQUIVALENT_BUT, "their graphs are of other layers, and are not compared"),
        (MIGRATED, failed(NEW), DIFFERENT, "the migrated text crashed on 0.19.2"),
        (LEGACY_TARGET, failed(NEW), INCONCLUSIVE, "the GPT model crashed on 0.19.2: AssertionError: no"),
    ):
        shown = judge({**roles, role: changed}, hybrid=True)
        assert shown[0] == verdict
        assert reason in shown[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hybrid", "conf.yaml"), "--hybrid needs --run"),
        (("--run", "--hybrid", "--layers", "2,4,6,8", "--", "true"), "remove --layers and --source-command"),
    ],
)
def test_options_that_do_not_go_together(options: tuple[str, ...], message: str, cgmigrate: Callable[..., Any]) -> None:
    assert message in cgmigrate("verify", *options).stderr

"""The level ``capture`` on real GPUs: the matrix, and wrong rewrites that it must catch.

Needs releases of megatron-core, named as for ``--mcore`` and separated by commas:
``CGMIGRATE_MCORE=0.17.1=DIR,0.19.2=DIR pytest -m gpu``. All arms run once, several at a time; with
``CGMIGRATE_VERIFY_WORK=DIR`` those that ``cgmigrate verify --work DIR`` ran before are not run again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cgmigrate.megatron.releases import Release
from cgmigrate.verify.arms import MIGRATED, STATIC, TRAINING, ArmResult, Packing
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE, judge
from cgmigrate.verify.mcore import home_for, homes_of
from cgmigrate.verify.plan import PlannedComparison, Scale, VerifySelection, cases_of, planned
from cgmigrate.verify.run import Runner
from cgmigrate.verify.session import gpu_count
from tests.support.paths import ROOT
from tests.support.tables import table_of

pytestmark = pytest.mark.gpu

EXAMPLES = ROOT / "examples/verify"
OLD, NEW = Release(0, 17), Release(0, 19)
JOBS = 5

MATRIX = {
    # Example → (verdict on training, words of its reason).
    "enable": (EQUIVALENT, "graphs of 0.17.1 depart from eager; graphs of 0.19.2 equal eager"),
    "external-attn": (EQUIVALENT, "to the last bit"),
    "local-full-iteration": (EQUIVALENT, "to the last bit"),
    "local-attn-mlp": (EQUIVALENT, "graphs of 0.17.1 depart from eager"),
    "local-full-iteration-inference": (EQUIVALENT, "to the last bit"),
    "te-moe": (EQUIVALENT, "to the last bit"),
    "none-full-iteration": (EQUIVALENT_BUT, "own migration of the old text turns graphs on"),
}
WRONG = table_of(__name__, "WRONG")
PACKED = {
    # Documents a microbatch, cap → what the release makes of local graphs.
    "one shape for all microbatches": (Packing((2, 3, 5, 4), 8), EQUIVALENT, "graphs of 0.19.2 equal eager"),
    "another shape every time": (Packing((2, 3, 5, 4)), INCONCLUSIVE, "no matching cudagraph runners were found"),
    "a microbatch beyond the cap": (Packing((2, 3, 5, 12), 8), INCONCLUSIVE, "no matching cudagraph runners"),
}


@dataclass
class Ran:
    """All comparisons by name, and the results of their arms."""

    plans: dict[tuple[str, str], PlannedComparison] = field(default_factory=dict)
    results: dict[str, ArmResult] = field(default_factory=dict)

    def verdict(self, name: str, workload: str = TRAINING) -> tuple[str, str]:
        plan = self.plans[name, workload]
        verdict, reason, _ = judge({role: self.results[arm.key] for role, arm in plan.arms.items()})
        return verdict, reason

    def migrated(self, name: str, workload: str = TRAINING) -> ArmResult:
        return self.results[self.plans[name, workload].arms[MIGRATED].key]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    said = os.environ.get("CGMIGRATE_MCORE", "")
    if not gpu_count() or not said:
        pytest.skip("needs a GPU and CGMIGRATE_MCORE")
    folder = tmp_path_factory.mktemp("verify")
    homes = homes_of(said.split(","))
    versions = {release: home.version for release in (OLD, NEW) if (home := home_for(release, homes))}
    result = Ran()
    for name in MATRIX:
        result.plans |= _plans(name, EXAMPLES / f"{name}.yaml", "", versions, Scale())
    for name, (example, settings) in WRONG.items():
        after = _with_settings(folder / f"{len(result.plans)}.yaml", EXAMPLES / f"{example}.yaml", settings)
        scale = Scale(workloads=(TRAINING, STATIC) if "block" in name else (TRAINING,))
        result.plans |= _plans(name, EXAMPLES / f"{example}.yaml", after, versions, scale)
    for name, (packing, _, _) in PACKED.items():
        scale = Scale(workloads=(TRAINING,), packing=packing)
        result.plans |= _plans(name, EXAMPLES / "enable.yaml", "", versions, scale)
    arms = [arm for plan in result.plans.values() for arm in plan.arms.values()]
    result.results = Runner(homes, _work(folder), print, 120.0, JOBS).run(arms)
    yield result


def _work(folder: Path) -> Path:
    work = Path(os.environ.get("CGMIGRATE_VERIFY_WORK") or folder / "arms")
    work.mkdir(parents=True, exist_ok=True)
    return work


def _plans(
    name: str, file: Path, after: str, versions: dict[Release, str], scale: Scale
) -> dict[tuple[str, str], PlannedComparison]:
    input_error: list[str] = []
    (case,) = cases_of(VerifySelection((str(file),), OLD, NEW, after=after), input_error)
    assert not input_error
    return {(name, plan.workload): plan for plan in planned(case, versions, scale)}


def _with_settings(path: Path, example: Path, settings: dict[str, str]) -> str:
    """The example with other CUDA-graph settings."""
    lines = [line for line in example.read_text().splitlines() if "cuda_graph" not in line]
    path.write_text("\n".join([*lines, *(f"  {name}: {value}" for name, value in settings.items())]) + "\n")
    return str(path)


@pytest.mark.parametrize("name", MATRIX)
def test_matrix(ran: Ran, name: str) -> None:
    verdict, words = MATRIX[name]
    result, reason = ran.verdict(name)
    assert (result, words in reason) == (verdict, True), reason


@pytest.mark.parametrize("name", ["enable", "local-full-iteration-inference"])
def test_generation_repeats_to_the_bit(ran: Ran, name: str) -> None:
    for workload in ("static", "dynamic"):
        result, reason = ran.verdict(name, workload)
        assert result in (EQUIVALENT, EQUIVALENT_BUT), reason
        (rank,) = ran.migrated(name, workload).ranks
        what = "layer" if name == "enable" else "block"
        assert {graph.what for graph in rank.graphs} == {what}
        assert all(graph.replays[-1] for graph in rank.graphs)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rewrite_is_different(ran: Ran, name: str) -> None:
    result = {workload: ran.verdict(name, workload) for at, workload in ran.plans if at == name}
    assert {verdict for verdict, _ in result.values()} == {DIFFERENT}, result


@pytest.mark.parametrize("name", PACKED)
def test_packed_sequences(ran: Ran, name: str) -> None:
    _, verdict, words = PACKED[name]
    result, reason = ran.verdict(name)
    assert (result, words in reason) == (verdict, True), reason


def test_the_census_counts_what_gpu_facts_say(ran: Ran) -> None:
    """Four layers, forward and backward; two microbatches; the first of eight steps records."""
    (rank,) = ran.migrated("enable").ranks
    assert len(rank.graphs) == 8
    assert sum(sum(graph.replays) for graph in rank.graphs) == 112
    assert {graph.layer for graph in rank.graphs} == {1, 2, 3, 4}
    assert all(graph.kernels > 20 and graph.nodes >= graph.kernels for graph in rank.graphs)
    (rank,) = ran.migrated("local-full-iteration").ranks
    # Step 4 captures and replays at once: FullCudaGraphWrapper warms up for three steps.
    assert [sum(graph.replays) for graph in rank.graphs] == [5]
    (rank,) = ran.migrated("external-attn").ranks
    assert sum(sum(graph.replays) for graph in rank.graphs) == 80
    assert rank.eager[-1].get("MLP") == 8
    assert "SelfAttention" not in rank.eager[-1]


def test_every_arm_ended(ran: Ran) -> None:
    """An arm that cannot run ends with a line of its own, not at the clock."""
    for result in ran.results.values():
        assert result.outcome in ("done", "crashed", "refused"), (result.outcome, result.failure)
        assert (result.outcome == "done") == bool(result.ranks)
        assert (result.outcome == "done") != bool(result.failure)


# --- two GPUs --------------------------------------------------------------------------------------------------


TWO = {
    "tp2-enable": (EQUIVALENT, "graphs of 0.17.1 depart from eager; graphs of 0.19.2 equal eager"),
    "tp2-external-attn": (EQUIVALENT, "to the last bit"),
    "tp2-local-full-iteration": (EQUIVALENT, "to the last bit"),
    "pp2-enable": (DIFFERENT, "the release changed, not the migration"),
    "pp2-external-attn": (EQUIVALENT, "to the last bit"),
    "pp2-local-full-iteration": (INCONCLUSIVE, "torch.cuda.synchronize()"),
    "ep2-te-moe": (EQUIVALENT, "to the last bit"),
}


@pytest.fixture(scope="module")
def ran_on_two(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    said = os.environ.get("CGMIGRATE_MCORE", "")
    if gpu_count() < 2 or not said:
        pytest.skip("needs two GPUs and CGMIGRATE_MCORE")
    homes = homes_of(said.split(","))
    versions = {release: home.version for release in (OLD, NEW) if (home := home_for(release, homes))}
    result = Ran()
    for name in TWO:
        scale = Scale(gpus=2, workloads=(TRAINING,))
        result.plans |= _plans(name, EXAMPLES / "two-gpus" / f"{name}.yaml", "", versions, scale)
    arms = [arm for plan in result.plans.values() for arm in plan.arms.values()]
    result.results = Runner(homes, _work(tmp_path_factory.mktemp("verify")), print, 120.0, JOBS).run(arms)
    return result


@pytest.mark.parametrize("name", TWO)
def test_two_gpus(ran_on_two: Ran, name: str) -> None:
    verdict, words = TWO[name]
    result, reason = ran_on_two.verdict(name)
    assert (result, words in reason) == (verdict, True), reason
    if verdict != INCONCLUSIVE and result != DIFFERENT:
        assert len(ran_on_two.migrated(name).ranks) == 2

"""Megatron-LM's own migration of its scripts and test cases, against `fix`: bench/hand_migration.py."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import MEGATRON_LM, ROOT

sys.path.insert(0, str(ROOT / "bench"))

from hand_migration import HAND, PAGE, Verdict, compared, comparison, table, with_table

CASE = "MODEL_ARGS:\n  --num-layers: 4\n  --cuda-graph-impl: local\n  --cuda-graph-scope: {}\n"
MODULES = CASE.replace("scope", "modules")
BLOCK = "MODEL_ARGS:\n  --num-layers: 4\n  --cuda-graph-impl: local\n  --inference-cuda-graph-scope: block\n"
SCRIPT = 'ARGS="--bf16 \\\n  --enable-cuda-graph --cuda-graph-scope attn mlp"\npython t.py $ARGS\n'
MIGRATED = 'ARGS="--bf16 \\\n  --cuda-graph-impl local --cuda-graph-modules attn mlp"\npython t.py $ARGS\n'
VERDICTS = {
    "same bytes": (CASE.format("attn"), MODULES.format("attn"), MODULES.format("attn"), Verdict.SAME),
    "quotes": (CASE.format("attn"), MODULES.format('"[attn]"'), MODULES.format("attn"), Verdict.EQUIVALENT),
    "the author forgot one": (CASE.format("attn"), MODULES.format("attn"), CASE.format("attn"), Verdict.BETTER),
    "the author changed it": (CASE.format("attn"), MODULES.format("attn"), MODULES.format("mlp"), Verdict.BETTER),
    "left": (CASE.format("attn"), CASE.format("attn"), MODULES.format("attn"), Verdict.LEFT),
    "other modules": (CASE.format("attn"), MODULES.format("mlp"), MODULES.format("attn"), Verdict.WRONG),
    "inference": (CASE.format("full_iteration_inference"), MODULES.format("attn"), BLOCK, Verdict.WRONG),
    "another argument": (CASE.format("attn"), MODULES.format("attn").replace("4", "5"), MODULES, Verdict.WRONG),
}  # fmt: skip


@pytest.mark.parametrize(("before", "ours", "hand", "verdict"), VERDICTS.values(), ids=VERDICTS)
def test_the_verdict_of_a_test_case(before: str, ours: str, hand: str, verdict: Verdict) -> None:
    assert compared("case.yaml", before, ours, hand).verdict is verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (MIGRATED.replace("\\\n  ", ""), Verdict.EQUIVALENT),
        (MIGRATED.replace("--bf16", "--fp16"), Verdict.WRONG),
        (MIGRATED.replace(" mlp", ""), Verdict.WRONG),
        (SCRIPT, Verdict.LEFT),
    ],
)
def test_the_verdict_of_a_script(ours: str, verdict: Verdict) -> None:
    assert compared("run.sh", SCRIPT, ours, MIGRATED).verdict is verdict


def test_the_page_shows_what_fix_makes_today() -> None:
    if subprocess.run(["git", "-C", MEGATRON_LM, "cat-file", "-e", HAND], capture_output=True, check=False).returncode:
        pytest.skip("no clone of Megatron-LM lies beside the checkout")
    files = comparison(MEGATRON_LM)
    assert {one.path for one in files if one.verdict in (Verdict.WRONG, Verdict.LEFT)} == set()
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page, table(files)) == page

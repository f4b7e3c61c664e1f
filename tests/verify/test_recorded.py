"""Runs recorded on GPUs, judged again by this version; and the reports in docs/verification."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cgmigrate.verify.arms import LEGACY_SOURCE, LEGACY_TARGET, MIGRATED, ArmResult
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE, ArmComparison, judge
from cgmigrate.verify.report import as_json, from_json
from tests.support.paths import ROOT
from tests.support.scripts import module_at
from tests.support.tables import from_table

DOCS = ROOT / "docs/verification"


BUILD = module_at(DOCS / "build.py")


def verdicts(name: str) -> dict[tuple[str, str], tuple[str, str]]:
    comparisons, _ = BUILD.recorded(name)
    return {
        (Path(item.name).name.partition(".")[0], item.workload): (item.verdict, item.reason) for item in comparisons
    }


def test_the_reports_are_current() -> None:
    assert BUILD.main(check=True) == 0


def test_the_page_has_a_matrix_of_configurations_and_workloads() -> None:
    part = (DOCS / "runs.md").read_text(encoding="utf-8").partition("<!-- matrix -->")[2].partition("<!-- end -->")[0]
    part = part.replace("\N{NO-BREAK SPACE}", " ")
    table = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    assert table[0] == ["configuration", "training", "generation, static batching", "generation, dynamic batching"]
    rows = {row[0]: row[1:] for row in table[2:]}
    assert rows["`enable`"] == [
        "[✓ equivalent](matrix.html#c1)<br>Δ numbers",
        "[✓ equivalent](matrix.html#c2)<br>Δ numbers",
        "[✓ equivalent](matrix.html#c3)",
    ]
    assert rows["`none-full-iteration`"][0].startswith("[✓ equivalent](matrix.html#c10)")
    anchors = re.findall(r"matrix\.html#(c\d+)", part)
    assert len(rows) == 7
    assert len(anchors) == len(set(anchors)) == 11
    report = (DOCS / "matrix.html").read_text(encoding="utf-8")
    assert all(f'<h2 id="{anchor}">' in report for anchor in anchors)
    # Whole sentences are below the table, out of sight until a click shows them.
    assert part.count("<details>") == part.count("</details>") == 7
    assert "<li>digest <code>0066ad16</code>: legacy on 0.17.1</li>" in part


def test_one_gpu() -> None:
    result = verdicts("matrix")
    assert {name: verdict for name, (verdict, _) in result.items()} == {
        ("enable", "training"): EQUIVALENT,
        ("enable", "static"): EQUIVALENT,
        ("enable", "dynamic"): EQUIVALENT,
        ("external-attn", "training"): EQUIVALENT,
        ("local-attn-mlp", "training"): EQUIVALENT,
        ("local-full-iteration", "training"): EQUIVALENT,
        ("local-full-iteration-inference", "training"): EQUIVALENT,
        ("local-full-iteration-inference", "static"): EQUIVALENT,
        ("local-full-iteration-inference", "dynamic"): EQUIVALENT,
        ("none-full-iteration", "training"): EQUIVALENT_BUT,
        ("te-moe", "training"): EQUIVALENT,
    }
    assert "turns graphs on (1 × full iteration" in result["none-full-iteration", "training"][1]
    for name in (("enable", "training"), ("enable", "static"), ("local-attn-mlp", "training")):
        assert "graphs of 0.17.1 depart from eager; graphs of 0.19.2 equal eager" in result[name][1]


def test_two_gpus() -> None:
    assert {name: verdict for (name, _), (verdict, _) in verdicts("two-gpus").items()} == {
        "ep2-te-moe": EQUIVALENT,
        "pp2-enable": DIFFERENT,
        "pp2-external-attn": EQUIVALENT,
        "pp2-local-full-iteration": INCONCLUSIVE,
        "tp2-enable": EQUIVALENT,
        "tp2-external-attn": EQUIVALENT,
        "tp2-local-full-iteration": EQUIVALENT,
    }


@from_table
def test_each_report_has_one_answer(name: str, sentence: str) -> None:
    page = (DOCS / f"{name}.html").read_text(encoding="utf-8")
    assert f'<p class="sentence">{sentence}</p>' in page


def test_times_are_compared_only_where_eager_runs_repeat_them() -> None:
    page = (DOCS / "two-gpus.html").read_text(encoding="utf-8")
    sections = {part.partition(" ")[0]: part for part in page.split("<h2 id=")}
    shown = {anchor: "× eager’s speed</span>" in part for anchor, part in sections.items() if "Time of a step" in part}
    # Two eager runs took 61 and 151 ms (expert parallel), 41 and 70 ms (pipeline), 39 and 40 ms (tensor parallel).
    assert list(shown.values()) == [False] * 4 + [True] * 3
    assert "Two eager runs differ by 147 %, so times are not compared." in page


@from_table
def test_packed_sequences(name: str, local: str, iteration: str) -> None:
    result = verdicts(name)
    assert result["enable", "training"][0] == local
    assert result["local-full-iteration", "training"][0] == iteration
    assert "packed_seq_params are excluded" in result["external-attn", "training"][1]


def arms(name: str, site: str) -> dict[str, ArmResult]:
    comparisons, results = BUILD.recorded(name)
    (item,) = (item for item in comparisons if site in item.name and item.workload == "training")
    return {role: results[key] for role, key in item.roles.items()}


@from_table
def test_the_arm_of_another_configuration_is_a_wrong_rewrite(right: str, wrong: str) -> None:
    """What a wrong rewrite would have measured is recorded: the migrated arm of another configuration."""
    roles = arms("matrix", right)
    assert judge({**roles, MIGRATED: arms("matrix", wrong)[MIGRATED]})[0] == DIFFERENT


def test_one_bit_is_enough() -> None:
    roles = arms("matrix", "external-attn.yaml")
    rank = roles[MIGRATED].ranks[0]
    last = float.fromhex(rank.losses[-1])
    import math

    changed = replace(rank, losses=(*rank.losses[:-1], math.nextafter(last, 10.0).hex()))
    verdict, reason, _ = judge({**roles, MIGRATED: replace(roles[MIGRATED], ranks=(changed,))})
    assert verdict == DIFFERENT
    assert "losses differ from step 8 on" in reason


def test_one_replay_less_is_enough() -> None:
    """A graph that fell back to eager in one step."""
    roles = arms("matrix", "external-attn.yaml")
    rank = roles[MIGRATED].ranks[0]
    graph = replace(rank.graphs[0], replays=(*rank.graphs[0].replays[:-1], 1))
    changed = replace(roles[MIGRATED], ranks=(replace(rank, graphs=(graph, *rank.graphs[1:])),))
    assert judge({**roles, MIGRATED: changed})[0] == DIFFERENT


def test_legacy_and_migrated_are_equal_on_the_target_whatever_the_source_did() -> None:
    comparisons, results = BUILD.recorded("matrix")
    for item in comparisons:
        if "none-full" in item.name:
            continue
        old, new = results[item.roles[LEGACY_TARGET]].ranks[0], results[item.roles[MIGRATED]].ranks[0]
        assert (old.losses, old.parameters, old.tokens, old.logits) == (
            new.losses,
            new.parameters,
            new.tokens,
            new.logits,
        )
        assert (old.rng, len(old.graphs)) == (new.rng, len(new.graphs))
        assert results[item.roles[LEGACY_SOURCE]].outcome == "done"


def test_the_json_report_is_read_back_as_it_was() -> None:
    comparisons, results = BUILD.recorded("two-gpus")
    again: tuple[list[ArmComparison], dict[str, ArmResult]] = from_json(as_json(comparisons, results, []))
    assert again == (comparisons, results)
    with pytest.raises(ValueError, match="format"):
        from_json('{"format": 0}')

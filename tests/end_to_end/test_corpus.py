"""Real configurations: hand-migrated pairs, a clean tree, and legacy files of five ecosystems."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.megatron.releases import LAST_OLD
from cgmigrate.project.options import RunOptions
from tests.support.tables import table_of

PAIRS = table_of(__name__, "PAIRS")
LEGACY = re.compile(r"(?<![\w-])(--)?(enable|external)[_-]cuda[_-]graph\b|(?<![\w-])(--)?cuda[_-]graph[_-]scope\b")


def checked(path: Path) -> FileResult | None:
    (result,) = list(Run([str(path)], RunOptions())) or [None]
    assert result is None or isinstance(result, FileResult)
    return result


def after(path: Path) -> str:
    result = checked(path)
    text = path.read_bytes().decode()
    return text if result is None or result.after is None else result.after


@pytest.mark.parametrize("name", PAIRS)
def test_a_hand_migrated_pair_reads_the_same(corpus: Path, name: str) -> None:
    hand = yaml.safe_load((corpus / "pairs" / name / "after.yaml").read_text())
    ours = yaml.safe_load(after(corpus / "pairs" / name / "before.yaml"))
    if name.startswith("nemotron3_"):
        # The author of these two left the boolean in place.
        assert hand["MODEL_ARGS"].pop("--enable-cuda-graph") is True
        assert ours["MODEL_ARGS"].pop("--cuda-graph-impl") == "local"
    assert ours == hand


def test_all_pairs_are_there(corpus: Path) -> None:
    assert sorted(path.name for path in (corpus / "pairs").iterdir()) == PAIRS


def test_a_migrated_tree_has_no_diagnostic_and_no_change(corpus: Path) -> None:
    run = Run([str(corpus / "yaml/nemo-rl")], RunOptions())
    unexpected = [
        item for item in run if not isinstance(item, FileResult) or item.diagnostics or item.after is not None
    ]
    assert unexpected == []
    assert run.discovery.files_seen == 295


def test_every_legacy_line_has_a_diagnostic_or_a_stated_owner(corpus: Path) -> None:
    lines = 0
    for path in sorted(corpus.rglob("*.yaml")):
        text = path.read_text()
        if "yaml/nemo-rl/" in str(path) or not LEGACY.search(text):
            continue
        result = checked(path)
        assert result is not None
        reported = {text.count("\n", 0, diagnostic.span.start) + 1 for diagnostic in result.diagnostics}
        reported |= {line for line, _, _ in result.skipped}
        for number, line in enumerate(text.split("\n"), 1):
            if LEGACY.search(line.partition("#")[0]):
                lines += 1
                assert number in reported, f"{path}:{number}: {line}"
    assert lines >= 25


def test_the_generation_engines_own_key_is_left_alone(corpus: Path) -> None:
    result = checked(corpus / "yaml/nemo-rl-pr1967/grpo_math_1B_megatron.yaml")
    assert result is not None
    assert result.skipped == ((161, "enable_cuda_graph", "NeMo-RL's generation engine"),)
    refused, diagnostic = result.diagnostics
    assert (refused.rule, diagnostic.rule, diagnostic.applicability) == ("CG501", "CG106", None)
    assert diagnostic.blocked_by == "CG501 on line 101"


def test_interpolated_values_are_reported_and_left(corpus: Path) -> None:
    for name in ("llama31_405b/custom.yaml", "llama2_70b_lora/megatron_gpt_peft_tuning_config.yaml"):
        result = checked(corpus / "yaml/mlperf-5.0" / name)
        assert result is not None
        assert {diagnostic.rule for diagnostic in result.diagnostics} == {"CG003"}
        assert len(result.diagnostics) == 2
        assert result.after is None


def test_a_serialised_tree_loses_its_false_booleans(corpus: Path) -> None:
    path = corpus / "yaml/nemo-2.4.0/model.yaml"
    before, now = path.read_text().split("\n"), after(path).split("\n")
    gone = [line.strip() for line in before if line not in now]
    assert gone == ["enable_cuda_graph: false", "external_cuda_graph: false"]
    assert [line for line in before if line in now] == now


def test_a_second_fix_changes_nothing(corpus: Path, tmp_path: Path) -> None:
    for path in sorted(corpus.rglob("*.yaml")):
        first = after(path)
        copy = tmp_path / "copy.yaml"
        copy.write_bytes(first.encode())
        assert after(copy) == first, path


def test_from_selects_the_meaning_in_a_release_before_the_split(corpus: Path) -> None:
    """From 0.16, scoped local graphs also served inference; 0.19 cannot capture that, so nothing is written."""
    path = corpus / "pairs/nemotron3_super_release_gb200/before.yaml"
    (result,) = Run([str(path)], RunOptions(source=LAST_OLD._replace(minor=16)))
    assert isinstance(result, FileResult)
    assert result.after is None
    assert (
        "captures whole layers (local) in training, whole layers (local) in inference" in result.diagnostics[0].because
    )

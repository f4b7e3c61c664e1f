"""Files that others are merged over are judged by themselves, and with each of those."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.project.options import RunOptions
from tests.support.files import write
from tests.support.merged_configs import captured, loaded, settings_at

HALF = "model_config:\n  num_attention_heads: 4\n  cuda_graph_scope: full_iteration\n"
"""By itself it says nothing of an implementation, which a file that builds on it sets."""
OTHER_HALF = "defaults: base.yaml\nmodel_config:\n  cuda_graph_impl: local\n"
REFUSED = "model_config:\n  num_attention_heads: 4\n  enable_cuda_graph: true\n  cuda_graph_impl: transformer_engine\n"
"""0.17 and later refuse a boolean beside an implementation."""


def texts_after_fix(folder: Path) -> dict[str, str]:
    results = [item for item in Run([str(folder)], RunOptions()) if isinstance(item, FileResult)]
    for checked in results:
        if checked.after is not None:
            Path(checked.path).write_text(checked.after)
    return {path.name: path.read_text() for path in sorted(folder.rglob("*.yaml"))}


def assert_captures_the_same(path: Path, before: dict[str, object]) -> None:
    first = captured(settings_at(before, ("model_config",)), Reader.CONFIG, migrated=False)
    after = captured(settings_at(loaded(path), ("model_config",)), Reader.CONFIG, migrated=True)
    assert first == after and not isinstance(first, Rejected)


def test_half_of_a_pair_stays_though_the_file_that_builds_on_it_has_the_other_half(project: Path) -> None:
    """Whether a run starts with the base itself is not known."""
    write(project / "base.yaml", HALF)
    write(project / "child.yaml", OTHER_HALF)
    texts = texts_after_fix(project)
    assert (texts["base.yaml"], texts["child.yaml"]) == (HALF, OTHER_HALF)


def test_a_leaf_without_settings_that_merges_both_halves_prevents_a_rewrite_that_it_would_feel(project: Path) -> None:
    write(project / "base.yaml", HALF)
    write(project / "other.yaml", "model_config:\n  cuda_graph_impl: local\n")
    leaf = write(project / "leaf.yaml", "defaults: [other.yaml, base.yaml]\nx: 1\n")
    before = loaded(leaf)
    texts_after_fix(project)
    assert_captures_the_same(leaf, before)


def test_settings_that_contradict_each_other_stay_in_a_leaf(project: Path) -> None:
    write(project / "base.yaml", "model_config:\n  num_attention_heads: 4\n")
    write(project / "child.yaml", "defaults: base.yaml\n" + REFUSED)
    assert texts_after_fix(project)["child.yaml"] == "defaults: base.yaml\n" + REFUSED


@pytest.mark.parametrize("own", ["", "  cuda_graph_impl: none\n"])
def test_a_scope_without_an_implementation_stays_in_a_base(project: Path, own: str) -> None:
    """Another file that builds on the base may set the implementation."""
    write(project / "base.yaml", "model_config:\n  num_attention_heads: 4\n  cuda_graph_scope: full_iteration\n")
    write(project / "child.yaml", f"extends: base.yaml\nmodel_config:\n{own}" if own else "extends: base.yaml\nx: 1\n")
    assert "cuda_graph_scope" in texts_after_fix(project)["base.yaml"]


def test_a_site_that_stays_is_not_rewritten_by_the_next_run(project: Path) -> None:
    for name in ("one", "two"):
        write(project / f"{name}.yaml", "model_config:\n  num_attention_heads: 4\n  external_cuda_graph: true\n")
    own = "  cuda_graph_impl: none\n  enable_cuda_graph: false\n  cuda_graph_scope: full_iteration_inference\n"
    write(project / "child.yaml", f"include: [one, two]\nmodel_config:\n{own}")
    texts = texts_after_fix(project)
    assert texts_after_fix(project) == texts


def test_a_primary_configuration_of_hydra_is_judged_by_itself_though_another_builds_on_it(project: Path) -> None:
    config = "defaults:\n- size: small\nmodel_config:\n  cuda_graph_scope: full_iteration\n"
    write(project / "conf/size/small.yaml", "# @package _global_\nmodel_config:\n  num_attention_heads: 4\n")
    write(project / "conf/config.yaml", config)
    write(project / "conf/child.yaml", "defaults: [config, _self_]\nmodel_config:\n  cuda_graph_impl: local\n")
    assert texts_after_fix(project)["config.yaml"] == config

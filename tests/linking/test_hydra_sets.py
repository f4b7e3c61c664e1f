"""Sets of files that Hydra composes: groups with packages, options of the command line, the order of `_self_`."""

from __future__ import annotations

from pathlib import Path

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.project.options import RunOptions
from tests.support.files import write

BASE = "megatron_cfg:\n  num_layers: 2\n  cuda_graph_impl: transformer_engine\n"
SCOPE = "policy:\n  megatron_cfg:\n    cuda_graph_scope: [mlp]\n"


def fixed(folder: Path, **texts: str) -> dict[str, str]:
    """Write files below a folder (`__` is a slash), fix the folder, and return the names and texts that changed."""
    paths = {name: write(folder / f"{name.replace('__', '/')}.yaml", text) for name, text in texts.items()}
    results = [item for item in Run([str(folder)], RunOptions()) if isinstance(item, FileResult)]
    after = {Path(checked.path).resolve(): checked.after for checked in results}
    return {name: text for name, path in paths.items() if (text := after.get(path.resolve())) is not None}


def test_a_group_with_a_package_is_merged_where_the_package_says(project: Path) -> None:
    defaults = "defaults:\n- policy: base\n- graphs@policy.megatron_cfg: fast\n- _self_\n"
    graphs = "cuda_graph_impl: transformer_engine\ncuda_graph_scope: [attn]\n"
    after = fixed(project / "conf", policy__base=BASE, graphs__fast=graphs, config=defaults + SCOPE)
    # Both change, or neither does.
    assert set(after) in ({"graphs__fast", "config"}, set())


def test_a_file_whose_name_an_interpolation_begins_is_not_rewritten_alone(project: Path) -> None:
    base = "megatron_cfg:\n  num_layers: 2\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
    child = "defaults: {}\nmegatron_cfg:\n  num_layers: 4\n  cuda_graph_impl: transformer_engine\n"
    assert set(fixed(project / "conf", base_7b=base, child=child.format("other.yaml"))) == {"base_7b"}
    assert fixed(project / "conf", base_7b=base, child=child.format("base_${oc.env:SIZE}.yaml")) == {}


def test_what_overrides_the_mapping_around_it_overrides_that_of_a_merged_file(project: Path) -> None:
    base = "trainer: {}\nexp_manager: {}\nmodel:\n  external_cuda_graph: true\n"
    child = "defaults: base.yaml\nmodel:\n  overwritten_attributes:\n    external_cuda_graph: false\n"
    assert fixed(project / "conf", base=base, child=child) == {}
    (project / "conf/child.yaml").unlink()
    assert set(fixed(project / "conf", base=base)) == {"base"}


def test_an_option_that_no_defaults_list_names_belongs_to_the_set(project: Path) -> None:
    main = "defaults:\n- policy: base\n- _self_\n"
    fast = "# @package _global_\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: ${oc.env:SCOPE,mlp}\n"
    base = BASE + "  cuda_graph_scope: [attn]\n"
    assert fixed(project / "conf", policy__base=base, config=main, experiment__fast=fast) == {}


def test_another_option_of_a_group_belongs_to_the_set(project: Path) -> None:
    main = "defaults:\n- graphs@policy.megatron_cfg: one\n- _self_\npolicy:\n  megatron_cfg:\n    num_layers: 2\n"
    one = "num_layers: 2\n"
    other = "num_layers: 2\ncuda_graph_scope: ${oc.env:SCOPE}\n"
    main += "    cuda_graph_impl: transformer_engine\n    cuda_graph_scope: [attn]\n"
    assert fixed(project / "conf", graphs__one=one, graphs__other=other, config=main) == {}


def test_a_set_writes_no_deprecated_setting_where_there_was_none(project: Path) -> None:
    base = 'megatron_cfg: {num_layers: 2, num_attention_heads: 4, cuda_graph_scope: "attn,mlp"}\n'
    large = "defaults: [_self_, base]\nmegatron_cfg: {cuda_graph_modules: [attn]}\n"
    main = "defaults:\n- policy: base\n"
    after = fixed(project / "conf", policy__base=base, policy__large=large, config=main)
    assert "policy__large" not in after


def test_a_group_option_alone_with_settings_is_its_set(project: Path) -> None:
    main = "defaults:\n- policy: base\n- override hydra/launcher: basic\n- _self_\npolicy:\n  lr: 1\n"
    base = BASE + "  cuda_graph_scope: [attn]\n"
    after = fixed(project / "conf", policy__base=base, config=main, optim__adam="lr: 1\n")
    assert set(after) == {"policy__base"} and "cuda_graph_modules: [attn]" in after["policy__base"]

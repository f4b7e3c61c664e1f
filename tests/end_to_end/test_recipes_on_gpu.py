"""What bench/recipes_on_gpu.py makes of recipes, without a GPU: small configurations with the same settings."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("megatron.core.transformer", reason="recipes are executed with the installed megatron-core")
pytest.importorskip("omegaconf", reason="leaves are composed with OmegaConf")

from cgmigrate.verify.plan import Selection, cases_of
from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from recipes_on_gpu import INDEX, Pair, nemo_rl_pairs, pair_of, settled, write

SCOPE = {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn", "moe_router"]}
MODULES = {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn", "moe_router"]}
LOADER = """\
from omegaconf import OmegaConf


def load_config_with_inheritance(path):
    leaf = OmegaConf.load(path)
    return OmegaConf.merge(OmegaConf.load(path.parent / leaf.pop("defaults")), leaf)
"""


def test_a_pair_keeps_what_decides_the_graphs_in_a_small_size() -> None:
    beside = {"hidden_size": 7168, "expert_model_parallel_size": 64, "moe_token_dispatcher_type": "flex"}
    pair = pair_of("moe_pretrain_8gpu_fp8cs_config", {**beside, **SCOPE, "use_te_rng_tracker": True}, MODULES)
    assert (pair.before, pair.after, pair.source, pair.tracker) == (SCOPE, MODULES, "0.17", True)
    assert (pair.shape["hidden_size"], pair.shape["num_moe_experts"], pair.shape["fp8"]) == (256, 4, "hybrid")
    # Without this, alltoall waits for the host, which no graph can hold.
    assert pair.shape["moe_pad_expert_input_to_capacity"]
    assert pair.captures()


@pytest.mark.parametrize(("name", "reader"), [("pretrain_config", "Megatron-Bridge"), ("leaf.yaml", "NeMo-RL")])
def test_verify_reads_a_pair_as_one_case(tmp_path: Path, name: str, reader: str) -> None:
    write(tmp_path, [pair_of(name, SCOPE, MODULES)])
    before, after = (str(tmp_path / "0" / f"{form}.yaml") for form in ("before", "after"))
    problems: list[str] = []
    (case,) = cases_of(Selection((before,), after=after), problems)
    assert not problems
    assert case.reader.value == reader
    assert (case.before, case.after) == (SCOPE, MODULES)
    assert len(json.loads((tmp_path / INDEX).read_text())) == 1


def test_new_names_were_never_written_for_an_old_release() -> None:
    assert pair_of("a", MODULES, MODULES).source == "0.19"
    assert pair_of("a", {"cuda_graph_impl": "full_iteration", "cuda_graph_scope": []}, {}).source == "0.19"
    assert pair_of("a", {"cuda_graph_scope": [], "cuda_graph_modules": []}, {}).source == "0.17"


def test_what_fix_leaves_is_settled_without_a_run() -> None:
    local = {"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration_inference"}
    refused = settled(Pair("a.yaml", "0.17", local, local))
    assert refused is not None
    ((_, verdict, reason),) = refused.workloads
    assert (verdict, "Megatron Bridge supports" in reason) == ("not migrated", True)
    same = settled(Pair("a.yaml", "0.19", MODULES, MODULES))
    assert same is not None
    assert same.workloads[0][1] == "unchanged"
    assert settled(Pair("a.yaml", "0.17", SCOPE, MODULES)) is None


def test_a_leaf_is_composed_by_the_loader_of_its_tree(tmp_path: Path) -> None:
    trees = []
    for name, key in (("before", "cuda_graph_scope"), ("after", "cuda_graph_modules")):
        tree = tmp_path / name
        (tree / "nemo_rl/utils").mkdir(parents=True)
        (tree / "nemo_rl/utils/config.py").write_text(LOADER)
        base = {"activation_checkpointing": True, "cuda_graph_impl": "transformer_engine"}
        leaf = {"te_rng_tracker": True, key: ["attn"]}
        (tree / "base.yaml").write_text(yaml.safe_dump({"policy": {"megatron_cfg": base}}))
        (tree / "leaf.yaml").write_text(yaml.safe_dump({"defaults": "base.yaml", "policy": {"megatron_cfg": leaf}}))
        trees.append(tree)
    (pair,) = nemo_rl_pairs(trees[0], trees[1], ["leaf.yaml"])
    assert pair.before == {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn"]}
    assert pair.after == {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}
    assert pair.shape["recompute_granularity"] == "full"
    assert pair.tracker

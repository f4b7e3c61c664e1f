"""From files to cases, proxies and arms."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.types import Reader
from cgmigrate.verify.arms import (
    DYNAMIC,
    EAGER,
    EAGER_SOURCE,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    STATIC,
    TRAINING,
    Packing,
)
from cgmigrate.verify.compare import with_changes
from cgmigrate.verify.plan import Case, PlanError, Scale, VerifySelection, cases_of, planned
from cgmigrate.verify.proxy import NO_MAMBA, proxy_of
from tests.support.tables import from_table, table_of

OLD, NEW = Release(0, 17), Release(0, 19)
VERSIONS = {OLD: "0.17.1", NEW: "0.19.2"}
TWO = """\
train:
  hidden_size: 1024
  cuda_graph_impl: local
  cuda_graph_scope: full_iteration
serve:
  hidden_size: 1024
  num_moe_experts: 8
  recompute_modules: [core_attn]
  cuda_graph_impl: local
  cuda_graph_modules: [attn]
  enable_cuda_graph: false
unchanged:
  hidden_size: 1024
  cuda_graph_impl: transformer_engine
"""


def cases(path: Path, text: str, **requested: object) -> list[Case]:
    path.write_text(text)
    input_error: list[str] = []
    result = list(cases_of(VerifySelection((str(path),), OLD, NEW, **requested), input_error))  # type: ignore[arg-type]
    assert not input_error
    return result


def test_each_site_that_changes_is_a_case(tmp_path: Path) -> None:
    result = cases(tmp_path / "a.yaml", TWO)
    assert [(case.name.rpartition("/")[2], case.reader) for case in result] == [
        ("a.yaml:3", Reader.CONFIG),
        ("a.yaml:9", Reader.CONFIG),
    ]
    first, second = result
    assert first.before == {"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration"}
    assert first.after == {"cuda_graph_impl": "full_iteration"}
    assert "-  cuda_graph_scope: full_iteration" in first.diff
    assert second.fields["recompute_modules"] == ["core_attn"]
    assert second.unclear.startswith("the settings are not migrated") or second.after != second.before


def test_a_line_chooses_the_site(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(TWO)
    input_error: list[str] = []
    (case,) = cases_of(VerifySelection((f"{path}:2",), OLD, NEW), input_error)
    assert case.name == f"{path}:3"
    with pytest.raises(PlanError, match="no settings that change"):
        list(cases_of(VerifySelection((f"{path}:13",), OLD, NEW), input_error))


def test_a_migrated_form_made_by_hand(tmp_path: Path) -> None:
    hand = tmp_path / "hand.yaml"
    hand.write_text("model:\n  hidden_size: 64\n  cuda_graph_impl: local\n")
    text = "model:\n  hidden_size: 64\n  external_cuda_graph: true\n"
    (case,) = cases(tmp_path / "a.yaml", text, after=str(hand))
    assert case.after == {"cuda_graph_impl": "local"}


BEFORE = """\
model:
  hidden_size: 64
  hidden_dropout: 0.1
  enable_cuda_graph: true  # all layers
trainer: {lr: 1, args: [a, "model.cuda_graph_scope=full"]}
"""
AFTER = """\
model:
  hidden_dropout: 0.1
  cuda_graph_impl: local
  hidden_size: 64

trainer:
  args: [a]
  lr: 1
"""


@from_table
def test_what_a_hand_changes_beside_the_settings_is_named(
    tmp_path: Path, old: str, new: str, changes: tuple[str, ...]
) -> None:
    hand = tmp_path / "hand.yaml"
    hand.write_text(AFTER.replace(old, new, 1))
    result = cases(tmp_path / "a.yaml", BEFORE, after=str(hand))
    assert result[0].changes == changes
    assert result[0].migrated_fields.get("hidden_dropout") == (
        None if old.startswith("  ") else 0.0 if "0.0" in new else 0.1
    )
    (plan,) = planned(result[0], VERSIONS, Scale())[:1]
    dropouts = [plan.arms[role].proxy.fields.get("hidden_dropout") for role in (LEGACY_TARGET, EAGER, MIGRATED)]
    assert dropouts == [0.1, 0.1, result[0].migrated_fields.get("hidden_dropout")]


CODE = """\
from megatron.core.transformer import TransformerConfig

config = TransformerConfig(hidden_dropout=0.1, enable_cuda_graph=True)  # all layers
steps = 3
"""


@from_table
def test_what_a_hand_changes_in_code_is_named(tmp_path: Path, old: str, new: str, changes: tuple[str, ...]) -> None:
    hand = tmp_path / "hand.py"
    hand.write_text(CODE.replace("enable_cuda_graph=True", 'cuda_graph_impl="local"').replace(old, new))
    (case,) = cases(tmp_path / "a.py", CODE, after=str(hand))
    assert case.changes == changes


@pytest.mark.parametrize("verdict", ["equivalent", "equivalent, but"])
def test_a_file_that_changes_more_than_the_settings_is_not_equivalent(verdict: str) -> None:
    also = "the migrated file also changes `lr` (1, then 2)"
    assert with_changes(verdict, "why", ("`lr` (1, then 2)",)) == (
        "different",
        f"{also}; the settings alone: {verdict}, why",
    )
    assert with_changes("inconclusive", "why", ("`lr` (1, then 2)",)) == ("inconclusive", f"why; {also}")
    assert with_changes(verdict, "why", ()) == (verdict, "why")


@pytest.mark.parametrize("spelling", ["a.yaml", "./a.yaml", "sub/../a.yaml", "{folder}/a.yaml"])
def test_lines_choose_sites_however_the_file_is_spelt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.yaml").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    name = spelling.format(folder=tmp_path)

    def lines(*paths: str) -> list[str]:
        return [case.name.rpartition(":")[2] for case in cases_of(VerifySelection(paths, OLD, NEW), [])]

    assert lines(f"{name}:9") == ["9"]
    assert sorted(lines(f"{name}:9", "a.yaml:3")) == ["3", "9"]
    assert sorted(lines(f"{name}:9", "a.yaml")) == ["3", "9"]


def test_a_line_of_a_file_without_settings_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("model:\n  hidden_size: 64\n")
    with pytest.raises(PlanError, match="no settings that change"):
        list(cases_of(VerifySelection((f"{tmp_path}/a.yaml:2",), OLD, NEW), []))


def test_a_place_that_only_the_hands_form_has_is_compared(tmp_path: Path) -> None:
    """Graphs that a hand turned on where the old text has no settings at all."""
    hand = tmp_path / "hand.yaml"
    text = (
        "a:\n  hidden_size: 64\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\nb:\n  hidden_size: 64\n"
    )
    hand.write_text(
        text.replace("local", "full_iteration").replace("  cuda_graph_scope: full_iteration\n", "")
        + "  cuda_graph_impl: full_iteration\n"
    )
    first, second = cases(tmp_path / "a.yaml", text, after=str(hand))
    assert (first.before["cuda_graph_scope"], first.after) == ("full_iteration", {"cuda_graph_impl": "full_iteration"})
    assert (second.name, second.before, second.after) == (f"{hand}:6", {}, {"cuda_graph_impl": "full_iteration"})
    assert not second.unclear


@pytest.mark.parametrize("data", [None, b"\xff\xfe"], ids=["missing", "not UTF-8"])
def test_an_after_that_cannot_be_read(tmp_path: Path, data: bytes | None) -> None:
    hand = tmp_path / "hand.yaml"
    if data is not None:
        hand.write_bytes(data)
    with pytest.raises(PlanError, match="--after"):
        cases(tmp_path / "a.yaml", TWO, after=str(hand))


def test_an_after_of_a_file_without_settings_is_not_passed_over(tmp_path: Path) -> None:
    hand = tmp_path / "hand.yaml"
    hand.write_text("model:\n  hidden_size: 64\n  cuda_graph_impl: full_iteration\n")
    with pytest.raises(PlanError, match="holds no settings"):
        cases(tmp_path / "a.yaml", "model:\n  hidden_size: 64\n", after=str(hand))


def test_python_sites_are_cases_too(tmp_path: Path) -> None:
    text = """\
from megatron.core.transformer import TransformerConfig

config = TransformerConfig(num_layers=2, hidden_size=64, num_attention_heads=4, enable_cuda_graph=True)
"""
    (case,) = cases(tmp_path / "a.py", text)
    assert (case.before, case.after) == ({"enable_cuda_graph": True}, {"cuda_graph_impl": "local"})


def test_what_nobody_can_know_is_said(tmp_path: Path) -> None:
    text = "model:\n  hidden_size: 64\n  cuda_graph_impl: local\n  cuda_graph_scope: ${oc.env:SCOPE}\n"
    (case,) = cases(tmp_path / "a.yaml", text)
    assert case.unclear.startswith("`cuda_graph_scope` is ")


def test_settings_of_unknown_owners_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("engine:\n  enable_cuda_graph: true\n")
    input_error: list[str] = []
    notes: list[str] = []
    assert list(cases_of(VerifySelection((str(path),), OLD, NEW), input_error, notes)) == []
    assert notes == [f"{path}: settings whose owner is ambiguous are skipped (CG006)"]


def test_settings_that_are_not_migrated_are_inconclusive_at_the_config_level(tmp_path: Path) -> None:
    from cgmigrate.verify.session import VerifyOptions, verify

    path = tmp_path / "a.yaml"
    path.write_text("model:\n  hidden_size: 64\n  cuda_graph_scope: full_iteration\n")
    (result,) = verify(VerifyOptions(VerifySelection((str(path),), OLD, NEW)), print).config
    assert result.verdict == "inconclusive"
    assert result.reason.startswith("the settings are not migrated")


# --- arms -----------------------------------------------------------------------------------------------------


def case(before: dict[str, object], after: dict[str, object], reader: Reader = Reader.CONFIG) -> Case:
    return Case("a.yaml:1", reader, before, after, OLD, NEW)


def test_the_arms_of_a_training_configuration() -> None:
    whole = case(
        {"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration"}, {"cuda_graph_impl": "full_iteration"}
    )
    (plan,) = planned(whole, VERSIONS, Scale())
    assert plan.workload == TRAINING
    shown = {role: (arm.release, dict(arm.settings), arm.repeat) for role, arm in plan.arms.items()}
    assert shown == {
        "eager": ("0.19.2", {}, 0),
        "eager-again": ("0.19.2", {}, 1),
        "eager-source": ("0.17.1", {}, 0),
        "legacy-source": ("0.17.1", whole.before, 0),
        "legacy-target": ("0.19.2", whole.before, 0),
        "migrated": ("0.19.2", whole.after, 0),
    }
    assert len({arm.model_key for arm in plan.arms.values()}) == 1


def test_generation_is_run_where_inference_is_captured() -> None:
    block = {"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration_inference"}
    plans = planned(case(block, {"cuda_graph_impl": "local", "inference_cuda_graph_scope": "block"}), VERSIONS, Scale())
    assert [plan.workload for plan in plans] == [TRAINING, STATIC, DYNAMIC]
    only = planned(case(block, {}), VERSIONS, Scale(workloads=(STATIC,)))
    assert [plan.workload for plan in only] == [STATIC]


@from_table
def test_a_program_that_only_generates_is_not_trained(tmp_path: Path, program: str, workloads: list[str]) -> None:
    text = f"torchrun {program} --num-layers 4 --cuda-graph-impl local --cuda-graph-scope full_iteration_inference\n"
    (one,) = cases(tmp_path / "run.sh", text)
    assert [plan.workload for plan in planned(one, VERSIONS, Scale())] == workloads


def test_settings_show_layers_that_the_proxy_lacks() -> None:
    layers: dict[str, object] = {"cuda_graph_impl": "transformer_engine"}
    mamba = case({**layers, "cuda_graph_scope": "attn,mamba"}, {**layers, "cuda_graph_modules": ["attn", "mamba"]})
    (plan,) = planned(mamba, VERSIONS, Scale())
    assert all(NO_MAMBA in arm.proxy.notes for arm in plan.arms.values())
    assert len({arm.model_key for arm in plan.arms.values()}) == 1
    (plan,) = planned(case({**layers, "cuda_graph_scope": "attn"}, layers), VERSIONS, Scale())
    assert all(NO_MAMBA not in arm.proxy.notes for arm in plan.arms.values())


def test_without_the_source_release_its_arms_do_not_run() -> None:
    (plan,) = planned(
        case({"external_cuda_graph": True}, {"cuda_graph_impl": "transformer_engine"}), {NEW: "0.19.2"}, Scale()
    )
    assert set(plan.arms) == {EAGER, "eager-again", LEGACY_TARGET, MIGRATED}
    with pytest.raises(PlanError, match=r"0\.19 is not available"):
        planned(case({}, {}), {OLD: "0.17.1"}, Scale())


def test_two_configurations_share_their_eager_arms() -> None:
    (one,) = planned(case({"external_cuda_graph": True}, {"cuda_graph_impl": "transformer_engine"}), VERSIONS, Scale())
    (two,) = planned(case({"cuda_graph_scope": "attn"}, {"cuda_graph_modules": "attn"}), VERSIONS, Scale())
    assert one.arms[EAGER].key == two.arms[EAGER].key
    assert one.arms[EAGER_SOURCE].key != one.arms[EAGER].key


def test_a_command_lines_words_reach_the_config_as_a_list() -> None:
    words = {"cuda_graph_impl": "local", "cuda_graph_scope": "attn mlp"}
    after = {"cuda_graph_impl": "local", "cuda_graph_modules": "attn mlp"}
    (plan,) = planned(case(words, after, Reader.COMMAND_LINE), VERSIONS, Scale())
    assert plan.arms[LEGACY_SOURCE].settings["cuda_graph_scope"] == ["attn", "mlp"]
    assert plan.arms[MIGRATED].settings["cuda_graph_modules"] == ["attn", "mlp"]


def test_megatron_bridge_clears_modules_before_the_config_sees_them() -> None:
    none = {"cuda_graph_impl": "none", "cuda_graph_scope": "full_iteration"}
    (plan,) = planned(case(none, {"cuda_graph_impl": "none"}, Reader.BRIDGE), VERSIONS, Scale())
    assert plan.arms[LEGACY_TARGET].settings == {"cuda_graph_impl": "none", "cuda_graph_modules": []}


# --- proxies --------------------------------------------------------------------------------------------------


def test_structure_is_kept_and_size_is_not() -> None:
    proxy = proxy_of(
        {
            "num_layers": 61,
            "hidden_size": 7168,
            "num_moe_experts": 256,
            "moe_router_topk": 8,
            "moe_layer_freq": [0, 0, 0, *[1] * 58],
            "moe_token_dispatcher_type": "flex",
            "expert_model_parallel_size": 32,
            "recompute_granularity": "selective",
            "recompute_modules": ["mla_up_proj", "mlp"],
            "multi_latent_attention": True,
            "normalization": "RMSNorm",
        }
    )
    assert (proxy.layers, proxy.hidden, proxy.expert, proxy.processes) == (4, 256, 1, 1)
    assert proxy.fields["num_moe_experts"] == 4
    assert proxy.fields["moe_router_topk"] == 2
    assert proxy.fields["moe_layer_freq"] == [0, 1, 1, 1]
    assert proxy.fields["recompute_modules"] == ["mlp"]
    message = " ".join(proxy.notes)
    assert "mla_up_proj is not recomputed" in message
    assert "expert parallelism 32 is scaled to 1" in message
    assert "flex dispatcher" in message
    assert "multi-latent attention is omitted" in message


def test_parallel_sizes_are_scaled_to_the_gpus_there_are() -> None:
    requested = {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 4, "hidden_size": 8}
    assert (proxy_of(requested, 1).tensor, proxy_of(requested, 1).pipeline) == (1, 1)
    assert (proxy_of(requested, 2).tensor, proxy_of(requested, 2).pipeline) == (1, 2)
    four = proxy_of(requested, 4)
    assert (four.tensor, four.pipeline, four.processes, four.microbatches) == (2, 2, 4, 4)
    experts = proxy_of({"num_moe_experts": 8, "expert_model_parallel_size": 8}, 2)
    assert (experts.expert, experts.processes) == (2, 2)


def test_experts_do_not_take_the_tensor_size_where_the_gpus_do_not_hold_both() -> None:
    sizes = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "expert_model_parallel_size": 2}
    proxy = proxy_of({"num_moe_experts": 8, **sizes}, 4)
    assert (proxy.tensor, proxy.pipeline, proxy.expert, proxy.expert_tensor, proxy.processes) == (2, 2, 2, 1, 4)
    assert "an expert is not split: 4 GPUs do not hold 2 ways of it beside the experts" in proxy.notes
    assert proxy_of({"num_moe_experts": 8, **sizes}, 8).expert_tensor == 2
    alone = proxy_of({"num_moe_experts": 8, **sizes, "expert_tensor_parallel_size": 1}, 8)
    assert (alone.expert_tensor, alone.processes, alone.notes) == (1, 4, ())


SIZES = (None, 1, 2, 3, 8)


@pytest.mark.parametrize("gpus", range(1, 9))
def test_parallel_sizes_always_fit_the_gpus(gpus: int) -> None:
    """What megatron-core checks when it divides the processes into groups, and the experts among them."""
    names = ("tensor", "pipeline", "expert_model", "expert_tensor")
    for *sizes, experts in itertools.product(*[SIZES] * len(names), (None, 1, 3, 8)):
        requested = {f"{name}_parallel_size": size for name, size in zip(names[2:], sizes[2:], strict=True)}
        requested |= {f"{name}_model_parallel_size": size for name, size in zip(names[:2], sizes[:2], strict=True)}
        values = {name: size for name, size in {**requested, "num_moe_experts": experts}.items() if size}
        whole = proxy_of(values, gpus)
        for proxy, world in ((whole, gpus), (replace(whole, pipeline=1), replace(whole, pipeline=1).processes)):
            assert whole.processes <= gpus
            assert world % (proxy.tensor * proxy.pipeline) == 0, (values, proxy)
            assert world % (proxy.expert_tensor * proxy.expert * proxy.pipeline) == 0, (values, proxy)
            assert proxy.fields.get("num_moe_experts", proxy.expert) % proxy.expert == 0, (values, proxy)
            assert proxy.fields.get("moe_router_topk", 0) <= proxy.fields.get("num_moe_experts", 0), (values, proxy)


def test_flags_are_read_like_fields() -> None:
    proxy = proxy_of({"--num-experts": 8, "--swiglu": True, "--bf16": True, "--disable-bias-linear": True})
    assert proxy.fields["num_moe_experts"] == 4
    assert (proxy.fields["gated_linear_unit"], proxy.fields["activation_func"]) == (True, "silu")
    assert proxy.fields["add_bias_linear"] is False


def test_values_as_megatrons_test_cases_write_them() -> None:
    proxy = proxy_of(
        {
            "--num-experts": 8,
            "--moe-layer-freq": "([0]*1+[1]*15)",
            "--moe-aux-loss-coeff": "1e-3",
            "--recompute-granularity": "selective",
            "--recompute-modules": "[moe_act layernorm]",
            "--fp8-recipe": "tensorwise",
            "--is-hybrid-model": True,
            "--num-attention-heads": 16,
        }
    )
    assert proxy.fields["moe_aux_loss_coeff"] == 0.001
    assert proxy.fields["moe_layer_freq"] == [0, 1, 1, 1]
    assert proxy.fields["recompute_modules"] == ["moe_act", "layernorm"]
    assert not {"fp8_recipe", "num_query_groups"} & proxy.fields.keys()
    assert "Mamba layers are omitted: all layers of the proxy are transformer layers" in proxy.notes
    grouped = proxy_of({"num_attention_heads": 16, "num_query_groups": 4})
    assert grouped.fields["num_query_groups"] == 2


@from_table
def test_the_precision_is_kept(values: dict[str, object], precision: str) -> None:
    assert proxy_of(values).precision == precision


def test_packed_sequences_come_one_at_a_time_with_fused_rotary_embedding() -> None:
    packing = Packing((3, 2))
    packed = proxy_of({"hidden_size": 8, "pipeline_model_parallel_size": 2}, 2, packing)
    assert (packed.micro_batch, packed.microbatches, packed.packing) == (1, 4, packing)
    assert packed.fields["apply_rope_fusion"] is True
    assert proxy_of({"apply_rope_fusion": False}, 1, packing).fields["apply_rope_fusion"] is False
    plain = proxy_of({"hidden_size": 8})
    assert (plain.micro_batch, plain.microbatches, plain.packing) == (2, 2, None)
    assert "apply_rope_fusion" not in plain.fields


@from_table
def test_recompute_is_scaled_with_the_layers(values: dict[str, object], fields: dict[str, object]) -> None:
    fields_of_proxy = proxy_of(values).fields
    expected = {"recompute_granularity": values["recompute_granularity"]}
    expected |= {f"recompute_{name}": value for name, value in fields.items()}
    assert {name: value for name, value in fields_of_proxy.items() if name.startswith("recompute")} == expected


def test_settings_without_effect_are_dropped_with_a_note() -> None:
    proxy = proxy_of({"recompute_modules": ["core_attn"], "moe_grouped_gemm": True, "moe_router_dtype": "fp32"})
    assert proxy.fields == {"normalization": "RMSNorm"}
    assert len(proxy.notes) == 2
    assert "recompute_modules without recompute_granularity" in proxy.notes[1]
    assert "without a number of experts" in proxy.notes[0]


def test_options_that_the_proxy_does_without_are_named() -> None:
    ignored = {"cpu_offloading": True, "moe_paged_stash": True, "delay_wgrad_compute": False}
    proxy = proxy_of({"num_moe_experts": 8, **ignored, "transformer_impl": "inference_optimized"})
    assert proxy.notes == ("the proxy does without cpu_offloading, moe_paged_stash, transformer_impl",)
    assert proxy_of({"num_layers": 2, "is_hybrid_model": False, "hybrid_context_parallel": False}).notes == ()
    assert NO_MAMBA in proxy_of({"num_layers": 2, "hybrid_layer_pattern": "M*M-"}).notes


@from_table
def test_experts_keep_what_decides_their_graphs(values: dict[str, object], fields: dict[str, object]) -> None:
    defaults = {
        "normalization": "RMSNorm",
        "num_moe_experts": min(4, values["num_moe_experts"]),  # type: ignore[call-overload]
        "moe_router_topk": 2,
        "moe_ffn_hidden_size": 256,
        "moe_grouped_gemm": values.get("moe_grouped_gemm", True),
        "moe_token_dispatcher_type": "alltoall",
        "add_bias_linear": values.get("add_bias_linear", False),
    }
    assert proxy_of(values).fields == {**defaults, **fields}


def test_options_that_need_others_are_kept_with_them_only() -> None:
    two = {"tensor_model_parallel_size": 2, "sequence_parallel": True}
    assert proxy_of(two, 2).fields["sequence_parallel"] is True
    assert "sequence_parallel" not in proxy_of(two, 1).fields
    # megatron-core demands it where experts meet tensor parallelism.
    assert proxy_of({"tensor_model_parallel_size": 2, "num_moe_experts": 8}, 2).fields["sequence_parallel"] is True
    assert "sequence_parallel" not in proxy_of({"tensor_model_parallel_size": 2}, 2).fields
    fp8 = {"fp8": "hybrid", "fp8_recipe": "tensorwise"}
    assert proxy_of(fp8).fields.items() >= fp8.items()
    assert proxy_of({"context_parallel_size": 2, "hidden_size": 8}).notes == ("context parallelism is omitted",)
    assert proxy_of({"context_parallel_size": 1, "hidden_size": 8}).notes == ()
    assert (proxy_of({"transformer_impl": "local"}).spec, proxy_of({}).spec) == ("local", "te")


def test_recomputation_of_multi_latent_attention_alone_is_none() -> None:
    """megatron-core refuses it without such attention; with no module, it would recompute core attention."""
    proxy = proxy_of({"recompute_granularity": "selective", "recompute_modules": ["mla_up_proj"]})
    assert not {"recompute_granularity", "recompute_modules"} & proxy.fields.keys()
    full = proxy_of({"recompute_granularity": "full", "recompute_modules": ["mlp"]})
    assert full.fields["recompute_granularity"] == "full"


@from_table
def test_an_activation_is_fused_where_the_values_show_it(beside: dict[str, Any], fused: bool) -> None:
    """The proxy has no biases, so the default activation cannot be fused with one."""
    proxy = proxy_of({"bias_activation_fusion": True, **beside})
    assert ("bias_activation_fusion" in proxy.fields) == fused
    assert any("bias_activation_fusion is omitted" in note for note in proxy.notes) == (not fused)


KEPT = table_of(__name__, "KEPT")
"""What changes which kernels run, or how they are captured."""


def test_what_decides_how_graphs_are_captured_is_kept_as_it_is() -> None:
    assert proxy_of({"num_moe_experts": 8, **KEPT}).fields.items() >= KEPT.items()


@from_table
def test_query_groups_are_kept_where_there_are_fewer_than_heads(values: dict[str, object], groups: int | None) -> None:
    assert proxy_of(values).fields.get("num_query_groups") == groups


@from_table
def test_the_activation_is_kept_if_megatron_core_has_it_by_name(
    values: dict[str, object], activation: str | None
) -> None:
    assert proxy_of(values).fields.get("activation_func") == activation


def test_a_proxy_of_nothing_says_so() -> None:
    proxy = proxy_of({})
    assert proxy.notes == (
        "the values beside the settings do not show the model's structure: the proxy is a dense GPT of 4 layers",
    )


def test_the_config_that_a_proxy_describes_is_accepted_by_the_installed_release() -> None:
    pytest.importorskip("megatron.core")
    from cgmigrate.verify.probe.model import RefusedError, configuration, effective

    proxy = proxy_of({"num_moe_experts": 8, "moe_router_topk": 2, "recompute_granularity": "selective"})
    modules = {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn", "moe_router"]}
    kept = effective(configuration(proxy, modules))
    assert kept["cuda_graph_modules"] == ["attn", "moe_router"]
    with pytest.raises(RefusedError, match="must not contain both moe and moe_router"):
        configuration(proxy, {"cuda_graph_impl": "local", "cuda_graph_modules": ["moe", "moe_router"]})
    with pytest.raises(RefusedError, match="unexpected keyword argument 'cuda_graph_colour'"):
        configuration(proxy, {"cuda_graph_colour": "red"})

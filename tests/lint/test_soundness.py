"""Every fix that is written captures what the source captured, over the whole cross product."""

from __future__ import annotations

import collections
import gzip
import itertools
import json
from pathlib import Path

import pytest

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import RuleKind, load
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import NEWEST, Release
from cgmigrate.megatron.types import Capture, Reader, Rejected
from cgmigrate.text.edits import apply
from tests.support.nightly import NIGHTLY, part
from tests.support.paths import TRUTH
from tests.support.plans import examine

ABSENT = object()
NAMES = ["attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba", "full", "full_iteration"]
SCOPES: list[object] = [ABSENT, None, "", [], *NAMES, "full_iteration_inference", "bogus"]
SCOPES += [["full"], ["full_iteration"], ["full_iteration_inference"], ["full", "attn"], ["attn", "mlp"]]
SCOPES += [["attn", "full_iteration"], ["full_iteration", "attn"], ["attn", "full_iteration_inference"]]
SCOPES += [["full_iteration", "full_iteration_inference"], ["attn", "full_iteration", "full_iteration_inference"]]
SCOPES += [["moe_router", "moe_preprocess"], ["moe", "moe_router"], ["attn", "moe_preprocess"], "attn,mlp"]
SCOPES += ["moe_router, moe_preprocess", "attn mlp", "moe_router,full_iteration_inference", "Attn"]
LEGACY = {
    "enable_cuda_graph": [ABSENT, False, True],
    "external_cuda_graph": [ABSENT, False, True],
    "cuda_graph_impl": [ABSENT, "none", "local", "transformer_engine", "bogus"],
    "cuda_graph_scope": SCOPES,
}
RULES, OWNERS = load(), ecosystems.load()
FLAGS = {name: "--" + name.replace("_", "-") for name in LEGACY}


def product() -> list[dict[str, object]]:
    rows = itertools.product(*LEGACY.values())
    combinations = [{k: v for k, v in zip(LEGACY, row, strict=True) if v is not ABSENT} for row in rows]
    return [settings for settings in combinations if settings]


def as_yaml(settings: dict[str, object], reader: Reader) -> str:
    """A real file: the settings where this reader finds them, with neighbours that must not change."""
    if reader is Reader.COMMAND_LINE:
        pairs = "".join(f"  {FLAGS[name]}: {json.dumps(value)}\n" for name, value in settings.items())
        return f"MODEL_ARGS:\n  --num-layers: 12\n{pairs}  --bf16: true\n"
    if reader is Reader.BRIDGE:
        pairs = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in settings.items())
        return f"model:\n  num_layers: 12\n{pairs}train:\n  train_iters: 1\nddp:\n  overlap_grad_reduce: true\n"
    pairs = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in settings.items())
    key = "megatron_cfg" if reader is Reader.NEMO_RL else "transformer_config"
    return f"{key}:\n  num_layers: 12\n{pairs}  bf16: true\n"


def settings_in(text: str) -> dict[str, object]:
    (site,) = YamlDocument(text).sites or [None]
    return {} if site is None else site.own


class Tally(collections.Counter):
    def __str__(self) -> str:
        return ", ".join(f"{self[key]} {key}" for key in ("fixed", "withheld", "untouched"))


@pytest.mark.parametrize("reader", list(Reader))
@pytest.mark.parametrize("source", [Release(0, minor) for minor in (14, 15, 16, 17)])
def test_every_fix_captures_the_same_and_every_other_legacy_site_has_a_diagnostic(source, reader, capsys) -> None:
    context = Context(source, NEWEST, RULES, OWNERS)
    tally = Tally()
    for settings in part(product(), 8, (source, reader)):
        text = as_yaml(settings, reader)
        document = YamlDocument(text)
        written = document.sites[0].own
        result = examine(document, context)
        assert not result.unsafe.keys() & result.safe.keys()
        if not result.safe:
            legacy = settings.keys() & {"enable_cuda_graph", "external_cuda_graph", "cuda_graph_scope"}
            tally["withheld" if legacy else "untouched"] += 1
            assert result.diagnostics or not legacy, (settings, source)
            assert all(diagnostic.because or not diagnostic.fix_text for diagnostic in result.diagnostics), (
                settings,
                result.diagnostics,
            )
            continue
        tally["fixed"] += 1
        after_text = apply(text, document.edits(result.safe))
        after = settings_in(after_text)
        left = after.keys() & {"enable_cuda_graph", "external_cuda_graph", "cuda_graph_scope"}
        assert not left or any(not diagnostic.fix_text for diagnostic in result.diagnostics), (settings, after)
        was, will = capture_of(written, source, reader), capture_of(after, NEWEST, reader)
        assert isinstance(was, Capture) and was == will, (settings, after, was, will)
        again = examine(YamlDocument(after_text), context)
        assert not again.safe and not any(diagnostic.applicability == "safe" for diagnostic in again.diagnostics)
    with capsys.disabled():
        print(f"\n{reader.value}, {source} -> {NEWEST}: {tally}")
    assert tally["withheld"] > (500 if NIGHTLY else 60)
    few = reader is Reader.COMMAND_LINE and source < Release(0, 15)
    if NIGHTLY or not few:
        assert tally["fixed"] > (0 if few else 20 if NIGHTLY else 2)


def rows_of_017() -> dict[str, dict]:
    path = TRUTH / "config-0.17.1.jsonl.gz"
    if not path.exists():
        pytest.skip("the executed tables are not beside the checkout")
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return {json.dumps(row["in"], sort_keys=True): row for row in rows if "ctx" not in row}


def test_the_installed_megatron_core_captures_what_the_rewrite_claims(capsys) -> None:
    """Judged without our own model of 0.19: the installed TransformerConfig, and the executed table of 0.17."""
    config = pytest.importorskip("megatron.core.transformer.transformer_config", reason="no megatron-core")
    executed, compared = rows_of_017(), 0
    base = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    moe = {**base, "num_moe_experts": 4, "add_bias_linear": False, "moe_layer_freq": [0, 1]}
    moe |= {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
    moe |= {"moe_token_dispatcher_type": "alltoall"}
    context = Context(Release(0, 17), NEWEST, RULES, OWNERS)
    for settings in product():
        document = YamlDocument(as_yaml(settings, Reader.CONFIG))
        result = examine(document, context)
        if not result.safe:
            continue
        (after,) = result.safe.values()
        real = config.TransformerConfig(**moe, **after)
        modules = {module.name for module in real.cuda_graph_modules}
        # Under none nobody reads the modules; the rewrite may keep or drop their names.
        modules = modules if real.cuda_graph_impl != "none" else set()
        now = (real.cuda_graph_impl, modules, real.inference_cuda_graph_scope.name)
        row = executed.get(json.dumps({k: v for k, v in settings.items() if v is not False}, sort_keys=True))
        if row is None or not row["ok"]:
            continue
        compared += 1
        scope = set(row["out"]["scope"])
        assert now == expected_of_017(row["out"]["impl"], scope), (settings, after, row)
    with capsys.disabled():
        print(f"\nfixes compared with the executed 0.17.1 and the installed {NEWEST}: {compared}")
    assert compared > 40


def expected_of_017(impl: str, scope: set[str]) -> tuple[str, set[str], str]:
    """What 0.17 graphed, in the terms of 0.19 (from semantics.md, written down apart from capture.py)."""
    parts = scope - {"full_iteration", "full_iteration_inference"}
    if impl == "local" and "full_iteration" in scope:
        return "full_iteration", set(), "none"
    if impl == "local":
        return impl, parts, "block" if "full_iteration_inference" in scope else "layer"
    if impl == "none":
        return impl, set(), "none"
    return impl, parts, "none"


def test_the_trap_is_not_sprung() -> None:
    """none + full_iteration: megatron-core's own migration turns graphs on, cgmigrate's does not."""
    settings = {"cuda_graph_impl": "none", "cuda_graph_scope": "full_iteration"}
    assert str(capture_of(settings, NEWEST, Reader.CONFIG)).startswith("full iteration")
    document = YamlDocument(as_yaml(settings, Reader.CONFIG))
    result = examine(document, Context(Release(0, 17), NEWEST, RULES, OWNERS))
    assert list(result.safe.values()) == [{"cuda_graph_impl": "none"}]
    from_019 = examine(document, Context(Release(0, 19), NEWEST, RULES, OWNERS))
    assert not from_019.safe
    assert "which is meant?" in from_019.diagnostics[0].because or "would capture" in from_019.diagnostics[0].because


def test_a_rule_that_changes_what_is_captured_cannot_be_applied_silently(tmp_path: Path) -> None:
    """The check is the engine's, not the rules': a wrong rule of a team's own is withheld."""
    (tmp_path / "wrong.yaml").write_text(
        "id: TEAM001\nname: wrong\nsummary: replaces layers by the iteration\nfields: [cuda_graph_impl]\n"
        "when: {cuda_graph_impl: local}\nmessage: wrong\nfix: {set: {cuda_graph_impl: full_iteration}}\n"
        "explanation: A rule that is wrong on purpose, to see that it is withheld.\nsources: [a test]\n"
    )
    rules = {"TEAM001": load([tmp_path])["TEAM001"]} | {k: v for k, v in RULES.items() if v.kind is RuleKind.FILE}
    document = YamlDocument("transformer_config:\n  cuda_graph_impl: local\n")
    result = examine(document, Context(Release(0, 17), NEWEST, rules, OWNERS))
    assert not result.safe
    (diagnostic,) = result.diagnostics
    assert diagnostic.applicability == "unsafe"
    assert "whole layers (local) in training" in diagnostic.because
    assert "full iteration in training" in diagnostic.because


def test_rejections_name_their_reason() -> None:
    for settings in product():
        for reader in Reader:
            verdict = capture_of(settings, NEWEST, reader)
            assert not isinstance(verdict, Rejected) or (verdict.reason and verdict.fields)
